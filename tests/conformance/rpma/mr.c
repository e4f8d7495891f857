/* SPDX-License-Identifier: BSD-3-Clause
 * Local memory regions: rpma_mr_reg(3), rpma_mr_dereg(3), what they tell about themselves, and rpma_mr_advise(3).
 */
#include "side.h"

#include <sys/mman.h>

enum { BYTES = 8192, PAGE = 4096 };

static _Alignas(PAGE) uint8_t memory[BYTES];
static struct rpma_peer *peer;
static struct rpma_mr_local *mr;

static int reg(void *start, size_t size, int usage) { return rpma_mr_reg(peer, start, size, usage, &mr); }

static void open_region(int usage) {
    peer = new_peer();
    CHECK_OK(reg(memory, sizeof memory, usage));
    CHECK(mr != NULL);
}

static void close_region(void) {
    CHECK_OK(rpma_mr_dereg(&mr));
    CHECK(mr == NULL);
    CHECK_OK(rpma_peer_delete(&peer));
}

/* ---- Registering ------------------------------------------------------------------------------------------------- */

TEST(mr_reg__every_combination_of_usages) {
    peer = new_peer();
    for (int usage = 1; usage <= ALL_USAGES; ++usage) {
        CHECK_OK(reg(memory, sizeof memory, usage));
        CHECK_OK(rpma_mr_dereg(&mr));
    }
    CHECK_OK(rpma_peer_delete(&peer));
}

TEST(mr_reg__any_start_and_size) {
    peer = new_peer();
    CHECK_OK(reg(memory + 1, 1, RPMA_MR_USAGE_SEND));
    CHECK_OK(rpma_mr_dereg(&mr));
    CHECK_OK(reg(memory + PAGE - 1, 3, RPMA_MR_USAGE_RECV));
    CHECK_OK(rpma_mr_dereg(&mr));
    CHECK_OK(rpma_peer_delete(&peer));
}

TEST(mr_reg__the_same_memory_twice) {
    struct rpma_mr_local *other = NULL;
    open_region(RPMA_MR_USAGE_SEND);
    CHECK_OK(rpma_mr_reg(peer, memory, sizeof memory, RPMA_MR_USAGE_RECV, &other));
    CHECK(other != mr);
    CHECK_OK(rpma_mr_dereg(&other));
    close_region();
}

TEST(mr_reg__null_is_invalid) {
    peer = new_peer();
    CHECK_INVAL(rpma_mr_reg(NULL, memory, sizeof memory, RPMA_MR_USAGE_SEND, &mr));
    CHECK_INVAL(reg(NULL, sizeof memory, RPMA_MR_USAGE_SEND));
    CHECK(mr == NULL);
    CHECK_INVAL(rpma_mr_reg(peer, memory, sizeof memory, RPMA_MR_USAGE_SEND, NULL));
}

TEST(mr_reg__size_zero_is_invalid) {
    peer = new_peer();
    CHECK_INVAL(reg(memory, 0, RPMA_MR_USAGE_SEND));
    CHECK(mr == NULL);
}

TEST(mr_reg__usages_that_do_not_exist_are_invalid) {
    peer = new_peer();
    CHECK_INVAL(reg(memory, sizeof memory, 0));
    CHECK_INVAL(reg(memory, sizeof memory, RPMA_MR_USAGE_SEND | 1 << 8));
    CHECK_INVAL(reg(memory, sizeof memory, -1));
    CHECK(mr == NULL);
}

/* A mapping without rights: nobody else is given the same place meanwhile. */
TEST(mr_reg__memory_that_cannot_be_read) {
    if (!on_loopback()) skip("the kernel lets a device read it");
    void *hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(hole != MAP_FAILED);
    peer = new_peer();
    CHECK_RC(reg(hole, PAGE, RPMA_MR_USAGE_SEND), RPMA_E_PROVIDER);
    CHECK(mr == NULL);
}

TEST(mr_reg__a_range_that_wraps) {
    peer = new_peer();
    CHECK_RC(reg(memory, SIZE_MAX, RPMA_MR_USAGE_SEND), RPMA_E_PROVIDER);
    CHECK(mr == NULL);
}

TEST(mr_dereg__sets_the_pointer_to_null) {
    open_region(RPMA_MR_USAGE_SEND);
    close_region();
}

