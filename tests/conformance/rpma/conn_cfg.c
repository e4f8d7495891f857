/* SPDX-License-Identifier: BSD-3-Clause
 * The connection configuration: rpma_conn_cfg_new(3) and its 13 companions. That the values are honoured is shown by
 * the programs about connections and queues.
 */
#include "side.h"

static struct rpma_conn_cfg *new_cfg(void) {
    struct rpma_conn_cfg *cfg = NULL;
    CHECK_OK(rpma_conn_cfg_new(&cfg));
    CHECK(cfg != NULL);
    return cfg;
}

static void delete_cfg(struct rpma_conn_cfg *cfg) {
    CHECK_OK(rpma_conn_cfg_delete(&cfg));
    CHECK(cfg == NULL);
}

/* ---- Making and deleting ----------------------------------------------------------------------------------------- */

TEST(conn_cfg_new__fills_in_the_defaults) {
    struct rpma_conn_cfg *cfg = new_cfg();
    int timeout_ms = 0;
    uint32_t cq = 0, rcq = 1, sq = 0, rq = 0;
    bool shared = true;
    struct rpma_srq *srq = (void *)&timeout_ms;
    CHECK_OK(rpma_conn_cfg_get_timeout(cfg, &timeout_ms));
    CHECK_OK(rpma_conn_cfg_get_cq_size(cfg, &cq));
    CHECK_OK(rpma_conn_cfg_get_rcq_size(cfg, &rcq));
    CHECK_OK(rpma_conn_cfg_get_sq_size(cfg, &sq));
    CHECK_OK(rpma_conn_cfg_get_rq_size(cfg, &rq));
    CHECK_OK(rpma_conn_cfg_get_compl_channel(cfg, &shared));
    CHECK_OK(rpma_conn_cfg_get_srq(cfg, &srq));
    CHECK_EQ(timeout_ms, 1000);
    CHECK_EQ(cq, 10);
    CHECK_EQ(rcq, 0);
    CHECK_EQ(sq, 10);
    CHECK_EQ(rq, 10);
    CHECK(!shared);
    CHECK(srq == NULL);
    delete_cfg(cfg);
}

TEST(conn_cfg_new__configurations_are_independent) {
    struct rpma_conn_cfg *one = new_cfg(), *other = new_cfg();
    uint32_t size = 0;
    CHECK_OK(rpma_conn_cfg_set_cq_size(one, 77));
    CHECK_OK(rpma_conn_cfg_get_cq_size(other, &size));
    CHECK_EQ(size, 10);
    delete_cfg(one);
    CHECK_OK(rpma_conn_cfg_get_cq_size(other, &size));
    delete_cfg(other);
}

TEST(conn_cfg_new__null_is_invalid) { CHECK_INVAL(rpma_conn_cfg_new(NULL)); }

TEST(conn_cfg_delete__sets_the_pointer_to_null) { delete_cfg(new_cfg()); }

TEST(conn_cfg_delete__nothing_to_delete) { delete_cfg(NULL); }

TEST(conn_cfg_delete__null_is_invalid) { CHECK_INVAL(rpma_conn_cfg_delete(NULL)); }

/* ---- Time-out ---------------------------------------------------------------------------------------------------- */

TEST(conn_cfg_set_timeout__is_kept) {
    static const int values[] = {0, 1, 60000, INT32_MAX};
    struct rpma_conn_cfg *cfg = new_cfg();
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        int timeout_ms = -1;
        CHECK_OK(rpma_conn_cfg_set_timeout(cfg, values[i]));
        CHECK_OK(rpma_conn_cfg_get_timeout(cfg, &timeout_ms));
        CHECK_EQ(timeout_ms, values[i]);
    }
    delete_cfg(cfg);
}

TEST(conn_cfg_set_timeout__invalid_arguments) {
    struct rpma_conn_cfg *cfg = new_cfg();
    int timeout_ms = 0;
    CHECK_INVAL(rpma_conn_cfg_set_timeout(NULL, 1));
    CHECK_INVAL(rpma_conn_cfg_set_timeout(cfg, -1));
    CHECK_OK(rpma_conn_cfg_get_timeout(cfg, &timeout_ms));
    CHECK_EQ(timeout_ms, 1000);
    delete_cfg(cfg);
}

