/* SPDX-License-Identifier: BSD-3-Clause
 * Receives that several connections share: rpma_srq_new(3), rpma_srq_delete(3), rpma_srq_recv(3), rpma_srq_get_rcq(3).
 */
#include "side.h"

enum { CLIENTS = 3, BYTES = 200 };

/* ---- Making and deleting ----------------------------------------------------------------------------------------- */

static struct rpma_srq *new_srq(struct rpma_peer *peer, uint32_t rq_size, uint32_t rcq_size) {
    struct rpma_srq_cfg *cfg = NULL;
    struct rpma_srq *srq = NULL;
    CHECK_OK(rpma_srq_cfg_new(&cfg));
    CHECK_OK(rpma_srq_cfg_set_rq_size(cfg, rq_size));
    CHECK_OK(rpma_srq_cfg_set_rcq_size(cfg, rcq_size));
    CHECK_OK(rpma_srq_new(peer, cfg, &srq));
    CHECK_OK(rpma_srq_cfg_delete(&cfg));
    CHECK(srq != NULL);
    return srq;
}

TEST(srq_new__without_a_configuration) {
    struct rpma_peer *peer = new_peer();
    struct rpma_srq *srq = NULL;
    CHECK_OK(rpma_srq_new(peer, NULL, &srq));
    CHECK(srq != NULL);
    CHECK_OK(rpma_srq_delete(&srq));
    CHECK_OK(rpma_peer_delete(&peer));
}

TEST(srq_new__null_is_invalid) {
    struct rpma_peer *peer = new_peer();
    struct rpma_srq *srq = NULL;
    CHECK_INVAL(rpma_srq_new(NULL, NULL, &srq));
    CHECK(srq == NULL);
    CHECK_INVAL(rpma_srq_new(peer, NULL, NULL));
    CHECK_OK(rpma_peer_delete(&peer));
}

static void cannot_be_made(uint32_t rq_size, uint32_t rcq_size) {
    struct rpma_peer *peer = new_peer();
    struct rpma_srq_cfg *cfg = NULL;
    struct rpma_srq *srq = NULL;
    CHECK_OK(rpma_srq_cfg_new(&cfg));
    CHECK_OK(rpma_srq_cfg_set_rq_size(cfg, rq_size));
    CHECK_OK(rpma_srq_cfg_set_rcq_size(cfg, rcq_size));
    CHECK_RC(rpma_srq_new(peer, cfg, &srq), RPMA_E_PROVIDER);
    CHECK(srq == NULL);
    CHECK_OK(rpma_srq_cfg_delete(&cfg));
    CHECK_OK(rpma_peer_delete(&peer));
}

TEST(srq_new__queues_that_cannot_be_made) {
    cannot_be_made(INT32_MAX, 10);
    cannot_be_made(10, INT32_MAX);
    cannot_be_made(UINT32_MAX, 10);
    cannot_be_made(10, UINT32_MAX);
}

TEST(srq_delete__sets_the_pointer_to_null) {
    struct rpma_peer *peer = new_peer();
    struct rpma_srq *srq = new_srq(peer, 10, 10);
    CHECK_OK(rpma_srq_delete(&srq));
    CHECK(srq == NULL);
    CHECK_OK(rpma_peer_delete(&peer));
}

TEST(srq_delete__nothing_to_delete) {
    struct rpma_srq *srq = NULL;
    CHECK_OK(rpma_srq_delete(&srq));
}

TEST(srq_delete__null_is_invalid) { CHECK_INVAL(rpma_srq_delete(NULL)); }

static void is_busy(struct rpma_srq *srq) {
    CHECK_RC(rpma_srq_delete(&srq), RPMA_E_PROVIDER);
    CHECK(srq == NULL);
}

TEST(srq_delete__in_use_by_a_request) {
    Side *side = new_side(NULL);
    side_open(side, (Options){.srq = true});
    request_to(side, side);
    is_busy(side->srq);
}

TEST(srq_delete__in_use_by_a_connection) {
    Pair pair = connected_pair_of((Options){.srq = true}, (Options){0});
    is_busy(pair.client->srq);
}

TEST(srq_get_rcq__its_own) {
    struct rpma_peer *peer = new_peer();
    struct rpma_srq *srq = new_srq(peer, 10, 10);
    struct rpma_cq *rcq = NULL, *again = NULL;
    CHECK_OK(rpma_srq_get_rcq(srq, &rcq));
    CHECK_OK(rpma_srq_get_rcq(srq, &again));
    CHECK(rcq != NULL && rcq == again);
    CHECK_OK(rpma_srq_delete(&srq));
    CHECK_OK(rpma_peer_delete(&peer));
}