TEST(mr_dereg__nothing_to_deregister) { CHECK_OK(rpma_mr_dereg(&mr)); }

TEST(mr_dereg__null_is_invalid) { CHECK_INVAL(rpma_mr_dereg(NULL)); }

/* ---- What a region tells about itself ---------------------------------------------------------------------------- */

TEST(mr_get_ptr__is_the_start) {
    void *start = NULL;
    open_region(RPMA_MR_USAGE_SEND);
    CHECK_OK(rpma_mr_get_ptr(mr, &start));
    CHECK(start == memory);
    close_region();
}

TEST(mr_get_ptr__null_is_invalid) {
    void *start = &peer;
    open_region(RPMA_MR_USAGE_SEND);
    CHECK_INVAL(rpma_mr_get_ptr(NULL, &start));
    CHECK(start == &peer);
    CHECK_INVAL(rpma_mr_get_ptr(mr, NULL));
    close_region();
}

TEST(mr_get_size__is_the_size) {
    size_t size = 0;
    open_region(RPMA_MR_USAGE_SEND);
    CHECK_OK(rpma_mr_get_size(mr, &size));
    CHECK_EQ(size, sizeof memory);
    close_region();
}

TEST(mr_get_size__null_is_invalid) {
    size_t size = 4711;
    open_region(RPMA_MR_USAGE_SEND);
    CHECK_INVAL(rpma_mr_get_size(NULL, &size));
    CHECK_EQ(size, 4711);
    CHECK_INVAL(rpma_mr_get_size(mr, NULL));
    close_region();
}

TEST(mr_get_descriptor_size__is_21_bytes) {
    size_t size = 0;
    open_region(RPMA_MR_USAGE_SEND);
    CHECK_OK(rpma_mr_get_descriptor_size(mr, &size));
    CHECK_EQ(size, MR_DESCRIPTOR_BYTES);
    close_region();
}

TEST(mr_get_descriptor_size__null_is_invalid) {
    size_t size = 4711;
    open_region(RPMA_MR_USAGE_SEND);
    CHECK_INVAL(rpma_mr_get_descriptor_size(NULL, &size));
    CHECK_EQ(size, 4711);
    CHECK_INVAL(rpma_mr_get_descriptor_size(mr, NULL));
    close_region();
}

static uint64_t little_endian(const uint8_t *bytes, int count) {
    uint64_t value = 0;
    for (int i = count; i-- > 0;) value = value << 8 | bytes[i];
    return value;
}

/* Little endian: address (8 bytes), size (8), key (4), usage (1). */
TEST(mr_get_descriptor__byte_for_byte) {
    peer = new_peer();
    for (int usage = 1; usage <= ALL_USAGES; usage += usage) {
        uint8_t bytes[MR_DESCRIPTOR_BYTES + 1];
        memset(bytes, 0xaa, sizeof bytes);
        CHECK_OK(reg(memory + 16, 1000, usage));
        CHECK_OK(rpma_mr_get_descriptor(mr, bytes));
        CHECK_EQ(little_endian(bytes, 8), (uintptr_t)memory + 16);
        CHECK_EQ(little_endian(bytes + 8, 8), 1000);
        CHECK_EQ(bytes[20], usage);
        CHECK_EQ(bytes[21], 0xaa);
        CHECK_OK(rpma_mr_dereg(&mr));
    }
    CHECK_OK(rpma_peer_delete(&peer));
}

TEST(mr_get_descriptor__regions_have_different_keys) {
    uint8_t one[MR_DESCRIPTOR_BYTES], another[MR_DESCRIPTOR_BYTES];
    struct rpma_mr_local *other = NULL;
    open_region(ALL_USAGES);
    CHECK_OK(rpma_mr_reg(peer, memory, sizeof memory, ALL_USAGES, &other));
    CHECK_OK(rpma_mr_get_descriptor(mr, one));
    CHECK_OK(rpma_mr_get_descriptor(other, another));
    CHECK(memcmp(one, another, 16) == 0);
    CHECK(memcmp(one + 16, another + 16, 4) != 0);
    CHECK_OK(rpma_mr_dereg(&other));
    close_region();
}

