/* SPDX-License-Identifier: BSD-3-Clause
 * Completion queues: rpma_cq_get_wc(3), rpma_cq_wait(3), rpma_cq_get_fd(3).
 */
#include "side.h"

#include <sys/epoll.h>

static int fd_of(struct rpma_cq *cq) {
    int fd = -1;
    CHECK_OK(rpma_cq_get_fd(cq, &fd));
    CHECK(fd >= 0);
    return fd;
}

/* Completes something on the client's queue. */
static void complete_one(const Pair *pair, uint64_t context) {
    CHECK_OK(post(pair->client, (Work){.operation = WRITE, .length = 8, .context = context}));
}

/* Sends the client a message that it receives. */
static void receive_one(const Pair *pair, uint64_t context) {
    CHECK_OK(post(pair->client, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = context}));
    CHECK_OK(post(pair->server, (Work){.operation = SEND, .length = 64}));
    EXPECT_DONE(pair->server, 0);
}

/* ---- rpma_cq_get_wc ---------------------------------------------------------------------------------------------- */

TEST(cq_get_wc__nothing_there) {
    Pair pair = connected_pair((Options){0});
    struct ibv_wc wc[2];
    int got = 4711;
    struct rpma_cq *cq = queue_of(pair.client, MAIN_CQ);
    CHECK_RC(rpma_cq_get_wc(cq, 1, wc, NULL), RPMA_E_NO_COMPLETION);
    CHECK_RC(rpma_cq_get_wc(cq, 2, wc, &got), RPMA_E_NO_COMPLETION);
    pair_close(&pair);
}

TEST(cq_get_wc__as_many_as_there_are) {
    Pair pair = connected_pair((Options){0});
    struct rpma_cq *cq = queue_of(pair.client, MAIN_CQ);
    struct ibv_wc wc[8];
    int got = 0, sum = 0;
    for (uint64_t i = 0; i < 5; ++i) complete_one(&pair, i);
    while (sum < 5) {
        int rc = rpma_cq_get_wc(cq, 8 - sum, wc + sum, &got);
        if (rc != RPMA_E_NO_COMPLETION) CHECK_OK(rc);
        if (rc == 0) sum += got;
    }
    CHECK_EQ(sum, 5);
    for (uint64_t i = 0; i < 5; ++i) CHECK_EQ(wc[i].wr_id, i);
    pair_close(&pair);
}

TEST(cq_get_wc__no_more_than_asked_for) {
    Pair pair = connected_pair((Options){0});
    struct rpma_cq *cq = queue_of(pair.client, MAIN_CQ);
    struct ibv_wc wc[2];
    int got = 0;
    for (uint64_t i = 0; i < 3; ++i) {
        receive_one(&pair, i);
        CHECK_OK(rpma_cq_wait(cq));
    }
    CHECK_OK(rpma_cq_get_wc(cq, 1, wc, &got));
    CHECK_EQ(got, 1);
    CHECK_EQ(wc[0].wr_id, 0);
    CHECK_OK(rpma_cq_get_wc(cq, 1, wc, NULL));
    CHECK_EQ(wc[0].wr_id, 1);
    EXPECT_RECEIVED(pair.client, 2);
    pair_close(&pair);
}

TEST(cq_get_wc__invalid_arguments) {
    Pair pair = connected_pair((Options){0});
    struct rpma_cq *cq = queue_of(pair.client, MAIN_CQ);
    struct ibv_wc wc[2];
    int got = 4711;
    CHECK_INVAL(rpma_cq_get_wc(NULL, 1, wc, &got));
    CHECK_INVAL(rpma_cq_get_wc(cq, 0, wc, &got));
    CHECK_INVAL(rpma_cq_get_wc(cq, -1, wc, &got));
    CHECK_INVAL(rpma_cq_get_wc(cq, 1, NULL, &got));
    CHECK_INVAL(rpma_cq_get_wc(cq, 2, wc, NULL));
    CHECK_EQ(got, 4711);
    pair_close(&pair);
}

/* ---- The receive queue of its own -------------------------------------------------------------------------------- */

