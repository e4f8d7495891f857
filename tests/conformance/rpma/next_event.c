/* SPDX-License-Identifier: BSD-3-Clause
 * Events of connections: rpma_conn_next_event(3), each event with both sides in processes of their own.
 */
#include "side.h"

#include <stdlib.h>

static int event_fd(const Side *side) {
    int fd = -1;
    CHECK_OK(rpma_conn_get_event_fd(side->conn, &fd));
    return fd;
}

static void request_of(const Pair *pair) {
    request_to(pair->client, pair->server);
    connect_request(pair->client);
}

/* ---- Arguments and modes ----------------------------------------------------------------------------------------- */

TEST(conn_next_event__null_is_invalid) {
    Pair pair = open_pair((Options){0});
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    request_of(&pair);
    CHECK_INVAL(rpma_conn_next_event(NULL, &event));
    CHECK_EQ(event, RPMA_CONN_UNDEFINED);
    CHECK_INVAL(rpma_conn_next_event(pair.client->conn, NULL));
}

static void finds_no_event(Side *side) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    set_nonblocking(event_fd(side), true);
    CHECK_RC(rpma_conn_next_event(side->conn, &event), RPMA_E_NO_EVENT);
    CHECK_EQ(event, RPMA_CONN_UNDEFINED);
    set_nonblocking(event_fd(side), false);
}

TEST(conn_next_event__nonblocking) {
    Pair pair = open_pair((Options){0});
    request_of(&pair);
    finds_no_event(pair.client);
    next_request(pair.server);
    finds_no_event(pair.client);
    connect_request(pair.server);
    set_nonblocking(event_fd(pair.client), true);
    CHECK(readable(event_fd(pair.client), (int)LONG_MS));
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    finds_no_event(pair.client);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    pair_close(&pair);
}

static void do_hang_up(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_conn_disconnect(side->conn));
}

static void do_next_event(Side *side, void *event) { CHECK_OK(rpma_conn_next_event(side->conn, event)); }

TEST(conn_next_event__blocks_until_one_comes) {
    Pair pair = connected_pair((Options){0});
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    Task task;
    begin(&task, pair.server, do_next_event, &event, sizeof event);
    disconnect(pair.client);
    finish(&task);
    CHECK_EQ(event, RPMA_CONN_CLOSED);
    disconnect(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
}

/* A signal ends the wait, as it ends a read. */
TEST(conn_next_event__a_signal_ends_the_wait) {
    Pair pair = connected_pair((Options){0});
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    timer_t timer = start_signals();
    CHECK_RC(rpma_conn_next_event(pair.client->conn, &event), RPMA_E_NO_EVENT);
    stop_signals(timer);
    CHECK_EQ(event, RPMA_CONN_UNDEFINED);
    pair_close(&pair);
}

/* ---- Established ------------------------------------------------------------------------------------------------- */

TEST(conn_next_event__established_at_both_sides) {
    Pair pair = open_pair((Options){0});
    begin_connecting(&pair);
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    CHECK(!event_waits(pair.client) && !event_waits(pair.server));
    pair_close(&pair);
}

/* ---- Closed ------------------------------------------------------------------------------------------------------ */

TEST(conn_next_event__closed_by_disconnecting) {
    Pair pair = connected_pair((Options){0});
    disconnect(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    disconnect(pair.client);
    EXPECT_EVENT(pair.server, RPMA_CONN_CLOSED);
}

TEST(conn_next_event__closed_by_deleting_the_other_side) {
    Pair pair = connected_pair((Options){0});
    delete_conn(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
}

TEST(conn_next_event__closed_comes_once) {
    Pair pair = connected_pair((Options){0});
    pair_hang_up(&pair);
    disconnect(pair.client);
    CHECK(!event_waits(pair.client) && !event_waits(pair.server));
}

/* As with stock librpma, for which the kernel hangs up in place of the dead. */
TEST(conn_next_event__closed_when_the_other_process_dies) {
    Pair pair = connected_pair((Options){0});
    peer_kill(pair.server->process);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    CHECK(!event_waits(pair.client));
    disconnect(pair.client);
    CHECK(!event_waits(pair.client));
}

TEST(conn_next_event__closed_by_a_death_and_the_work_is_flushed) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}));
    peer_kill(pair.server->process);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    if (!on_loopback()) disconnect(pair.client); /* a device waits for this */
    EXPECT_WC(pair.client, RECV_CQ, 1, IBV_WC_WR_FLUSH_ERR);
}

