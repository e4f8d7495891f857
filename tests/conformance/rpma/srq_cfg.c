/* SPDX-License-Identifier: BSD-3-Clause
 * The configuration of a shared receive queue: rpma_srq_cfg_new(3) and its companions.
 */
#include "conformance.h"

static struct rpma_srq_cfg *new_cfg(void) {
    struct rpma_srq_cfg *cfg = NULL;
    CHECK_OK(rpma_srq_cfg_new(&cfg));
    CHECK(cfg != NULL);
    return cfg;
}

static void delete_cfg(struct rpma_srq_cfg *cfg) {
    CHECK_OK(rpma_srq_cfg_delete(&cfg));
    CHECK(cfg == NULL);
}

/* The manual page says 100 for both; librpma 1.2.0 has 20, and programs know it that way. */
TEST(srq_cfg_new__fills_in_the_defaults) {
    struct rpma_srq_cfg *cfg = new_cfg();
    uint32_t rq = 0, rcq = 0;
    CHECK_OK(rpma_srq_cfg_get_rq_size(cfg, &rq));
    CHECK_OK(rpma_srq_cfg_get_rcq_size(cfg, &rcq));
    CHECK_EQ(rq, 20);
    CHECK_EQ(rcq, 20);
    delete_cfg(cfg);
}

TEST(srq_cfg_new__null_is_invalid) { CHECK_INVAL(rpma_srq_cfg_new(NULL)); }
TEST(srq_cfg_delete__sets_the_pointer_to_null) { delete_cfg(new_cfg()); }
TEST(srq_cfg_delete__nothing_to_delete) { delete_cfg(NULL); }
TEST(srq_cfg_delete__null_is_invalid) { CHECK_INVAL(rpma_srq_cfg_delete(NULL)); }

typedef int (*Setter)(struct rpma_srq_cfg *cfg, uint32_t size);
typedef int (*Getter)(const struct rpma_srq_cfg *cfg, uint32_t *size);

static void size_is_kept(Setter set, Getter get) {
    static const uint32_t values[] = {0, 1, 1000, INT32_MAX};
    struct rpma_srq_cfg *cfg = new_cfg();
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        uint32_t size = 4711;
        CHECK_OK(set(cfg, values[i]));
        CHECK_OK(get(cfg, &size));
        CHECK_EQ(size, values[i]);
    }
    delete_cfg(cfg);
}

static void getter_refuses_null(Getter get) {
    struct rpma_srq_cfg *cfg = new_cfg();
    uint32_t size = 4711;
    CHECK_INVAL(get(NULL, &size));
    CHECK_EQ(size, 4711);
    CHECK_INVAL(get(cfg, NULL));
    delete_cfg(cfg);
}

TEST(srq_cfg_set_rq_size__is_kept) { size_is_kept(rpma_srq_cfg_set_rq_size, rpma_srq_cfg_get_rq_size); }
TEST(srq_cfg_set_rq_size__null_is_invalid) { CHECK_INVAL(rpma_srq_cfg_set_rq_size(NULL, 1)); }
TEST(srq_cfg_get_rq_size__null_is_invalid) { getter_refuses_null(rpma_srq_cfg_get_rq_size); }
TEST(srq_cfg_set_rcq_size__is_kept) { size_is_kept(rpma_srq_cfg_set_rcq_size, rpma_srq_cfg_get_rcq_size); }
TEST(srq_cfg_set_rcq_size__null_is_invalid) { CHECK_INVAL(rpma_srq_cfg_set_rcq_size(NULL, 1)); }
TEST(srq_cfg_get_rcq_size__null_is_invalid) { getter_refuses_null(rpma_srq_cfg_get_rcq_size); }