TEST(cq_get_wc__receives_have_a_queue_of_their_own) {
    Pair pair = connected_pair((Options){.rcq_size = 10});
    struct ibv_wc wc;
    receive_one(&pair, 1);
    complete_one(&pair, 2);
    EXPECT_DONE(pair.client, 2);
    CHECK(!poll_wc(pair.client, MAIN_CQ, &wc));
    EXPECT_RECEIVED(pair.client, 1);
    CHECK(!poll_wc(pair.client, RECV_CQ, &wc));
    pair_close(&pair);
}

TEST(cq_get_wc__without_one_they_share_the_main_queue) {
    Pair pair = connected_pair((Options){0});
    receive_one(&pair, 1);
    CHECK_EQ(EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_SUCCESS).opcode, IBV_WC_RECV);
    pair_close(&pair);
}

/* A queue for completions holds all that its work queues can hold, whatever size was asked for. */
TEST(cq_get_wc__a_small_queue_loses_nothing) {
    Pair pair = connected_pair((Options){.cq_size = 1});
    for (uint64_t i = 0; i < 10; ++i) complete_one(&pair, i);
    for (uint64_t i = 0; i < 10; ++i) EXPECT_DONE(pair.client, i);
    pair_close(&pair);
}

/* ---- rpma_cq_wait ------------------------------------------------------------------------------------------------ */

static void do_wait(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_cq_wait(queue_of(side, MAIN_CQ)));
}

TEST(cq_wait__until_a_completion_comes) {
    Pair pair = connected_pair((Options){0});
    Task task;
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}));
    begin(&task, pair.server, do_wait, NULL, 0);
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .context = 2}));
    finish(&task);
    struct ibv_wc wc;
    CHECK(poll_wc(pair.server, MAIN_CQ, &wc));
    CHECK_EQ(wc.wr_id, 1);
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

TEST(cq_wait__returns_where_a_completion_waits_already) {
    Pair pair = connected_pair((Options){0});
    receive_one(&pair, 1);
    CHECK_OK(rpma_cq_wait(queue_of(pair.client, MAIN_CQ)));
    EXPECT_RECEIVED(pair.client, 1);
    pair_close(&pair);
}

TEST(cq_wait__on_the_queue_for_receives) {
    Pair pair = connected_pair((Options){.rcq_size = 10});
    receive_one(&pair, 1);
    CHECK_OK(rpma_cq_wait(queue_of(pair.client, RECV_CQ)));
    EXPECT_RECEIVED(pair.client, 1);
    pair_close(&pair);
}

TEST(cq_wait__again_and_again) {
    Pair pair = connected_pair((Options){0});
    for (uint64_t i = 0; i < 200; ++i) {
        tell(pair.client, pair.server);
        tell(pair.server, pair.client);
    }
    pair_close(&pair);
}

/* The end of the connection wakes a wait for a receive. */
TEST(cq_wait__is_ended_by_flushed_work) {
    Pair pair = connected_pair((Options){0});
    Task task;
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}));
    begin(&task, pair.server, do_wait, NULL, 0);
    disconnect(pair.client);
    finish(&task);
    EXPECT_WC(pair.server, RECV_CQ, 1, IBV_WC_WR_FLUSH_ERR);
}

TEST(cq_wait__null_is_invalid) { CHECK_INVAL(rpma_cq_wait(NULL)); }

TEST(cq_wait__nonblocking) {
    Pair pair = connected_pair((Options){0});
    struct rpma_cq *cq = queue_of(pair.client, MAIN_CQ);
    int fd = fd_of(cq);
    set_nonblocking(fd, true);
    CHECK_RC(rpma_cq_wait(cq), RPMA_E_NO_COMPLETION);
    receive_one(&pair, 1);
    CHECK(readable(fd, (int)LONG_MS));
    CHECK_OK(rpma_cq_wait(cq));
    EXPECT_RECEIVED(pair.client, 1);
    CHECK_RC(rpma_cq_wait(cq), RPMA_E_NO_COMPLETION);
    receive_one(&pair, 2);
    CHECK(readable(fd, (int)LONG_MS));
    CHECK_OK(rpma_cq_wait(cq));
    EXPECT_RECEIVED(pair.client, 2);
    pair_close(&pair);
}

static void a_signal_ends(struct rpma_cq *cq) {
    timer_t timer = start_signals();
    CHECK_RC(rpma_cq_wait(cq), RPMA_E_NO_COMPLETION);
    stop_signals(timer);
}