/* Stock librpma flushes work when this side hangs up, and the event comes first. Whoever sees flushed work here, and
 * looks for the reason, finds it. */
TEST(conn_next_event__closed_is_there_before_flushed_work_is) {
    Pair pair = open_pair((Options){0});
    for (int round = 0; round < 200; ++round) {
        pair_connect(&pair);
        struct ibv_wc wc;
        bool flushed = false, told = false;
        Task task;
        CHECK_OK(post(pair.client, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}));
        begin(&task, pair.server, do_hang_up, NULL, 0);
        while (!flushed && !told) {
            flushed = poll_wc(pair.client, RECV_CQ, &wc);
            told = event_waits(pair.client);
        }
        finish(&task);
        CHECK(told);
        EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
        delete_conn(pair.client);
        delete_conn(pair.server);
    }
}

static void break_connection(Side *side) {
    CHECK_OK(post(side, (Work){.operation = WRITE, .to = MEMORY_BYTES, .length = 8, .context = 1}));
    EXPECT_WC(side, MAIN_CQ, 1, IBV_WC_REM_ACCESS_ERR);
}

/* The other side has done nothing wrong: for it the connection is closed, at the latest when this side hangs up. */
TEST(conn_next_event__closed_by_a_failed_operation_of_the_other_side) {
    Pair pair = connected_pair((Options){0});
    break_connection(pair.client);
    if (!on_loopback()) disconnect(pair.client);
    EXPECT_EVENT(pair.server, RPMA_CONN_CLOSED);
    CHECK(!event_waits(pair.server));
}

/* A send to a shared receive queue waits for the other side's word, which does not come any more. */
TEST(conn_next_event__closed_by_a_death_with_work_under_way) {
    Pair pair = connected_pair_of((Options){0}, (Options){.srq = true});
    peer_stop(pair.server->process);
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 8, .context = 1}));
    peer_kill(pair.server->process);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    if (!on_loopback()) disconnect(pair.client);
    EXPECT_FAILED(pair.client, MAIN_CQ, 1, IBV_WC_RETRY_EXC_ERR);
}

/* ---- Lost -------------------------------------------------------------------------------------------------------- */

TEST(conn_next_event__lost_by_a_failed_operation) {
    Pair pair = connected_pair((Options){0});
    break_connection(pair.client);
    EXPECT_BREAK(pair.client);
}

TEST(conn_next_event__lost_and_the_work_is_flushed) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}));
    break_connection(pair.client);
    EXPECT_BREAK(pair.client);
    EXPECT_WC(pair.client, RECV_CQ, 1, IBV_WC_WR_FLUSH_ERR);
}

/* Disconnecting takes back a loss that the program has not seen: the end is one event. */
TEST(conn_next_event__disconnecting_replaces_an_unread_loss) {
    Pair pair = connected_pair((Options){0});
    break_connection(pair.client);
    CHECK(readable(event_fd(pair.client), (int)LONG_MS));
    disconnect(pair.client);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    CHECK(!event_waits(pair.client));
}

/* ---- Rejected ---------------------------------------------------------------------------------------------------- */

static void do_delete_request(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_conn_req_delete(&side->req));
}

TEST(conn_next_event__rejected_by_deleting_the_request) {
    Pair pair = open_pair((Options){0});
    request_of(&pair);
    next_request(pair.server);
    CHECK(!event_waits(pair.client));
    at(pair.server, do_delete_request, NULL, 0);
    EXPECT_EVENT(pair.client, RPMA_CONN_REJECTED);
}

TEST(conn_next_event__rejected_where_nobody_listens) {
    Side *client = new_side(NULL);
    side_open(client, (Options){0});
    uint64_t begin = clock_ms();
    request_to(client, client);
    connect_request(client);
    EXPECT_EVENT(client, RPMA_CONN_REJECTED);
    CHECK_TIMED_OUT(begin, on_loopback() && getenv("VIADUCT_CONNECT_RETRY_MS") == NULL ? 50 : 0);
    side_close(client);
}

/* A client may be a moment faster than its server: the request waits for a listener, VIADUCT_CONNECT_RETRY_MS at most.
 */
