/* SPDX-License-Identifier: BSD-3-Clause
 * The completion channel that both queues of a connection share: rpma_conn_wait(3), rpma_conn_get_compl_fd(3).
 */
#include "side.h"

static const Options sharing = {.rcq_size = 10, .shared_channel = true};

static void receive_one(const Pair *pair, uint64_t context) {
    CHECK_OK(post(pair->client, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = context}));
    CHECK_OK(post(pair->server, (Work){.operation = SEND, .length = 64}));
    EXPECT_DONE(pair->server, 0);
}

static int fd_of(const Side *side) {
    int fd = -1;
    CHECK_OK(rpma_conn_get_compl_fd(side->conn, &fd));
    CHECK(fd >= 0);
    return fd;
}

/* Waits for one event, which must be that of this queue. */
static void wait_for(Side *side, Queue queue) {
    struct rpma_cq *cq = NULL;
    bool is_rcq = queue != RECV_CQ;
    CHECK_OK(rpma_conn_wait(side->conn, 0, &cq, &is_rcq));
    CHECK(cq == queue_of(side, queue));
    CHECK_EQ(is_rcq, queue == RECV_CQ);
}

/* ---- rpma_conn_wait ---------------------------------------------------------------------------------------------- */

TEST(conn_wait__tells_the_queue) {
    Pair pair = connected_pair(sharing);
    receive_one(&pair, 1);
    wait_for(pair.client, RECV_CQ);
    EXPECT_RECEIVED(pair.client, 1);
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .length = 8, .context = 2}));
    wait_for(pair.client, MAIN_CQ);
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

TEST(conn_wait__is_rcq_may_be_null) {
    Pair pair = connected_pair(sharing);
    struct rpma_cq *cq = NULL;
    receive_one(&pair, 1);
    CHECK_OK(rpma_conn_wait(pair.client->conn, 0, &cq, NULL));
    CHECK(cq == queue_of(pair.client, RECV_CQ));
    pair_close(&pair);
}

/* Each queue has an event of its own, in whatever order they come. */
TEST(conn_wait__events_of_both_queues) {
    Pair pair = connected_pair(sharing);
    int seen[2] = {0, 0};
    receive_one(&pair, 1);
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .length = 8, .context = 2}));
    while (!seen[0] || !seen[1]) {
        struct rpma_cq *cq = NULL;
        struct ibv_wc wc;
        bool is_rcq = false;
        CHECK_OK(rpma_conn_wait(pair.client->conn, 0, &cq, &is_rcq));
        int rc = rpma_cq_get_wc(cq, 1, &wc, NULL);
        if (rc != RPMA_E_NO_COMPLETION) CHECK_OK(rc);
        if (rc == 0) CHECK_EQ(wc.wr_id, is_rcq ? 1 : 2);
        if (rc == 0) seen[is_rcq] = 1;
    }
    pair_close(&pair);
}

TEST(conn_wait__without_a_queue_for_receives) {
    Pair pair = connected_pair((Options){.shared_channel = true});
    bool is_rcq = true;
    struct rpma_cq *cq = NULL;
    receive_one(&pair, 1);
    CHECK_OK(rpma_conn_wait(pair.client->conn, 0, &cq, &is_rcq));
    CHECK(cq == queue_of(pair.client, MAIN_CQ) && !is_rcq);
    EXPECT_RECEIVED(pair.client, 1);
    pair_close(&pair);
}

static void do_wait(Side *side, void *unused) {
    (void)unused;
    wait_for(side, RECV_CQ);
}

TEST(conn_wait__until_a_completion_comes) {
    Pair pair = connected_pair(sharing);
    Task task;
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}));
    begin(&task, pair.server, do_wait, NULL, 0);
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .context = 2}));
    finish(&task);
    EXPECT_RECEIVED(pair.server, 1);
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

TEST(conn_wait__again_and_again) {
    Pair pair = connected_pair(sharing);
    for (int i = 0; i < 200; ++i) {
        tell(pair.client, pair.server);
        tell(pair.server, pair.client);
    }
    pair_close(&pair);
}