TEST(conn_cfg_get_timeout__invalid_arguments) {
    struct rpma_conn_cfg *cfg = new_cfg();
    int timeout_ms = 4711;
    CHECK_INVAL(rpma_conn_cfg_get_timeout(NULL, &timeout_ms));
    CHECK_EQ(timeout_ms, 4711);
    CHECK_INVAL(rpma_conn_cfg_get_timeout(cfg, NULL));
    delete_cfg(cfg);
}

/* ---- Sizes of queues --------------------------------------------------------------------------------------------- */

typedef int (*Setter)(struct rpma_conn_cfg *cfg, uint32_t size);
typedef int (*Getter)(const struct rpma_conn_cfg *cfg, uint32_t *size);

/* What is set is what one gets, up to INT_MAX; above it stock librpma gives INT_MAX to verbs, and so may we. */
static void size_is_kept(Setter set, Getter get) {
    static const uint32_t values[] = {0, 1, 10, 1000, INT32_MAX};
    struct rpma_conn_cfg *cfg = new_cfg();
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        uint32_t size = 4711;
        CHECK_OK(set(cfg, values[i]));
        CHECK_OK(get(cfg, &size));
        CHECK_EQ(size, values[i]);
    }
    delete_cfg(cfg);
}

static void getter_refuses_null(Getter get) {
    struct rpma_conn_cfg *cfg = new_cfg();
    uint32_t size = 4711;
    CHECK_INVAL(get(NULL, &size));
    CHECK_EQ(size, 4711);
    CHECK_INVAL(get(cfg, NULL));
    delete_cfg(cfg);
}

TEST(conn_cfg_set_cq_size__is_kept) { size_is_kept(rpma_conn_cfg_set_cq_size, rpma_conn_cfg_get_cq_size); }
TEST(conn_cfg_set_cq_size__null_is_invalid) { CHECK_INVAL(rpma_conn_cfg_set_cq_size(NULL, 1)); }
TEST(conn_cfg_get_cq_size__null_is_invalid) { getter_refuses_null(rpma_conn_cfg_get_cq_size); }

TEST(conn_cfg_set_rcq_size__is_kept) { size_is_kept(rpma_conn_cfg_set_rcq_size, rpma_conn_cfg_get_rcq_size); }
TEST(conn_cfg_set_rcq_size__null_is_invalid) { CHECK_INVAL(rpma_conn_cfg_set_rcq_size(NULL, 1)); }
TEST(conn_cfg_get_rcq_size__null_is_invalid) { getter_refuses_null(rpma_conn_cfg_get_rcq_size); }

TEST(conn_cfg_set_sq_size__is_kept) { size_is_kept(rpma_conn_cfg_set_sq_size, rpma_conn_cfg_get_sq_size); }
TEST(conn_cfg_set_sq_size__null_is_invalid) { CHECK_INVAL(rpma_conn_cfg_set_sq_size(NULL, 1)); }
TEST(conn_cfg_get_sq_size__null_is_invalid) { getter_refuses_null(rpma_conn_cfg_get_sq_size); }

TEST(conn_cfg_set_rq_size__is_kept) { size_is_kept(rpma_conn_cfg_set_rq_size, rpma_conn_cfg_get_rq_size); }
TEST(conn_cfg_set_rq_size__null_is_invalid) { CHECK_INVAL(rpma_conn_cfg_set_rq_size(NULL, 1)); }
TEST(conn_cfg_get_rq_size__null_is_invalid) { getter_refuses_null(rpma_conn_cfg_get_rq_size); }

/* ---- Completion channel and shared receive queue ----------------------------------------------------------------- */

TEST(conn_cfg_set_compl_channel__is_kept) {
    struct rpma_conn_cfg *cfg = new_cfg();
    bool shared = false;
    CHECK_OK(rpma_conn_cfg_set_compl_channel(cfg, true));
    CHECK_OK(rpma_conn_cfg_get_compl_channel(cfg, &shared));
    CHECK(shared);
    CHECK_OK(rpma_conn_cfg_set_compl_channel(cfg, false));
    CHECK_OK(rpma_conn_cfg_get_compl_channel(cfg, &shared));
    CHECK(!shared);
    delete_cfg(cfg);
}

TEST(conn_cfg_set_compl_channel__null_is_invalid) { CHECK_INVAL(rpma_conn_cfg_set_compl_channel(NULL, true)); }

TEST(conn_cfg_get_compl_channel__null_is_invalid) {
    struct rpma_conn_cfg *cfg = new_cfg();
    bool shared = true;
    CHECK_INVAL(rpma_conn_cfg_get_compl_channel(NULL, &shared));
    CHECK(shared);
    CHECK_INVAL(rpma_conn_cfg_get_compl_channel(cfg, NULL));
    delete_cfg(cfg);
}

