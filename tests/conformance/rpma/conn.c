/* SPDX-License-Identifier: BSD-3-Clause
 * What a connection tells about itself, and its end: rpma_conn_get_event_fd(3), rpma_conn_get_private_data(3),
 * rpma_conn_apply_remote_peer_cfg(3), rpma_conn_get_qp_num(3), rpma_conn_get_cq(3), rpma_conn_get_rcq(3),
 * rpma_conn_disconnect(3), rpma_conn_delete(3).
 */
#include "side.h"

/* A connection of which nobody else knows yet. */
static Side *pending_side(Options options) {
    Side *side = new_side(NULL);
    side_open(side, options);
    request_to(side, side);
    connect_request(side);
    return side;
}

static void close_pair(const Pair *pair) {
    side_close(pair->client);
    side_close(pair->server);
}

/* ---- rpma_conn_get_event_fd -------------------------------------------------------------------------------------- */

TEST(conn_get_event_fd__is_readable_while_an_event_waits) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    next_request(pair.server);
    int fd = -1;
    CHECK_OK(rpma_conn_get_event_fd(pair.client->conn, &fd));
    CHECK(fd >= 0 && !readable(fd, 0));
    connect_request(pair.server);
    CHECK(readable(fd, (int)LONG_MS));
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    CHECK(!readable(fd, 0));
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    disconnect(pair.server);
    CHECK(readable(fd, (int)LONG_MS));
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    close_pair(&pair);
}

TEST(conn_get_event_fd__null_is_invalid) {
    Side *side = pending_side((Options){0});
    int fd = 4711;
    CHECK_INVAL(rpma_conn_get_event_fd(NULL, &fd));
    CHECK_EQ(fd, 4711);
    CHECK_INVAL(rpma_conn_get_event_fd(side->conn, NULL));
    side_close(side);
}

/* ---- rpma_conn_get_private_data (what travels is shown by conn_req) ---------------------------------------------- */

TEST(conn_get_private_data__null_is_invalid) {
    Side *side = pending_side((Options){0});
    struct rpma_conn_private_data pdata = {&side, 7};
    CHECK_INVAL(rpma_conn_get_private_data(NULL, &pdata));
    CHECK(pdata.ptr == &side && pdata.len == 7);
    CHECK_INVAL(rpma_conn_get_private_data(side->conn, NULL));
    side_close(side);
}

TEST(conn_get_private_data__stays_until_the_connection_is_deleted) {
    Pair pair = open_pair((Options){0});
    struct rpma_conn_private_data pdata = {NULL, 0};
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    next_request(pair.server);
    connect_with(pair.server, "answer", 6);
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    CHECK_OK(rpma_conn_get_private_data(pair.client->conn, &pdata));
    pair_hang_up(&pair);
    CHECK(pdata.len >= 6 && memcmp(pdata.ptr, "answer", 6) == 0);
    close_pair(&pair);
}

/* ---- rpma_conn_apply_remote_peer_cfg (what it does is shown by flush) -------------------------------------------- */

TEST(conn_apply_remote_peer_cfg__is_taken) {
    Side *side = pending_side((Options){0});
    struct rpma_peer_cfg *cfg = NULL;
    CHECK_OK(rpma_peer_cfg_new(&cfg));
    CHECK_OK(rpma_conn_apply_remote_peer_cfg(side->conn, cfg));
    CHECK_OK(rpma_peer_cfg_delete(&cfg));
    side_close(side);
}

TEST(conn_apply_remote_peer_cfg__null_is_invalid) {
    Side *side = pending_side((Options){0});
    struct rpma_peer_cfg *cfg = NULL;
    CHECK_OK(rpma_peer_cfg_new(&cfg));
    CHECK_INVAL(rpma_conn_apply_remote_peer_cfg(NULL, cfg));
    CHECK_INVAL(rpma_conn_apply_remote_peer_cfg(side->conn, NULL));
    CHECK_OK(rpma_peer_cfg_delete(&cfg));
    side_close(side);
}

/* ---- rpma_conn_get_qp_num ---------------------------------------------------------------------------------------- */

TEST(conn_get_qp_num__is_unique) {
    Side *side = pending_side((Options){0});
    Side *other = new_side(NULL);
    uint32_t one = 0, another = 0, again = 0;
    side_open(other, (Options){0});
    request_to(other, other);
    connect_request(other);
    CHECK_OK(rpma_conn_get_qp_num(side->conn, &one));
    CHECK_OK(rpma_conn_get_qp_num(other->conn, &another));
    CHECK_OK(rpma_conn_get_qp_num(side->conn, &again));
    CHECK(one != 0 && another != 0 && one != another);
    CHECK_EQ(one, again);
    CHECK(one >> 24 == 0 && another >> 24 == 0);
    side_close(side);
    side_close(other);
}

TEST(conn_get_qp_num__null_is_invalid) {
    Side *side = pending_side((Options){0});
    uint32_t number = 4711;
    CHECK_INVAL(rpma_conn_get_qp_num(NULL, &number));
    CHECK_EQ(number, 4711);
    CHECK_INVAL(rpma_conn_get_qp_num(side->conn, NULL));
    side_close(side);
}