TEST(srq_get_rcq__none_without_a_size) {
    struct rpma_peer *peer = new_peer();
    struct rpma_srq *srq = new_srq(peer, 10, 0);
    struct rpma_cq *rcq = (void *)&peer;
    CHECK_OK(rpma_srq_get_rcq(srq, &rcq));
    CHECK(rcq == NULL);
    CHECK_OK(rpma_srq_delete(&srq));
    CHECK_OK(rpma_peer_delete(&peer));
}

TEST(srq_get_rcq__null_is_invalid) {
    struct rpma_peer *peer = new_peer();
    struct rpma_srq *srq = new_srq(peer, 10, 10);
    struct rpma_cq *rcq = NULL;
    CHECK_INVAL(rpma_srq_get_rcq(NULL, &rcq));
    CHECK(rcq == NULL);
    CHECK_INVAL(rpma_srq_get_rcq(srq, NULL));
    CHECK_OK(rpma_srq_delete(&srq));
    CHECK_OK(rpma_peer_delete(&peer));
}

/* ---- Several connections ----------------------------------------------------------------------------------------- */

/* One server in this process with CLIENTS connections; each client is a process. */
typedef struct {
    Side *clients[CLIENTS];
    Side *ends[CLIENTS]; /* of the server; ends[0] owns what they share */
} Star;

static Star connected_star(Options server) {
    Star star;
    for (int i = 0; i < CLIENTS; ++i) star.clients[i] = new_side(peer_start());
    for (int i = 0; i < CLIENTS; ++i) {
        Side *end = star.ends[i] = new_side(NULL);
        side_open_beside(end, i > 0 ? star.ends[0] : NULL, server);
        side_open(star.clients[i], (Options){0});
        listen_at(end);
        pair_connect(&(Pair){star.clients[i], end});
    }
    return star;
}

static void star_post(const Star *star, int slot) {
    Work work = {
        .operation = SRQ_RECV, .at = RECV_AT + (size_t)slot * BYTES, .length = BYTES, .context = (uint64_t)slot};
    CHECK_OK(post(star->ends[0], work));
}

/* Every client sends in turn; the receives are taken in order, whoever sends. */
static void receive_from_each(const Star *star) {
    for (int slot = 0; slot < 2 * CLIENTS; ++slot) star_post(star, slot);
    for (int slot = 0; slot < 2 * CLIENTS; ++slot) {
        Side *client = star->clients[slot % CLIENTS], *end = star->ends[slot % CLIENTS];
        fill(client, SEND_AT, BYTES, (unsigned)slot);
        CHECK_OK(post(client, (Work){.operation = SEND, .length = BYTES, .context = 7}));
        struct ibv_wc wc = EXPECT_RECEIVED(end, (uint64_t)slot);
        CHECK_EQ(wc.opcode, IBV_WC_RECV);
        CHECK_EQ(wc.byte_len, BYTES);
        CHECK_EQ(wc.qp_num, qp_num_of(end));
        EXPECT_DONE(client, 7);
        CHECK(filled(star->ends[0], RECV_AT + (size_t)slot * BYTES, BYTES, (unsigned)slot));
    }
}

TEST(srq_recv__several_connections_one_queue_for_completions) {
    Star star = connected_star((Options){.srq = true});
    CHECK(queue_of(star.ends[0], RECV_CQ) == queue_of(star.ends[1], RECV_CQ));
    receive_from_each(&star);
}

TEST(srq_recv__completions_on_the_queue_of_each_connection) {
    Star star = connected_star((Options){.srq_without_rcq = true, .rcq_size = 20});
    CHECK(queue_of(star.ends[0], RECV_CQ) != queue_of(star.ends[1], RECV_CQ));
    CHECK(queue_of(star.ends[0], RECV_CQ) != queue_of(star.ends[0], MAIN_CQ));
    receive_from_each(&star);
}

TEST(srq_recv__completions_on_the_main_queue_of_each_connection) {
    Star star = connected_star((Options){.srq_without_rcq = true});
    CHECK(queue_of(star.ends[0], RECV_CQ) == queue_of(star.ends[0], MAIN_CQ));
    receive_from_each(&star);
}

TEST(srq_recv__with_a_shared_channel) {
    Star star = connected_star((Options){.srq_without_rcq = true, .rcq_size = 20, .shared_channel = true});
    receive_from_each(&star);
}

/* A connection has no queue for receives of its own beside that of the shared receive queue. */
TEST(srq_recv__the_connection_has_no_receive_queue_beside) {
    Side *side = new_side(NULL);
    struct rpma_cq *rcq = (void *)&side;
    side_open(side, (Options){.srq = true, .rcq_size = 10});
    request_to(side, side);
    connect_request(side);
    CHECK_OK(rpma_conn_get_rcq(side->conn, &rcq));
    CHECK(rcq == NULL);
    side_close(side);
}