TEST(mr_get_descriptor__null_is_invalid) {
    uint8_t bytes[MR_DESCRIPTOR_BYTES];
    open_region(RPMA_MR_USAGE_SEND);
    CHECK_INVAL(rpma_mr_get_descriptor(NULL, bytes));
    CHECK_INVAL(rpma_mr_get_descriptor(mr, NULL));
    close_region();
}

/* ---- Advice ------------------------------------------------------------------------------------------------------ */

/* Values of enum ibv_advise_mr_advice and of IBV_ADVISE_MR_FLAG_FLUSH. */
enum { PREFETCH, PREFETCH_WRITE, PREFETCH_NO_FAULT, FLAG_FLUSH = 1 };

/* A device may know none of it. */
static void advise(size_t offset, size_t len, int advice, uint32_t flags) {
    int rc = rpma_mr_advise(mr, offset, len, advice, flags);
    if (on_loopback() || rc != RPMA_E_NOSUPP) CHECK_OK(rc);
}

TEST(mr_advise__each_advice) {
    open_region(ALL_USAGES);
    for (int advice = PREFETCH; advice <= PREFETCH_NO_FAULT; ++advice) {
        advise(0, sizeof memory, advice, 0);
        advise(0, sizeof memory, advice, FLAG_FLUSH);
        advise(100, 200, advice, 0);
    }
    close_region();
}

TEST(mr_advise__changes_no_content) {
    open_region(ALL_USAGES);
    for (size_t i = 0; i < sizeof memory; ++i) memory[i] = (uint8_t)i;
    for (int advice = PREFETCH; advice <= PREFETCH_NO_FAULT; ++advice) advise(0, sizeof memory, advice, 0);
    for (size_t i = 0; i < sizeof memory; ++i) CHECK_EQ(memory[i], (uint8_t)i);
    close_region();
}

TEST(mr_advise__unknown_advice_is_not_supported) {
    open_region(ALL_USAGES);
    CHECK_RC(rpma_mr_advise(mr, 0, sizeof memory, 77, 0), RPMA_E_NOSUPP);
    CHECK_RC(rpma_mr_advise(mr, 0, sizeof memory, -1, 0), RPMA_E_NOSUPP);
    close_region();
}

TEST(mr_advise__a_range_outside_the_region_is_invalid) {
    open_region(ALL_USAGES);
    CHECK_INVAL(rpma_mr_advise(mr, 0, sizeof memory + 1, PREFETCH, 0));
    CHECK_INVAL(rpma_mr_advise(mr, sizeof memory, 1, PREFETCH, 0));
    CHECK_INVAL(rpma_mr_advise(mr, 1, SIZE_MAX, PREFETCH, 0));
    close_region();
}

TEST(mr_advise__unknown_flags_are_invalid) {
    open_region(ALL_USAGES);
    CHECK_INVAL(rpma_mr_advise(mr, 0, sizeof memory, PREFETCH, 2));
    CHECK_INVAL(rpma_mr_advise(mr, 0, sizeof memory, PREFETCH, UINT32_MAX));
    close_region();
}

/* ibv_advise_mr(3): the write advice wants a region that may be written. */
TEST(mr_advise__the_usage_must_allow_it) {
    open_region(RPMA_MR_USAGE_SEND);
    CHECK_INVAL(rpma_mr_advise(mr, 0, sizeof memory, PREFETCH_WRITE, 0));
    close_region();
}

/* ---- What it points to ------------------------------------------------------------------------------------------- */

/* As in stock librpma 1.2; programs look for the region of libibverbs. */
typedef struct {
    struct {
        void *context, *pd, *address;
        size_t length;
        uint32_t handle, lkey, rkey;
    } * ibv_mr;
    int usage;
} StockRegion;

TEST(mr__is_seen_in_memory) {
    Side *side = new_side(NULL);
    side_open(side, (Options){.usage = RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_DST});
    StockRegion seen;
    memcpy(&seen, side->mr, sizeof seen);
    CHECK_EQ(seen.usage, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_DST);
    CHECK(seen.ibv_mr->address == side->memory);
    CHECK_EQ(seen.ibv_mr->length, MEMORY_BYTES);
    CHECK(memcmp(&seen.ibv_mr->rkey, side->descriptor + 16, 4) == 0);
    CHECK(seen.ibv_mr->lkey != 0);
    side_close(side);
}
