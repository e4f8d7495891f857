/* SPDX-License-Identifier: BSD-3-Clause
 * What ends a waiting call besides what it waits for, and what does not: cancellation, signals, the end of the object.
 * rpma_ep_next_conn_req(3), rpma_conn_next_event(3), rpma_cq_wait(3), rpma_conn_wait(3).
 *
 * Threads of the server wait, in the process of the case. The client, in another process, asks, hangs up and sends.
 */
#include "../support/sleeper.h"
#include "side.h"

#include <sched.h>
#include <signal.h>

static Side *server, *client;

typedef struct {
    Options options;
    void (*prepare)(void);
    int (*call)(void);
    int interrupted;      /* what a signal makes of it */
    SideFunction provoke; /* at the client, with the server's port: causes what the call waits for */
    void (*check)(void);  /* that the call has given it; and everything is as before */
} Wait;

static int result;

static void call_once(void *wait) { result = ((const Wait *)wait)->call(); }

static void start(Sleeper *sleeper, const Wait *wait) { sleeper_start(sleeper, call_once, (void *)(uintptr_t)wait); }

static void open_for(const Wait *wait) {
    client = new_side(peer_start());
    server = new_side(NULL);
    side_open(client, wait->options);
    side_open(server, wait->options);
    listen_at(server);
}

static void close_both(void) {
    side_close(server);
    side_close(client);
}

/* Another call of this thread gets what comes then. */
static void expect_next(const Wait *wait) {
    at(client, wait->provoke, server->port, sizeof server->port);
    CHECK_OK(wait->call());
    wait->check();
}

/* ---- What the calls wait for ------------------------------------------------------------------------------------- */

static void ask(Side *side, void *port) {
    CHECK_OK(rpma_conn_req_new(side->peer, test_address(), port, side->cfg, &side->req));
    CHECK_OK(rpma_conn_req_connect(&side->req, NULL, &side->conn));
}

static void hang_up(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_conn_disconnect(side->conn));
}

static void send_one(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(post(side, (Work){.operation = SEND, .length = 8, .context = 2}));
}

static void prepare_nothing(void) {}
static int wait_for_request(void) { return rpma_ep_next_conn_req(server->ep, server->cfg, &server->req); }

static void check_request(void) {
    CHECK_OK(rpma_conn_req_delete(&server->req));
    EXPECT_EVENT(client, RPMA_CONN_REJECTED);
    delete_conn(client);
}

static const Wait for_request = {{0}, prepare_nothing, wait_for_request, RPMA_E_NO_EVENT, ask, check_request};

static enum rpma_conn_event event;

static void connect_both(void) {
    if (server->conn == NULL) pair_connect(&(Pair){client, server});
}

static int wait_for_event(void) { return rpma_conn_next_event(server->conn, &event); }

static void check_event(void) {
    CHECK_EQ(event, RPMA_CONN_CLOSED);
    disconnect(server);
    EXPECT_EVENT(client, RPMA_CONN_CLOSED);
    delete_conn(server);
    delete_conn(client);
}

static const Wait for_event = {{0}, connect_both, wait_for_event, RPMA_E_NO_EVENT, hang_up, check_event};

/* With its descriptor, a wait is another one. */
static void connect_with_fd(void) {
    int fd = -1;
    connect_both();
    CHECK_OK(rpma_cq_get_fd(queue_of(server, RECV_CQ), &fd));
}

static void receive_one(void) {
    connect_both();
    CHECK_OK(post(server, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}));
}

static void receive_one_with_fd(void) {
    connect_with_fd();
    receive_one();
}

static int wait_for_completion(void) { return rpma_cq_wait(queue_of(server, RECV_CQ)); }

static int wait_for_either(void) {
    struct rpma_cq *cq = NULL;
    int rc = rpma_conn_wait(server->conn, 0, &cq, NULL);
    if (rc == 0) CHECK(cq == queue_of(server, RECV_CQ));
    return rc;
}

static void check_received(void) {
    EXPECT_RECEIVED(server, 1);
    EXPECT_DONE(client, 2);
}

#define SHARING \
    { .rcq_size = 10, .shared_channel = true }

static const Wait on_cq = {{0}, receive_one, wait_for_completion, RPMA_E_NO_COMPLETION, send_one, check_received};
static const Wait on_cq_with_fd = {{0},      receive_one_with_fd, wait_for_completion, RPMA_E_NO_COMPLETION,
                                   send_one, check_received};
static const Wait on_channel = {SHARING, receive_one, wait_for_either, RPMA_E_NO_COMPLETION, send_one, check_received};
static const Wait on_channel_with_fd = {SHARING,  receive_one_with_fd, wait_for_either, RPMA_E_NO_COMPLETION,
                                        send_one, check_received};

/* ---- Cancellation ------------------------------------------------------------------------------------------------ */

static void cancel_before_it_comes(const Wait *wait) {
    Sleeper sleeper = {0};
    wait->prepare();
    start(&sleeper, wait);
    CHECK(sleeper_cancel(&sleeper));
    expect_next(wait);
}