/* Nothing is posted: both messages wait, and each connection gets one of the receives. */
TEST(srq_recv__messages_wait_for_receives) {
    Star star = connected_star((Options){.srq = true});
    for (int i = 0; i < 2; ++i)
        CHECK_OK(post(star.clients[i], (Work){.operation = SEND, .length = BYTES, .context = 7}));
    star_post(&star, 0);
    star_post(&star, 1);
    struct ibv_wc one = next_wc(star.ends[0], RECV_CQ), other = next_wc(star.ends[0], RECV_CQ);
    CHECK(one.status == IBV_WC_SUCCESS && other.status == IBV_WC_SUCCESS);
    CHECK(one.qp_num != other.qp_num && one.wr_id + other.wr_id == 1);
    for (int i = 0; i < 2; ++i) EXPECT_DONE(star.clients[i], 7);
}

TEST(srq_recv__receives_stay_when_a_connection_ends) {
    Star star = connected_star((Options){.srq = true});
    star_post(&star, 0);
    disconnect(star.ends[0]);
    EXPECT_EVENT(star.clients[0], RPMA_CONN_CLOSED);
    expect_no_wc(star.ends[0]);
    CHECK_OK(post(star.clients[1], (Work){.operation = SEND, .length = BYTES, .context = 7}));
    CHECK_EQ(EXPECT_RECEIVED(star.ends[1], 0).qp_num, qp_num_of(star.ends[1]));
    EXPECT_DONE(star.clients[1], 7);
}

TEST(srq_recv__receives_stay_when_a_client_dies) {
    Star star = connected_star((Options){.srq = true});
    star_post(&star, 0);
    peer_kill(star.clients[0]->process);
    EXPECT_EVENT(star.ends[0], RPMA_CONN_CLOSED);
    CHECK_OK(post(star.clients[1], (Work){.operation = SEND, .length = BYTES, .context = 7}));
    CHECK_EQ(EXPECT_RECEIVED(star.ends[1], 0).qp_num, qp_num_of(star.ends[1]));
}

TEST(srq_recv__write_with_imm_takes_one) {
    Star star = connected_star((Options){.srq = true});
    star_post(&star, 0);
    CHECK_OK(post(star.clients[2], (Work){.operation = WRITE_WITH_IMM, .length = 8, .imm = 5, .context = 7}));
    struct ibv_wc wc = EXPECT_RECEIVED(star.ends[2], 0);
    CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK_EQ(wc.qp_num, qp_num_of(star.ends[2]));
    EXPECT_DONE(star.clients[2], 7);
}

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

TEST(srq_recv__without_a_region) {
    Star star = connected_star((Options){.srq = true});
    CHECK_OK(rpma_srq_recv(star.ends[0]->srq, NULL, 0, 0, NULL));
    CHECK_OK(post(star.clients[0], (Work){.operation = SEND, .no_region = true, .context = 7}));
    CHECK_EQ(EXPECT_RECEIVED(star.ends[0], 0).byte_len, 0);
}

TEST(srq_recv__invalid_arguments) {
    Side *side = new_side(NULL);
    side_open(side, (Options){.srq = true});
    CHECK_INVAL(rpma_srq_recv(NULL, side->mr, 0, 8, NULL));
    CHECK_INVAL(rpma_srq_recv(side->srq, NULL, 1, 0, NULL));
    CHECK_INVAL(rpma_srq_recv(side->srq, NULL, 0, 1, NULL));
    CHECK_INVAL(rpma_srq_recv(side->srq, side->mr, 0, (size_t)UINT32_MAX + 1, NULL));
    side_close(side);
}

TEST(srq_recv__a_full_queue) {
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    side->srq = new_srq(side->peer, 4, 4);
    fill_queue(side, (Work){.operation = SRQ_RECV, .length = 8}, 4);
    side_close(side);
}

TEST(srq_recv__too_small) {
    Star star = connected_star((Options){.srq = true});
    CHECK_OK(post(star.ends[0], (Work){.operation = SRQ_RECV, .at = RECV_AT, .length = 7, .context = 1}));
    CHECK_OK(post(star.clients[0], (Work){.operation = SEND, .length = 8, .context = 7}));
    EXPECT_FAILED(star.ends[0], RECV_CQ, 1, IBV_WC_LOC_LEN_ERR);
    EXPECT_FAILED(star.clients[0], MAIN_CQ, 7, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_BREAK(star.ends[0]);
    star_post(&star, 2); /* the other connections go on */
    CHECK_OK(post(star.clients[1], (Work){.operation = SEND, .length = BYTES, .context = 7}));
    EXPECT_RECEIVED(star.ends[1], 2);
}