/* ---- rpma_conn_get_cq, rpma_conn_get_rcq ------------------------------------------------------------------------- */

TEST(conn_get_cq__is_always_the_same) {
    Side *side = pending_side((Options){0});
    struct rpma_cq *cq = NULL, *again = NULL;
    CHECK_OK(rpma_conn_get_cq(side->conn, &cq));
    CHECK_OK(rpma_conn_get_cq(side->conn, &again));
    CHECK(cq != NULL && cq == again);
    side_close(side);
}

TEST(conn_get_cq__null_is_invalid) {
    Side *side = pending_side((Options){0});
    struct rpma_cq *cq = NULL;
    CHECK_INVAL(rpma_conn_get_cq(NULL, &cq));
    CHECK(cq == NULL);
    CHECK_INVAL(rpma_conn_get_cq(side->conn, NULL));
    side_close(side);
}

TEST(conn_get_rcq__there_is_none_by_default) {
    Side *side = pending_side((Options){0});
    struct rpma_cq *rcq = (void *)&side;
    CHECK_OK(rpma_conn_get_rcq(side->conn, &rcq));
    CHECK(rcq == NULL);
    side_close(side);
}

TEST(conn_get_rcq__with_a_size) {
    Side *side = pending_side((Options){.rcq_size = 10});
    struct rpma_cq *cq = NULL, *rcq = NULL;
    CHECK_OK(rpma_conn_get_cq(side->conn, &cq));
    CHECK_OK(rpma_conn_get_rcq(side->conn, &rcq));
    CHECK(rcq != NULL && rcq != cq);
    side_close(side);
}

TEST(conn_get_rcq__null_is_invalid) {
    Side *side = pending_side((Options){.rcq_size = 10});
    struct rpma_cq *rcq = NULL;
    CHECK_INVAL(rpma_conn_get_rcq(NULL, &rcq));
    CHECK(rcq == NULL);
    CHECK_INVAL(rpma_conn_get_rcq(side->conn, NULL));
    side_close(side);
}

/* ---- rpma_conn_disconnect ---------------------------------------------------------------------------------------- */

TEST(conn_disconnect__ends_on_both_sides) {
    Pair pair = connected_pair((Options){0});
    pair_hang_up(&pair);
    close_pair(&pair);
}

TEST(conn_disconnect__after_the_other_side) {
    Pair pair = connected_pair((Options){0});
    disconnect(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    disconnect(pair.client);
    EXPECT_EVENT(pair.server, RPMA_CONN_CLOSED);
    close_pair(&pair);
}

TEST(conn_disconnect__both_at_once) {
    Pair pair = connected_pair((Options){0});
    disconnect(pair.client);
    disconnect(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    EXPECT_EVENT(pair.server, RPMA_CONN_CLOSED);
    close_pair(&pair);
}

TEST(conn_disconnect__again) {
    Pair pair = connected_pair((Options){0});
    disconnect(pair.client);
    pair_hang_up(&pair);
    disconnect(pair.client);
    close_pair(&pair);
}

TEST(conn_disconnect__before_established_was_taken) {
    Pair pair = open_pair((Options){0});
    begin_connecting(&pair);
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    disconnect(pair.client);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair.server, RPMA_CONN_CLOSED);
    disconnect(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    close_pair(&pair);
}

TEST(conn_disconnect__null_is_invalid) { CHECK_INVAL(rpma_conn_disconnect(NULL)); }

TEST(conn_disconnect__a_pending_connection) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    disconnect(pair.client);
    close_pair(&pair);
}

TEST(conn_disconnect__a_rejected_connection) {
    Side *side = pending_side((Options){0});
    EXPECT_EVENT(side, RPMA_CONN_REJECTED);
    disconnect(side);
    CHECK(!event_waits(side));
    side_close(side);
}

/* ---- rpma_conn_delete -------------------------------------------------------------------------------------------- */

TEST(conn_delete__closed_connections) {
    Pair pair = connected_pair((Options){0});
    pair_hang_up(&pair);
    delete_conn(pair.client);
    delete_conn(pair.server);
    close_pair(&pair);
}

TEST(conn_delete__a_living_connection_is_closed_at_the_other_side) {
    Pair pair = connected_pair((Options){0});
    delete_conn(pair.client);
    EXPECT_EVENT(pair.server, RPMA_CONN_CLOSED);
    close_pair(&pair);
}

TEST(conn_delete__a_pending_connection) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    delete_conn(pair.client);
    close_pair(&pair);
}

TEST(conn_delete__with_work_on_its_queues) {
    Pair pair = connected_pair((Options){0});
    for (int i = 0; i < 5; ++i) {
        CHECK_OK(post(pair.client, (Work){.operation = RECV, .at = RECV_AT, .length = 64}));
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64}));
    }
    delete_conn(pair.client);
    EXPECT_EVENT(pair.server, RPMA_CONN_CLOSED);
    close_pair(&pair);
}

TEST(conn_delete__nothing_to_delete) {
    struct rpma_conn *conn = NULL;
    CHECK_OK(rpma_conn_delete(&conn));
}

TEST(conn_delete__null_is_invalid) { CHECK_INVAL(rpma_conn_delete(NULL)); }