TEST(cq_wait__a_signal_ends_the_wait) {
    Pair pair = connected_pair((Options){0});
    a_signal_ends(queue_of(pair.client, MAIN_CQ));
    fd_of(queue_of(pair.client, MAIN_CQ));
    a_signal_ends(queue_of(pair.client, MAIN_CQ));
    pair_close(&pair);
}

TEST(cq_wait__not_on_a_shared_channel) {
    Pair pair = connected_pair((Options){.rcq_size = 10, .shared_channel = true});
    CHECK_RC(rpma_cq_wait(queue_of(pair.client, MAIN_CQ)), RPMA_E_SHARED_CHANNEL);
    CHECK_RC(rpma_cq_wait(queue_of(pair.client, RECV_CQ)), RPMA_E_SHARED_CHANNEL);
    pair_close(&pair);
}

/* ---- rpma_cq_get_fd ---------------------------------------------------------------------------------------------- */

TEST(cq_get_fd__null_is_invalid) {
    Pair pair = connected_pair((Options){0});
    int fd = 4711;
    CHECK_INVAL(rpma_cq_get_fd(NULL, &fd));
    CHECK_EQ(fd, 4711);
    CHECK_INVAL(rpma_cq_get_fd(queue_of(pair.client, MAIN_CQ), NULL));
    pair_close(&pair);
}

TEST(cq_get_fd__is_readable_until_the_event_is_taken) {
    Pair pair = connected_pair((Options){0});
    struct rpma_cq *cq = queue_of(pair.client, MAIN_CQ);
    int fd = fd_of(cq);
    CHECK(!readable(fd, 0));
    receive_one(&pair, 1);
    CHECK(readable(fd, (int)LONG_MS));
    CHECK_OK(rpma_cq_wait(cq));
    CHECK(!readable(fd, 0));
    EXPECT_RECEIVED(pair.client, 1);
    pair_close(&pair);
}

/* What came before the descriptor was asked for is told, too. */
TEST(cq_get_fd__tells_of_what_waits_already) {
    Pair pair = connected_pair((Options){0});
    receive_one(&pair, 1);
    struct rpma_cq *cq = queue_of(pair.client, MAIN_CQ);
    CHECK(readable(fd_of(cq), (int)LONG_MS));
    CHECK_OK(rpma_cq_wait(cq));
    EXPECT_RECEIVED(pair.client, 1);
    pair_close(&pair);
}

static int epoll_on(int fd, uint32_t events) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = events};
    CHECK(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
    return epoll;
}

static int events_of(int epoll, int timeout_ms) {
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, timeout_ms);
}

/* Both ways of epoll: each message is one event, taken by rpma_cq_wait. */
static void poll_with(uint32_t events) {
    Pair pair = connected_pair((Options){0});
    struct rpma_cq *cq = queue_of(pair.client, MAIN_CQ);
    int fd = fd_of(cq);
    int epoll = epoll_on(fd, events);
    set_nonblocking(fd, true);
    CHECK_EQ(events_of(epoll, 0), 0);
    for (uint64_t i = 0; i < 20; ++i) {
        receive_one(&pair, i);
        CHECK_EQ(events_of(epoll, (int)LONG_MS), 1);
        CHECK_OK(rpma_cq_wait(cq));
        EXPECT_RECEIVED(pair.client, i);
        while (rpma_cq_wait(cq) == 0) continue;
        CHECK_EQ(events_of(epoll, 0), 0);
    }
    close(epoll);
    pair_close(&pair);
}

TEST(cq_get_fd__level_triggered_epoll) { poll_with(EPOLLIN); }
TEST(cq_get_fd__edge_triggered_epoll) { poll_with(EPOLLIN | EPOLLET); }

TEST(cq_get_fd__level_stays_and_edge_comes_once) {
    Pair pair = connected_pair((Options){0});
    int fd = fd_of(queue_of(pair.client, MAIN_CQ));
    int level = epoll_on(fd, EPOLLIN), edge = epoll_on(fd, EPOLLIN | EPOLLET);
    receive_one(&pair, 1);
    CHECK_EQ(events_of(level, (int)LONG_MS), 1);
    CHECK_EQ(events_of(edge, (int)LONG_MS), 1);
    CHECK_EQ(events_of(level, 0), 1);
    CHECK_EQ(events_of(edge, 0), 0);
    close(level);
    close(edge);
    pair_close(&pair);
}