TEST(conn_cfg_set_srq__is_kept) {
    struct rpma_conn_cfg *cfg = new_cfg();
    struct rpma_peer *peer = new_peer();
    struct rpma_srq *srq = NULL, *found = NULL;
    CHECK_OK(rpma_srq_new(peer, NULL, &srq));
    CHECK_OK(rpma_conn_cfg_set_srq(cfg, srq));
    CHECK_OK(rpma_conn_cfg_get_srq(cfg, &found));
    CHECK(found == srq);
    CHECK_OK(rpma_srq_delete(&srq));
    CHECK_OK(rpma_peer_delete(&peer));
    delete_cfg(cfg);
}

/* Whether it is a shared receive queue is found where the configuration is used: handles.c. */
TEST(conn_cfg_set_srq__any_pointer_is_kept) {
    struct rpma_conn_cfg *cfg = new_cfg();
    struct rpma_peer *peer = new_peer();
    struct rpma_srq *srq = NULL, *found = NULL;
    CHECK_OK(rpma_srq_new(peer, NULL, &srq));
    struct rpma_srq *const values[] = {(struct rpma_srq *)0xC41D, (struct rpma_srq *)&found, (struct rpma_srq *)peer,
                                       srq};
    CHECK_OK(rpma_srq_delete(&srq));
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        CHECK_OK(rpma_conn_cfg_set_srq(cfg, values[i]));
        CHECK_OK(rpma_conn_cfg_get_srq(cfg, &found));
        CHECK(found == values[i]);
    }
    CHECK_OK(rpma_peer_delete(&peer));
    delete_cfg(cfg);
}

/* The page forbids only cfg to be NULL; stock librpma refuses both. */
TEST(conn_cfg_set_srq__null_is_invalid) {
    struct rpma_conn_cfg *cfg = new_cfg();
    struct rpma_srq *srq = NULL;
    CHECK_INVAL(rpma_conn_cfg_set_srq(NULL, (struct rpma_srq *)0xC41D));
    CHECK_INVAL(rpma_conn_cfg_set_srq(NULL, NULL));
    CHECK_INVAL(rpma_conn_cfg_set_srq(cfg, NULL));
    CHECK_OK(rpma_conn_cfg_get_srq(cfg, &srq));
    CHECK(srq == NULL);
    delete_cfg(cfg);
}

TEST(conn_cfg_get_srq__null_is_invalid) {
    struct rpma_conn_cfg *cfg = new_cfg();
    struct rpma_srq *srq = NULL;
    CHECK_INVAL(rpma_conn_cfg_get_srq(NULL, &srq));
    CHECK_INVAL(rpma_conn_cfg_get_srq(cfg, NULL));
    delete_cfg(cfg);
}

/* ---- What it points to ------------------------------------------------------------------------------------------- */

/* As in stock librpma 1.2. */
typedef struct {
    int timeout_ms;
    uint32_t cq_size, rcq_size, sq_size, rq_size;
    bool shared;
    void *srq;
} StockConfiguration;

TEST(conn_cfg__is_seen_in_memory) {
    struct rpma_conn_cfg *cfg = new_cfg();
    StockConfiguration seen;
    memcpy(&seen, cfg, sizeof seen);
    CHECK(seen.timeout_ms == 1000 && seen.cq_size == 10 && seen.rcq_size == 0);
    CHECK(seen.sq_size == 10 && seen.rq_size == 10 && !seen.shared && seen.srq == NULL);
    CHECK_OK(rpma_conn_cfg_set_timeout(cfg, 17));
    CHECK_OK(rpma_conn_cfg_set_cq_size(cfg, 18));
    CHECK_OK(rpma_conn_cfg_set_rcq_size(cfg, 19));
    CHECK_OK(rpma_conn_cfg_set_sq_size(cfg, 20));
    CHECK_OK(rpma_conn_cfg_set_rq_size(cfg, 21));
    CHECK_OK(rpma_conn_cfg_set_compl_channel(cfg, true));
    CHECK_OK(rpma_conn_cfg_set_srq(cfg, (struct rpma_srq *)&seen));
    memcpy(&seen, cfg, sizeof seen);
    CHECK(seen.timeout_ms == 17 && seen.cq_size == 18 && seen.rcq_size == 19);
    CHECK(seen.sq_size == 20 && seen.rq_size == 21 && seen.shared && seen.srq == &seen);
    delete_cfg(cfg);
}
