/* SPDX-License-Identifier: BSD-3-Clause
 * What ends dat_evd_wait and dat_cno_wait besides what they wait for, and what does not: cancellation of the thread,
 * signals, the end of the EVD and of the IA.
 *
 * Threads wait here, in the process of the case. The other side, in a process of its own, connects, hangs up and sends.
 */
#include "scene.h"
#include "waiter.h"

#include <sched.h>
#include <signal.h>

static Side *here, *there;
static Task task; /* of the other process */
static DAT_EVD_HANDLE software;
static DAT_CNO_HANDLE cno;

typedef struct {
    void (*prepare)(void);
    Waiter (*waiter)(void);
    void (*provoke)(void);               /* lets begin what causes what the call waits for */
    void (*check)(const Waiter *waiter); /* that the call has given it; and everything is as before */
} Wait;

static void open_both(void) {
    there = new_side(peer_start());
    here = new_side(NULL);
    side_open(there, (Options){0});
    side_open(here, (Options){0});
    listen_at(here);
    software = new_evd(here->ia, DAT_EVD_SOFTWARE_FLAG);
    CHECK_OK(dat_cno_create(here->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
}

static bool connected(void) { return state_of(here->ep) == DAT_EP_STATE_CONNECTED; }

static void close_both(void) {
    CHECK_OK(dat_evd_modify_cno(here->evds[RECV], DAT_HANDLE_NULL));
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_evd_free(software));
    if (connected()) {
        pair_close(&(Pair){there, here});
    } else {
        side_close(here);
        side_close(there);
    }
}

/* Another call, of this thread, gets what comes then. */
static void expect_next(const Wait *wait) {
    Waiter waiter = wait->waiter();
    wait->provoke();
    waiter_wait(&waiter);
    CHECK_OK(waiter.rc);
    wait->check(&waiter);
}

/* ---- What the calls wait for ------------------------------------------------------------------------------------- */

static void prepare_nothing(void) {}

static void do_reset(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(dat_ep_reset(side->ep));
}

static Waiter on_requests(void) { return (Waiter){.evd = here->evds[CR]}; }

static void do_ask(Side *side, void *qual) { CHECK_OK(request_to(side, side->ep, *(DAT_CONN_QUAL *)qual)); }
static void ask(void) { begin(&task, there, do_ask, &here->qual, sizeof here->qual); }

static void check_request(const Waiter *waiter) {
    CHECK_EQ(waiter->event.event_number, DAT_CONNECTION_REQUEST_EVENT);
    CHECK_OK(dat_cr_reject(waiter->event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
    finish(&task);
    EXPECT_EVENT(there, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
    at(there, do_reset, NULL, 0);
}

static const Wait for_request = {prepare_nothing, on_requests, ask, check_request};

static void connect_both(void) {
    if (!connected()) pair_connect(&(Pair){there, here});
}

static Waiter on_connections(void) { return (Waiter){.evd = here->evds[CONN]}; }

static void do_hang_up(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(dat_ep_disconnect(side->ep, DAT_CLOSE_ABRUPT_FLAG));
}

static void hang_up(void) { begin(&task, there, do_hang_up, NULL, 0); }

static void check_end(const Waiter *waiter) {
    CHECK_EQ(waiter->event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
    finish(&task);
    EXPECT_EVENT(there, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    at(there, do_reset, NULL, 0);
    at(here, do_reset, NULL, 0);
}

static const Wait for_end = {connect_both, on_connections, hang_up, check_end};

static void receive_one(void) {
    connect_both();
    CHECK_OK(post(here, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
}

static Waiter on_receives(void) { return (Waiter){.evd = here->evds[RECV]}; }

static void do_send(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(post(side, (Work){.operation = SEND, .length = 8, .cookie = 2}));
    EXPECT_DONE(side, 2);
}

static void send_one(void) { begin(&task, there, do_send, NULL, 0); }

static void check_received(const Waiter *waiter) {
    CHECK_EQ(waiter->event.event_number, DAT_DTO_COMPLETION_EVENT);
    CHECK_EQ(waiter->event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
    CHECK_EQ(waiter->event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
    finish(&task);
}

static const Wait for_receive = {receive_one, on_receives, send_one, check_received};

static Waiter on_software(void) { return (Waiter){.evd = software}; }

static void post_event(void) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    CHECK_OK(dat_evd_post_se(software, &event));
}

static void check_event(const Waiter *waiter) { CHECK_EQ(waiter->event.event_number, DAT_SOFTWARE_EVENT); }

static const Wait for_software = {prepare_nothing, on_software, post_event, check_event};

static void receive_one_with_cno(void) {
    CHECK_OK(dat_evd_modify_cno(here->evds[RECV], cno));
    receive_one();
}

static Waiter on_cno(void) { return (Waiter){.cno = cno}; }

static void check_notified(const Waiter *waiter) {
    CHECK(waiter->notified == here->evds[RECV]);
    EXPECT_RECEIVED(here, 1);
    finish(&task);
}

static const Wait for_cno = {receive_one_with_cno, on_cno, send_one, check_notified};

/* ---- Cancellation ------------------------------------------------------------------------------------------------ */

static void cancel_before_it_comes(const Wait *wait) {
    Waiter waiter = wait->waiter();
    wait->prepare();
    waiter_start(&waiter);
    CHECK(sleeper_cancel(&waiter.sleeper));
    expect_next(wait);
}

/* Either the thread gets it, or the next one. */
static void cancel_as_it_comes(const Wait *wait, unsigned turns) {
    Waiter waiter = wait->waiter();
    wait->prepare();
    waiter_start(&waiter);
    wait->provoke();
    for (unsigned i = 0; i < turns; ++i) sched_yield();
    if (sleeper_cancel(&waiter.sleeper)) waiter_wait(&waiter);
    CHECK_OK(waiter.rc);
    wait->check(&waiter);
}

static void check_cancelled(const Wait *wait) {
    open_both();
    for (unsigned round = 0; round < 4; ++round) {
        cancel_before_it_comes(wait);
        cancel_as_it_comes(wait, round * round * 20);
    }
    close_both();
}

TEST(evd_wait__for_requests_by_a_cancelled_thread) { check_cancelled(&for_request); }
TEST(evd_wait__for_connections_by_a_cancelled_thread) { check_cancelled(&for_end); }
TEST(evd_wait__for_completions_by_a_cancelled_thread) { check_cancelled(&for_receive); }
TEST(evd_wait__for_software_events_by_a_cancelled_thread) { check_cancelled(&for_software); }
TEST(cno_wait__by_a_cancelled_thread) { check_cancelled(&for_cno); }

/* The cancellation stays pending until the thread allows it again. */
static void check_uncancellable(const Wait *wait) {
    open_both();
    Waiter waiter = wait->waiter();
    waiter.sleeper.uncancellable = true;
    wait->prepare();
    waiter_start(&waiter);
    CHECK(pthread_cancel(waiter.sleeper.thread) == 0);
    CHECK(sleeps_on(&waiter.sleeper));
    wait->provoke();
    CHECK(sleeper_join(&waiter.sleeper) && waiter.sleeper.returned);
    CHECK_OK(waiter.rc);
    wait->check(&waiter);
    close_both();
}

TEST(evd_wait__for_requests_with_cancellation_disabled) { check_uncancellable(&for_request); }
TEST(evd_wait__for_connections_with_cancellation_disabled) { check_uncancellable(&for_end); }
TEST(evd_wait__for_completions_with_cancellation_disabled) { check_uncancellable(&for_receive); }
TEST(evd_wait__for_software_events_with_cancellation_disabled) { check_uncancellable(&for_software); }
TEST(cno_wait__with_cancellation_disabled) { check_uncancellable(&for_cno); }

/* ---- Posting and polling ----------------------------------------------------------------------------------------- */

enum { EXCHANGES = 20, SMALL = 8, LARGE = 300 * 1024 };

static DAT_SEG_LENGTH length;

/* The other process sleeps meanwhile, so that it must be woken. */
static void do_answer(Side *side, void *unused) {
    (void)unused;
    for (int i = 0; i < EXCHANGES; ++i) {
        EXPECT_RECEIVED(side, 1);
        CHECK_OK(post(side, (Work){.operation = RECEIVE, .at = RECV_AT, .length = LARGE, .cookie = 1}));
        CHECK_OK(post(side, (Work){.operation = SEND, .length = SMALL, .cookie = 2}));
        EXPECT_DONE(side, 2);
    }
}

static void poll_one(Stream stream) {
    DAT_EVENT event;
    while (!poll_event(here, stream, &event)) sched_yield();
    CHECK_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

static void post_and_poll(void *unused) {
    (void)unused;
    CHECK_OK(post(here, (Work){.operation = RECEIVE, .at = RECV_AT, .length = LARGE}));
    CHECK_OK(post(here, (Work){.operation = WRITE, .to = RECV_AT + LARGE, .length = length}));
    CHECK_OK(post(here, (Work){.operation = READ, .at = RECV_AT + LARGE, .to = RECV_AT + LARGE, .length = length}));
    CHECK_OK(post(here, (Work){.operation = SEND, .length = length}));
    for (int i = 0; i < 3; ++i) poll_one(REQUEST);
    poll_one(RECV);
    post_event();
    DAT_EVENT event;
    CHECK_OK(dat_evd_dequeue(software, &event));
}

static void check_working(DAT_SEG_LENGTH bytes) {
    length = bytes;
    open_both();
    connect_both();
    CHECK_OK(post(there, (Work){.operation = RECEIVE, .at = RECV_AT, .length = LARGE, .cookie = 1}));
    begin(&task, there, do_answer, NULL, 0);
    run_while_cancelled(post_and_poll, NULL, EXCHANGES);
    finish(&task);
    close_both();
}

TEST(messages__posting_and_polling_are_no_cancellation_points) { check_working(SMALL); }
TEST(messages__posting_and_polling_large_ones_are_no_cancellation_points) { check_working(LARGE); }

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

/* With both kinds of handlers at once. */
static void check_signals(const Wait *wait) {
    open_both();
    Waiter waiter = wait->waiter();
    wait->prepare();
    count_signals(SIGUSR1, SA_RESTART);
    count_signals(SIGUSR2, 0);
    waiter_start(&waiter);
    CHECK(sleeper_disturb(&waiter.sleeper, SIGUSR1) > 0);
    sleeper_interrupt(&waiter.sleeper, SIGUSR2);
    CHECK_RC(waiter.rc, DAT_INTERRUPTED_CALL);
    expect_next(wait);
    close_both();
}

TEST(evd_wait__for_requests_and_signals_that_restart_or_end_it) { check_signals(&for_request); }
TEST(evd_wait__for_connections_and_signals_that_restart_or_end_it) { check_signals(&for_end); }
TEST(evd_wait__for_completions_and_signals_that_restart_or_end_it) { check_signals(&for_receive); }
TEST(evd_wait__for_software_events_and_signals_that_restart_or_end_it) { check_signals(&for_software); }
TEST(cno_wait__signals_that_restart_or_end_it) { check_signals(&for_cno); }

static void check_other_signals(const Wait *wait) {
    open_both();
    Waiter waiter = wait->waiter();
    wait->prepare();
    block_signal(SIGUSR2);
    CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
    waiter_start(&waiter);
    CHECK_EQ(sleeper_disturb(&waiter.sleeper, SIGUSR2), 0);
    sleeper_disturb(&waiter.sleeper, SIGUSR1);
    sleeper_disturb(&waiter.sleeper, SIGURG); /* ignored by default */
    wait->provoke();
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    wait->check(&waiter);
    close_both();
}

TEST(evd_wait__for_requests_and_blocked_and_ignored_signals) { check_other_signals(&for_request); }
TEST(evd_wait__for_connections_and_blocked_and_ignored_signals) { check_other_signals(&for_end); }
TEST(evd_wait__for_completions_and_blocked_and_ignored_signals) { check_other_signals(&for_receive); }
TEST(evd_wait__for_software_events_and_blocked_and_ignored_signals) { check_other_signals(&for_software); }
TEST(cno_wait__blocked_and_ignored_signals) { check_other_signals(&for_cno); }

/* ---- The end of the object --------------------------------------------------------------------------------------- */

/* Of other streams than in evd_wait.c. */
TEST(evd_free__ends_waiting_for_requests_and_connections) {
    const DAT_EVD_FLAGS flags[] = {DAT_EVD_CR_FLAG, DAT_EVD_CONNECTION_FLAG};
    DAT_IA_HANDLE ia = open_ia(NULL);
    for (int i = 0; i < 2; ++i) {
        Waiter waiter = {.evd = new_evd(ia, flags[i])};
        waiter_start(&waiter);
        CHECK_OK(dat_evd_free(waiter.evd));
        waiter_join(&waiter);
        CHECK_RC(waiter.rc, DAT_ABORT);
    }
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* Those that an endpoint and a service point use, and a CNO, all at once. */
TEST(ia_close__abrupt_ends_all_waits) {
    Waiter waiters[EVDS];
    open_both();
    CHECK_OK(dat_evd_modify_cno(here->evds[RECV], cno));
    Waiter notified = {.cno = cno, .rc = DAT_INTERNAL_ERROR, .notified = here->ia};
    waiter_start(&notified);
    for (int i = ASYNC; i < EVDS; ++i) {
        waiters[i] = (Waiter){.evd = here->evds[i]};
        waiter_start(&waiters[i]);
    }
    CHECK_OK(dat_ia_close(here->ia, DAT_CLOSE_ABRUPT_FLAG));
    for (int i = ASYNC; i < EVDS; ++i) {
        waiter_join(&waiters[i]);
        CHECK_RC(waiters[i].rc, DAT_ABORT);
    }
    waiter_join(&notified);
    CHECK_OK(notified.rc);
    CHECK(notified.notified == DAT_HANDLE_NULL);
    side_close(there);
}