TEST(conn_wait__nonblocking) {
    Pair pair = connected_pair(sharing);
    struct rpma_cq *cq = NULL;
    int fd = fd_of(pair.client);
    set_nonblocking(fd, true);
    CHECK_RC(rpma_conn_wait(pair.client->conn, 0, &cq, NULL), RPMA_E_NO_COMPLETION);
    CHECK(cq == NULL);
    receive_one(&pair, 1);
    CHECK(readable(fd, (int)LONG_MS));
    wait_for(pair.client, RECV_CQ);
    EXPECT_RECEIVED(pair.client, 1);
    CHECK_RC(rpma_conn_wait(pair.client->conn, 0, &cq, NULL), RPMA_E_NO_COMPLETION);
    pair_close(&pair);
}

static void a_signal_ends(const Side *side) {
    struct rpma_cq *cq = NULL;
    timer_t timer = start_signals();
    CHECK_RC(rpma_conn_wait(side->conn, 0, &cq, NULL), RPMA_E_NO_COMPLETION);
    stop_signals(timer);
    CHECK(cq == NULL);
}

TEST(conn_wait__a_signal_ends_the_wait) {
    Pair pair = connected_pair(sharing);
    a_signal_ends(pair.client);
    fd_of(pair.client);
    a_signal_ends(pair.client);
    pair_close(&pair);
}

TEST(conn_wait__null_is_invalid) {
    Pair pair = connected_pair(sharing);
    struct rpma_cq *cq = NULL;
    bool is_rcq = false;
    CHECK_INVAL(rpma_conn_wait(NULL, 0, &cq, &is_rcq));
    CHECK(cq == NULL);
    CHECK_INVAL(rpma_conn_wait(pair.client->conn, 0, NULL, &is_rcq));
    pair_close(&pair);
}

TEST(conn_wait__on_a_channel_that_is_not_shared) {
    Pair pair = connected_pair((Options){.rcq_size = 10});
    struct rpma_cq *cq = NULL;
    CHECK_RC(rpma_conn_wait(pair.client->conn, 0, &cq, NULL), RPMA_E_NOT_SHARED_CHNL);
    CHECK(cq == NULL);
    pair_close(&pair);
}

/* ---- rpma_conn_get_compl_fd -------------------------------------------------------------------------------------- */

TEST(conn_get_compl_fd__is_readable_until_the_event_is_taken) {
    Pair pair = connected_pair(sharing);
    int fd = fd_of(pair.client);
    CHECK(!readable(fd, 0));
    receive_one(&pair, 1);
    CHECK(readable(fd, (int)LONG_MS));
    wait_for(pair.client, RECV_CQ);
    EXPECT_RECEIVED(pair.client, 1);
    CHECK(!readable(fd, 0));
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .length = 8, .context = 2}));
    CHECK(readable(fd, (int)LONG_MS));
    wait_for(pair.client, MAIN_CQ);
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

TEST(conn_get_compl_fd__is_that_of_both_queues) {
    Pair pair = connected_pair(sharing);
    int fd = fd_of(pair.client), main_fd = -1, recv_fd = -1;
    CHECK_OK(rpma_cq_get_fd(queue_of(pair.client, MAIN_CQ), &main_fd));
    CHECK_OK(rpma_cq_get_fd(queue_of(pair.client, RECV_CQ), &recv_fd));
    CHECK_EQ(main_fd, fd);
    CHECK_EQ(recv_fd, fd);
    pair_close(&pair);
}

TEST(conn_get_compl_fd__null_is_invalid) {
    Pair pair = connected_pair(sharing);
    int fd = 4711;
    CHECK_INVAL(rpma_conn_get_compl_fd(NULL, &fd));
    CHECK_EQ(fd, 4711);
    CHECK_INVAL(rpma_conn_get_compl_fd(pair.client->conn, NULL));
    pair_close(&pair);
}

TEST(conn_get_compl_fd__of_a_channel_that_is_not_shared) {
    Pair pair = connected_pair((Options){.rcq_size = 10});
    int fd = 4711;
    CHECK_RC(rpma_conn_get_compl_fd(pair.client->conn, &fd), RPMA_E_NOT_SHARED_CHNL);
    CHECK_EQ(fd, 4711);
    pair_close(&pair);
}
