/* SPDX-License-Identifier: BSD-3-Clause
 * Remote memory regions, made from descriptors: rpma_mr_remote_from_descriptor(3) and its companions. No device needed.
 */
#include "conformance.h"

enum { BYTES = 21 };

/* Address 0x0102030405060708, size 0x1112131415161718, key 0x21222324, all usages; little endian. */
static const uint8_t sample[BYTES] = {8,    7,    6,    5,    4,    3,    2,    1,    0x18, 0x17, 0x16,
                                      0x15, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0xff};

static struct rpma_mr_remote *from_usage(int usage) {
    struct rpma_mr_remote *mr = NULL;
    uint8_t bytes[BYTES];
    memcpy(bytes, sample, sizeof bytes);
    bytes[BYTES - 1] = (uint8_t)usage;
    CHECK_OK(rpma_mr_remote_from_descriptor(bytes, sizeof bytes, &mr));
    CHECK(mr != NULL);
    return mr;
}

static void delete_mr(struct rpma_mr_remote *mr) {
    CHECK_OK(rpma_mr_remote_delete(&mr));
    CHECK(mr == NULL);
}

TEST(mr_remote_from_descriptor__every_combination_of_usages) {
    for (int usage = 1; usage <= 0xff; ++usage) delete_mr(from_usage(usage));
}

TEST(mr_remote_from_descriptor__may_be_longer) {
    struct rpma_mr_remote *mr = NULL;
    uint8_t bytes[BYTES + 7] = {0};
    size_t size = 0;
    memcpy(bytes, sample, sizeof sample);
    CHECK_OK(rpma_mr_remote_from_descriptor(bytes, sizeof bytes, &mr));
    CHECK_OK(rpma_mr_remote_get_size(mr, &size));
    CHECK_EQ(size, 0x1112131415161718);
    delete_mr(mr);
}

TEST(mr_remote_from_descriptor__null_is_invalid) {
    struct rpma_mr_remote *mr = NULL;
    CHECK_INVAL(rpma_mr_remote_from_descriptor(NULL, BYTES, &mr));
    CHECK(mr == NULL);
    CHECK_INVAL(rpma_mr_remote_from_descriptor(sample, BYTES, NULL));
}

TEST(mr_remote_from_descriptor__too_short_is_invalid) {
    struct rpma_mr_remote *mr = NULL;
    for (size_t size = 0; size < BYTES; ++size) CHECK_INVAL(rpma_mr_remote_from_descriptor(sample, size, &mr));
    CHECK(mr == NULL);
}

TEST(mr_remote_from_descriptor__without_a_usage_is_invalid) {
    struct rpma_mr_remote *mr = NULL;
    uint8_t bytes[BYTES];
    memcpy(bytes, sample, sizeof bytes);
    bytes[BYTES - 1] = 0;
    CHECK_INVAL(rpma_mr_remote_from_descriptor(bytes, sizeof bytes, &mr));
    CHECK(mr == NULL);
}

TEST(mr_remote_get_size__is_what_was_described) {
    struct rpma_mr_remote *mr = from_usage(1);
    size_t size = 0;
    CHECK_OK(rpma_mr_remote_get_size(mr, &size));
    CHECK_EQ(size, 0x1112131415161718);
    delete_mr(mr);
}

TEST(mr_remote_get_size__null_is_invalid) {
    struct rpma_mr_remote *mr = from_usage(1);
    size_t size = 4711;
    CHECK_INVAL(rpma_mr_remote_get_size(NULL, &size));
    CHECK_EQ(size, 4711);
    CHECK_INVAL(rpma_mr_remote_get_size(mr, NULL));
    delete_mr(mr);
}

TEST(mr_remote_get_flush_type__only_the_flush_usages) {
    const int both = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    for (int usage = 1; usage <= 0xff; ++usage) {
        struct rpma_mr_remote *mr = from_usage(usage);
        int type = -1;
        CHECK_OK(rpma_mr_remote_get_flush_type(mr, &type));
        CHECK_EQ(type, usage & both);
        delete_mr(mr);
    }
}

TEST(mr_remote_get_flush_type__null_is_invalid) {
    struct rpma_mr_remote *mr = from_usage(1);
    int type = 4711;
    CHECK_INVAL(rpma_mr_remote_get_flush_type(NULL, &type));
    CHECK_EQ(type, 4711);
    CHECK_INVAL(rpma_mr_remote_get_flush_type(mr, NULL));
    delete_mr(mr);
}

TEST(mr_remote_delete__sets_the_pointer_to_null) { delete_mr(from_usage(1)); }
TEST(mr_remote_delete__nothing_to_delete) { delete_mr(NULL); }
TEST(mr_remote_delete__null_is_invalid) { CHECK_INVAL(rpma_mr_remote_delete(NULL)); }

/* ---- What it points to ------------------------------------------------------------------------------------------- */

/* As in stock librpma 1.2, whose programs compare and copy it. */
typedef struct {
    uint64_t address, size;
    uint32_t key;
    int usage;
} StockRegion;

TEST(mr_remote__two_of_one_descriptor_are_equal_in_memory) {
    uint8_t descriptor[21] = {0, 0x10, 0, 0, 0x77, 0, 0, 0, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0x78, 0x56, 0x34, 0x12, 0x15};
    struct rpma_mr_remote *one = NULL, *same = NULL, *other = NULL;
    CHECK_OK(rpma_mr_remote_from_descriptor(descriptor, sizeof descriptor, &one));
    CHECK_OK(rpma_mr_remote_from_descriptor(descriptor, sizeof descriptor, &same));
    descriptor[8] = 0x35;
    CHECK_OK(rpma_mr_remote_from_descriptor(descriptor, sizeof descriptor, &other));
    CHECK(one != same && memcmp(one, same, sizeof(StockRegion)) == 0);
    CHECK(memcmp(one, other, sizeof(StockRegion)) != 0);
    StockRegion seen;
    memcpy(&seen, one, sizeof seen);
    CHECK_EQ(seen.address, 0x7700001000);
    CHECK_EQ(seen.size, 0x1234);
    CHECK_EQ(seen.key, 0x12345678);
    CHECK_EQ(seen.usage, 0x15);
    CHECK_OK(rpma_mr_remote_delete(&one));
    CHECK_OK(rpma_mr_remote_delete(&same));
    CHECK_OK(rpma_mr_remote_delete(&other));
}