TEST(conn_next_event__connected_a_moment_before_the_server_listens) {
    CHECK(setenv("VIADUCT_CONNECT_RETRY_MS", "10000", 1) == 0);
    Peer *process = peer_start();
    Pair pair = {new_side(NULL), new_side(process)};
    side_open(pair.client, (Options){0});
    side_open(pair.server, (Options){0});
    request_of(&pair);
    CHECK(!event_waits(pair.client));
    listen_at(pair.server);
    next_request(pair.server);
    connect_request(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    pair_close(&pair);
}

TEST(conn_next_event__rejected_where_nobody_listens_without_grace) {
    CHECK(setenv("VIADUCT_CONNECT_RETRY_MS", "0", 1) == 0);
    Side *client = new_side(NULL);
    side_open(client, (Options){0});
    uint64_t begin = clock_ms();
    request_to(client, client);
    connect_request(client);
    EXPECT_EVENT(client, RPMA_CONN_REJECTED);
    CHECK_AT_ONCE(begin);
    side_close(client);
}

TEST(conn_next_event__rejected_and_connected_at_the_second_try) {
    Pair pair = open_pair((Options){0});
    request_of(&pair);
    next_request(pair.server);
    at(pair.server, do_delete_request, NULL, 0);
    EXPECT_EVENT(pair.client, RPMA_CONN_REJECTED);
    delete_conn(pair.client);
    pair_connect(&pair);
    pair_close(&pair);
}

/* The default timeout of loopback is longer than a case may take. */
TEST(conn_next_event__rejected_when_the_server_dies_with_the_request) {
    Pair pair = open_pair((Options){0});
    CHECK_OK(rpma_conn_cfg_delete(&pair.client->cfg));
    CHECK_OK(rpma_conn_cfg_new(&pair.client->cfg));
    request_of(&pair);
    next_request(pair.server);
    CHECK(!event_waits(pair.client));
    uint64_t begin = clock_ms();
    peer_kill(pair.server->process);
    EXPECT_EVENT(pair.client, RPMA_CONN_REJECTED);
    CHECK_AT_ONCE(begin);
}

TEST(conn_next_event__rejected_when_the_server_dies_before_it_takes_the_request) {
    Pair pair = open_pair((Options){0});
    request_of(&pair);
    peer_kill(pair.server->process);
    EXPECT_EVENT(pair.client, RPMA_CONN_REJECTED);
}

/* ---- Unreachable ------------------------------------------------------------------------------------------------- */

TEST(conn_next_event__unreachable_when_nobody_answers_in_time) {
    Pair pair = open_pair((Options){.timeout_ms = (int)SHORT_MS});
    uint64_t begin = clock_ms();
    request_of(&pair);
    EXPECT_EVENT(pair.client, RPMA_CONN_UNREACHABLE);
    CHECK_TIMED_OUT(begin, SHORT_MS);
    disconnect(pair.client);
}

/* The time that the program has set counts, and no constant: this one is longer than any time that the other cases
 * accept. */
TEST(conn_next_event__unreachable_after_a_longer_time) {
    const uint64_t longer_ms = LONG_MS / 3 + MEDIUM_MS;
    Pair pair = open_pair((Options){.timeout_ms = (int)longer_ms});
    uint64_t begin = clock_ms();
    request_of(&pair);
    EXPECT_EVENT(pair.client, RPMA_CONN_UNREACHABLE);
    CHECK_TIMED_OUT(begin, longer_ms);
}

TEST(conn_next_event__unreachable_while_the_server_holds_the_request) {
    Pair pair = open_pair((Options){.timeout_ms = (int)MEDIUM_MS});
    uint64_t begin = clock_ms();
    request_of(&pair);
    next_request(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_UNREACHABLE);
    CHECK_TIMED_OUT(begin, MEDIUM_MS);
}

TEST(conn_next_event__unreachable_when_the_server_is_stopped) {
    Pair pair = open_pair((Options){.timeout_ms = (int)SHORT_MS});
    peer_stop(pair.server->process);
    uint64_t begin = clock_ms();
    request_of(&pair);
    EXPECT_EVENT(pair.client, RPMA_CONN_UNREACHABLE);
    CHECK_TIMED_OUT(begin, SHORT_MS);
    peer_continue(pair.server->process);
}
