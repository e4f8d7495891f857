/* SPDX-License-Identifier: BSD-3-Clause
 * The peer configuration and its descriptor of one byte: rpma_peer_cfg_new(3) and its companions.
 */
#include "conformance.h"

static struct rpma_peer_cfg *new_cfg(void) {
    struct rpma_peer_cfg *cfg = NULL;
    CHECK_OK(rpma_peer_cfg_new(&cfg));
    CHECK(cfg != NULL);
    return cfg;
}

static void delete_cfg(struct rpma_peer_cfg *cfg) {
    CHECK_OK(rpma_peer_cfg_delete(&cfg));
    CHECK(cfg == NULL);
}

static bool writes_directly(const struct rpma_peer_cfg *cfg) {
    bool supported = false;
    CHECK_OK(rpma_peer_cfg_get_direct_write_to_pmem(cfg, &supported));
    return supported;
}

TEST(peer_cfg_new__begins_without_direct_write) {
    struct rpma_peer_cfg *cfg = new_cfg();
    CHECK(!writes_directly(cfg));
    delete_cfg(cfg);
}

TEST(peer_cfg_new__null_is_invalid) { CHECK_INVAL(rpma_peer_cfg_new(NULL)); }
TEST(peer_cfg_delete__sets_the_pointer_to_null) { delete_cfg(new_cfg()); }
TEST(peer_cfg_delete__nothing_to_delete) { delete_cfg(NULL); }
TEST(peer_cfg_delete__null_is_invalid) { CHECK_INVAL(rpma_peer_cfg_delete(NULL)); }

TEST(peer_cfg_set_direct_write_to_pmem__is_kept) {
    struct rpma_peer_cfg *cfg = new_cfg();
    CHECK_OK(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true));
    CHECK(writes_directly(cfg));
    CHECK_OK(rpma_peer_cfg_set_direct_write_to_pmem(cfg, false));
    CHECK(!writes_directly(cfg));
    delete_cfg(cfg);
}

TEST(peer_cfg_set_direct_write_to_pmem__null_is_invalid) {
    CHECK_INVAL(rpma_peer_cfg_set_direct_write_to_pmem(NULL, true));
}

TEST(peer_cfg_get_direct_write_to_pmem__null_is_invalid) {
    struct rpma_peer_cfg *cfg = new_cfg();
    bool supported = false;
    CHECK_INVAL(rpma_peer_cfg_get_direct_write_to_pmem(NULL, &supported));
    CHECK_INVAL(rpma_peer_cfg_get_direct_write_to_pmem(cfg, NULL));
    delete_cfg(cfg);
}

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

TEST(peer_cfg_get_descriptor_size__is_one_byte) {
    struct rpma_peer_cfg *cfg = new_cfg();
    size_t size = 0;
    CHECK_OK(rpma_peer_cfg_get_descriptor_size(cfg, &size));
    CHECK_EQ(size, 1);
    delete_cfg(cfg);
}

TEST(peer_cfg_get_descriptor_size__null_is_invalid) {
    struct rpma_peer_cfg *cfg = new_cfg();
    size_t size = 0;
    CHECK_INVAL(rpma_peer_cfg_get_descriptor_size(NULL, &size));
    CHECK_INVAL(rpma_peer_cfg_get_descriptor_size(cfg, NULL));
    delete_cfg(cfg);
}

TEST(peer_cfg_get_descriptor__is_0_or_1_and_writes_nothing_behind) {
    struct rpma_peer_cfg *cfg = new_cfg();
    uint8_t bytes[2] = {0xaa, 0xaa};
    CHECK_OK(rpma_peer_cfg_get_descriptor(cfg, bytes));
    CHECK_EQ(bytes[0], 0);
    CHECK_OK(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true));
    CHECK_OK(rpma_peer_cfg_get_descriptor(cfg, bytes));
    CHECK_EQ(bytes[0], 1);
    CHECK_EQ(bytes[1], 0xaa);
    delete_cfg(cfg);
}

TEST(peer_cfg_get_descriptor__null_is_invalid) {
    struct rpma_peer_cfg *cfg = new_cfg();
    uint8_t byte = 0;
    CHECK_INVAL(rpma_peer_cfg_get_descriptor(NULL, &byte));
    CHECK_INVAL(rpma_peer_cfg_get_descriptor(cfg, NULL));
    delete_cfg(cfg);
}

TEST(peer_cfg_from_descriptor__gives_what_was_described) {
    for (uint8_t byte = 0; byte <= 1; ++byte) {
        struct rpma_peer_cfg *cfg = NULL;
        CHECK_OK(rpma_peer_cfg_from_descriptor(&byte, 1, &cfg));
        CHECK(cfg != NULL);
        CHECK_EQ(writes_directly(cfg), byte);
        delete_cfg(cfg);
    }
}

TEST(peer_cfg_from_descriptor__may_be_longer) {
    const uint8_t bytes[4] = {1, 0, 0, 0};
    struct rpma_peer_cfg *cfg = NULL;
    CHECK_OK(rpma_peer_cfg_from_descriptor(bytes, sizeof bytes, &cfg));
    CHECK(writes_directly(cfg));
    delete_cfg(cfg);
}

TEST(peer_cfg_from_descriptor__null_is_invalid) {
    const uint8_t byte = 1;
    struct rpma_peer_cfg *cfg = NULL;
    CHECK_INVAL(rpma_peer_cfg_from_descriptor(NULL, 1, &cfg));
    CHECK(cfg == NULL);
    CHECK_INVAL(rpma_peer_cfg_from_descriptor(&byte, 1, NULL));
}

TEST(peer_cfg_from_descriptor__too_short_is_invalid) {
    const uint8_t byte = 1;
    struct rpma_peer_cfg *cfg = NULL;
    CHECK_INVAL(rpma_peer_cfg_from_descriptor(&byte, 0, &cfg));
    CHECK(cfg == NULL);
}