/* Either the thread gets it, or the next one. */
static void cancel_as_it_comes(const Wait *wait, unsigned turns) {
    Sleeper sleeper = {0};
    Task task;
    wait->prepare();
    start(&sleeper, wait);
    begin(&task, client, wait->provoke, server->port, sizeof server->port);
    for (unsigned i = 0; i < turns; ++i) sched_yield();
    if (sleeper_cancel(&sleeper)) result = wait->call();
    finish(&task);
    CHECK_OK(result);
    wait->check();
}

static void check_cancelled(const Wait *wait) {
    open_for(wait);
    for (unsigned round = 0; round < 4; ++round) {
        cancel_before_it_comes(wait);
        cancel_as_it_comes(wait, round * round * 20);
    }
    close_both();
}

TEST(ep_next_conn_req__a_cancelled_thread_loses_nothing) { check_cancelled(&for_request); }
TEST(conn_next_event__a_cancelled_thread_loses_nothing) { check_cancelled(&for_event); }
TEST(cq_wait__a_cancelled_thread_loses_nothing) { check_cancelled(&on_cq); }
TEST(cq_wait__a_cancelled_thread_loses_nothing_with_a_descriptor) { check_cancelled(&on_cq_with_fd); }
TEST(conn_wait__a_cancelled_thread_loses_nothing) { check_cancelled(&on_channel); }
TEST(conn_wait__a_cancelled_thread_loses_nothing_with_a_descriptor) { check_cancelled(&on_channel_with_fd); }

/* The request stays pending until the thread allows cancellation again. */
static void check_uncancellable(const Wait *wait) {
    Sleeper sleeper = {.uncancellable = true};
    open_for(wait);
    wait->prepare();
    start(&sleeper, wait);
    CHECK(pthread_cancel(sleeper.thread) == 0);
    CHECK(sleeps_on(&sleeper));
    at(client, wait->provoke, server->port, sizeof server->port);
    CHECK(sleeper_join(&sleeper) && sleeper.returned);
    CHECK_OK(result);
    wait->check();
    close_both();
}

TEST(ep_next_conn_req__cancellation_can_be_disabled) { check_uncancellable(&for_request); }
TEST(conn_next_event__cancellation_can_be_disabled) { check_uncancellable(&for_event); }
TEST(cq_wait__cancellation_can_be_disabled) { check_uncancellable(&on_cq); }
TEST(conn_wait__cancellation_can_be_disabled) { check_uncancellable(&on_channel); }

/* ---- Posting and polling ----------------------------------------------------------------------------------------- */

enum { EXCHANGES = 20, SMALL = 8, LARGE = 300 * 1024 };

static uint32_t length;

/* The other side sleeps meanwhile, so that it must be woken. */
static void answer_messages(Side *side, void *unused) {
    (void)unused;
    for (int i = 0; i < EXCHANGES; ++i) {
        EXPECT_RECEIVED(side, 1);
        CHECK_OK(post(side, (Work){.operation = RECV, .at = RECV_AT, .length = LARGE, .context = 1}));
        CHECK_OK(post(side, (Work){.operation = SEND, .length = 8, .context = 2}));
        EXPECT_DONE(side, 2);
    }
}

static void post_and_poll(void *argument) {
    Side *side = argument;
    static const Work works[] = {{.operation = RECV, .at = RECV_AT},
                                 {.operation = SEND},
                                 {.operation = WRITE, .to = RECV_AT + LARGE},
                                 {.operation = READ, .at = RECV_AT + LARGE, .to = RECV_AT + LARGE},
                                 {.operation = ATOMIC_WRITE, .to = RECV_AT + LARGE},
                                 {.operation = FLUSH_VISIBILITY, .to = RECV_AT + LARGE}};
    const unsigned count = sizeof works / sizeof *works;
    struct ibv_wc wc;
    for (unsigned i = 0; i < count; ++i) {
        Work one = works[i];
        one.length = length;
        CHECK_OK(post(side, one));
    }
    for (unsigned done = 0; done < count; sched_yield()) {
        if (!poll_wc(side, MAIN_CQ, &wc) && !poll_wc(side, RECV_CQ, &wc)) continue;
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
        ++done;
    }
}

static void check_working(uint32_t bytes) {
    Pair pair = connected_pair((Options){.rcq_size = 10});
    Task task;
    length = bytes;
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .at = RECV_AT, .length = LARGE, .context = 1}));
    begin(&task, pair.server, answer_messages, NULL, 0);
    run_while_cancelled(post_and_poll, pair.client, EXCHANGES);
    finish(&task);
    pair_close(&pair);
}

TEST(conn__posting_and_polling_are_no_cancellation_points) { check_working(SMALL); }
TEST(conn__posting_and_polling_large_messages_are_no_cancellation_points) { check_working(LARGE); }

static void cancellable_log(enum rpma_log_level level, const char *file_name, const int line_no,
                            const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
    pthread_testcancel();
}

static void post_what_is_logged(void *argument) {
    Side *side = argument;
    CHECK_OK(post(side, (Work){.operation = FLUSH_VISIBILITY, .length = MEMORY_BYTES + 1, .context = 1}));
    CHECK_INVAL(rpma_flush(NULL, side->target, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL));
}

TEST(conn__a_log_function_of_posts_is_no_cancellation_point) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(rpma_log_set_function(cancellable_log));
    CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG));
    run_while_cancelled(post_what_is_logged, pair.client, 1);
    EXPECT_DONE(pair.client, 1);
    pair_close(&pair);
}

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

/* With both kinds of handlers at once. */
static void check_signals(const Wait *wait) {
    Sleeper sleeper = {0};
    open_for(wait);
    wait->prepare();
    count_signals(SIGUSR1, SA_RESTART);
    count_signals(SIGUSR2, 0);
    start(&sleeper, wait);
    CHECK(sleeper_disturb(&sleeper, SIGUSR1) > 0);
    sleeper_interrupt(&sleeper, SIGUSR2);
    CHECK_RC(result, wait->interrupted);
    expect_next(wait);
    close_both();
}

TEST(ep_next_conn_req__a_signal_ends_it_unless_it_restarts) { check_signals(&for_request); }
TEST(conn_next_event__a_signal_ends_it_unless_it_restarts) { check_signals(&for_event); }
TEST(cq_wait__a_signal_ends_it_unless_it_restarts) { check_signals(&on_cq); }
TEST(cq_wait__a_signal_ends_it_unless_it_restarts_with_a_descriptor) { check_signals(&on_cq_with_fd); }
TEST(conn_wait__a_signal_ends_it_unless_it_restarts) { check_signals(&on_channel); }
TEST(conn_wait__a_signal_ends_it_unless_it_restarts_with_a_descriptor) { check_signals(&on_channel_with_fd); }

static void check_other_signals(const Wait *wait) {
    Sleeper sleeper = {0};
    open_for(wait);
    wait->prepare();
    block_signal(SIGUSR2);
    CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
    start(&sleeper, wait);
    CHECK_EQ(sleeper_disturb(&sleeper, SIGUSR2), 0);
    sleeper_disturb(&sleeper, SIGUSR1);
    sleeper_disturb(&sleeper, SIGURG); /* ignored by default */
    at(client, wait->provoke, server->port, sizeof server->port);
    CHECK(!sleeper_join(&sleeper));
    CHECK_OK(result);
    wait->check();
    close_both();
}

TEST(ep_next_conn_req__blocked_and_ignored_signals) { check_other_signals(&for_request); }
TEST(conn_next_event__blocked_and_ignored_signals) { check_other_signals(&for_event); }
TEST(cq_wait__blocked_and_ignored_signals) { check_other_signals(&on_cq); }
TEST(conn_wait__blocked_and_ignored_signals) { check_other_signals(&on_channel); }

/* ---- The end of the object --------------------------------------------------------------------------------------- */

TEST(ep_shutdown__ends_waiting_for_requests) {
    Sleeper sleeper = {0};
    open_for(&for_request);
    start(&sleeper, &for_request);
    struct rpma_ep *ep = server->ep;
    CHECK_OK(rpma_ep_shutdown(&ep));
    CHECK(ep == NULL);
    CHECK(!sleeper_join(&sleeper));
    CHECK_INVAL(result);
    CHECK(server->req == NULL);
    server->ep = NULL;
    close_both();
}

static void check_deleted(const Wait *wait, void (*prepare)(void)) {
    Sleeper sleeper = {0};
    open_for(wait);
    prepare();
    start(&sleeper, wait);
    struct rpma_conn *conn = server->conn;
    CHECK_OK(rpma_conn_delete(&conn));
    CHECK(conn == NULL);
    CHECK(!sleeper_join(&sleeper));
    CHECK_INVAL(result);
    server->conn = NULL;
    EXPECT_EVENT(client, RPMA_CONN_CLOSED);
    close_both();
}

TEST(conn_delete__ends_waiting_for_events) { check_deleted(&for_event, connect_both); }
TEST(conn_delete__ends_waiting_on_a_queue) { check_deleted(&on_cq, connect_both); }
TEST(conn_delete__ends_waiting_on_a_queue_with_a_descriptor) { check_deleted(&on_cq_with_fd, connect_with_fd); }
TEST(conn_delete__ends_waiting_for_work) { check_deleted(&on_cq, receive_one); }
TEST(conn_delete__ends_waiting_for_work_with_a_descriptor) { check_deleted(&on_cq_with_fd, receive_one_with_fd); }
TEST(conn_delete__ends_waiting_on_the_channel) { check_deleted(&on_channel, connect_both); }
TEST(conn_delete__ends_waiting_on_the_channel_with_a_descriptor) {
    check_deleted(&on_channel_with_fd, connect_with_fd);
}
TEST(conn_delete__ends_waiting_for_work_on_the_channel) { check_deleted(&on_channel, receive_one); }
