/* SPDX-License-Identifier: BSD-3-Clause
 * What ends a waiting call besides what it waits for, and what does not: cancellation of its thread (guide,
 * section 7.8), signals, and VipCloseNic. VipConnectWait, VipConnectPeerWait, VipSendWait, VipRecvWait, VipCQWait.
 *
 * Threads wait here, in the process of the case. The other endpoint, in a process of its own, connects, sends and
 * receives.
 */
#include "../support/sleeper.h"
#include "endpoint.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>

static Peer *process;
static Endpoint *here, *there;
static Task task; /* of the other process */
static Request request;

/* What the last call gave. */
static Listening arrived;
static Completion completed;
static CqEntry entry;

typedef struct {
    Options options;
    bool connected;
    void (*prepare)(VIP_ULONG timeout_ms);
    VIP_RETURN (*call)(VIP_ULONG timeout_ms);
    void (*provoke)(void); /* lets the other process begin with what the call waits for */
    void (*check)(void);   /* that the call has given it; and everything is as before */
} Wait;

/* A thread in such a call. */
typedef struct {
    const Wait *wait;
    VIP_ULONG timeout_ms;
    VIP_RETURN rc;
    Sleeper sleeper;
} Call;

static void call_once(void *argument) {
    Call *call = argument;
    call->rc = call->wait->call(call->timeout_ms);
}

static void start(Call *call) { sleeper_start(&call->sleeper, call_once, call); }

static void open_for(const Wait *wait) {
    process = peer_start();
    here = new_endpoint(NULL);
    there = new_endpoint(process);
    endpoint_open(here, wait->options);
    endpoint_open(there, (Options){.level = wait->options.level});
    if (wait->connected) pair_connect(&(Pair){here, there});
}

static void close_both(void) {
    endpoint_close(here);
    endpoint_close(there);
}

/* Another call, of this thread, gets what comes then. */
static void expect_next(const Wait *wait) {
    wait->provoke();
    CHECK_RC(wait->call(VIP_INFINITE), VIP_SUCCESS);
    wait->check();
}

/* ---- What the calls wait for ------------------------------------------------------------------------------------- */

static void prepare_nothing(VIP_ULONG timeout_ms) { (void)timeout_ms; }

static void hang_up(void) {
    CHECK_RC(request.rc, VIP_SUCCESS);
    CHECK_RC(disconnect(here), VIP_SUCCESS);
    await_error(there, VIP_ERROR_CONN_LOST);
    CHECK_RC(disconnect(there), VIP_SUCCESS);
}

static VIP_RETURN wait_for_client(VIP_ULONG timeout_ms) {
    arrived = listening(here, timeout_ms);
    return wait_request(here, &arrived);
}

static void ask(void) {
    request = request_to(there, here, LONG_MS);
    begin(&task, there, do_request, &request, sizeof request);
}

static void check_client(void) {
    CHECK_RC(accept_request(here), VIP_SUCCESS);
    finish(&task);
    hang_up();
}

static const Wait for_client = {{0}, false, prepare_nothing, wait_for_client, ask, check_client};

static void look_for_peer(VIP_ULONG timeout_ms) {
    Request mine = request_to(here, there, timeout_ms);
    CHECK_RC(peer_request(here, &mine), VIP_SUCCESS);
}

static VIP_RETURN wait_for_peer(VIP_ULONG unused) {
    Request mine;
    (void)unused;
    memset(&mine, 0, sizeof mine);
    return peer_wait(here, &mine);
}

static void do_find(Endpoint *end, void *theirs) {
    if (peer_request(end, theirs) == VIP_SUCCESS) peer_wait(end, theirs);
}

static void find(void) {
    request = request_to(there, here, LONG_MS);
    begin(&task, there, do_find, &request, sizeof request);
}

static void check_peer(void) {
    finish(&task);
    hang_up();
}

static const Wait for_peer = {{0}, false, look_for_peer, wait_for_peer, find, check_peer};

/* As much as a stopped process lets come to wait. */
static void send_to_stopped(VIP_ULONG unused) {
    const VIP_UINT32 big = 512 * 1024;
    (void)unused;
    for (int slot = 0; slot < SLOTS; ++slot)
        CHECK_RC(post_recv(there, slot, recv_work(there, BIG_AT + (size_t)slot * big, big)), VIP_SUCCESS);
    peer_stop(process);
    for (int slot = 0; slot < SLOTS; ++slot)
        CHECK_RC(post_send(here, slot, send_work(here, BIG_AT + (size_t)slot * big, big)), VIP_SUCCESS);
    int taken = 0;
    while (send_wait(here, taken == 0 ? SHORT_MS : 0).rc == VIP_SUCCESS) ++taken;
    if (is_hardware(here) && taken == SLOTS) skip("this device completes sends while the peer is stopped");
}

static VIP_RETURN wait_for_sent(VIP_ULONG timeout_ms) {
    completed = send_wait(here, timeout_ms);
    return completed.rc;
}

static void let_receive(void) { peer_continue(process); }

static void check_sent(void) {
    check_completion(__FILE__, __LINE__, completed, completed.slot, SENT);
    for (int slot = completed.slot + 1; slot < SLOTS; ++slot) EXPECT_SEND(here, slot, SENT);
    for (int slot = 0; slot < SLOTS; ++slot) EXPECT_RECV(there, slot, RECEIVED);
}

static const Wait for_sent = {
    {.level = VIP_SERVICE_RELIABLE_RECEPTION}, true, send_to_stopped, wait_for_sent, let_receive, check_sent};

static void receive_one(VIP_ULONG unused) {
    (void)unused;
    post_simple_recv(here, 0, 64);
}

static VIP_RETURN wait_for_received(VIP_ULONG timeout_ms) {
    completed = recv_wait(here, timeout_ms);
    return completed.rc;
}

static void do_send(Endpoint *end, void *unused) {
    (void)unused;
    post_simple_send(end, 0, 16);
    EXPECT_SEND(end, 0, SENT);
}

static void send_one(void) { begin(&task, there, do_send, NULL, 0); }

static void check_received(void) {
    check_completion(__FILE__, __LINE__, completed, 0, RECEIVED);
    finish(&task);
}

static const Wait for_received = {{0}, true, receive_one, wait_for_received, send_one, check_received};

static VIP_RETURN wait_for_entry(VIP_ULONG timeout_ms) {
    entry = cq_wait(here, timeout_ms);
    return entry.rc;
}

static void check_entry(void) {
    CHECK(entry.vi == here->vi && entry.recv_queue);
    completed = recv_done(here);
    check_received();
}

static const Wait for_entry = {{.recv_on_cq = VIP_TRUE}, true, receive_one, wait_for_entry, send_one, check_entry};

/* ---- Cancellation ------------------------------------------------------------------------------------------------ */

static void cancel_before_it_comes(const Wait *wait) {
    Call call = {.wait = wait, .timeout_ms = VIP_INFINITE};
    wait->prepare(VIP_INFINITE);
    start(&call);
    CHECK(sleeper_cancel(&call.sleeper));
    expect_next(wait);
}

/* Either the thread gets it, or the next one. */
static void cancel_as_it_comes(const Wait *wait, unsigned turns) {
    Call call = {.wait = wait, .timeout_ms = VIP_INFINITE};
    wait->prepare(VIP_INFINITE);
    start(&call);
    wait->provoke();
    for (unsigned i = 0; i < turns; ++i) sched_yield();
    if (sleeper_cancel(&call.sleeper)) call_once(&call);
    CHECK_RC(call.rc, VIP_SUCCESS);
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

TEST(connect_wait_of_a_cancelled_thread) { check_cancelled(&for_client); }
TEST(peer_wait_of_a_cancelled_thread) { check_cancelled(&for_peer); }
TEST(send_wait_of_a_cancelled_thread) { check_cancelled(&for_sent); }
TEST(recv_wait_of_a_cancelled_thread) { check_cancelled(&for_received); }
TEST(cq_wait_of_a_cancelled_thread) { check_cancelled(&for_entry); }

/* The cancellation stays pending until the thread allows it again. */
static void check_uncancellable(const Wait *wait) {
    Call call = {.wait = wait, .timeout_ms = VIP_INFINITE, .sleeper.uncancellable = true};
    open_for(wait);
    wait->prepare(VIP_INFINITE);
    start(&call);
    CHECK(pthread_cancel(call.sleeper.thread) == 0);
    CHECK(sleeps_on(&call.sleeper));
    wait->provoke();
    CHECK(sleeper_join(&call.sleeper) && call.sleeper.returned);
    CHECK_RC(call.rc, VIP_SUCCESS);
    wait->check();
    close_both();
}

TEST(connect_wait_with_cancellation_disabled) { check_uncancellable(&for_client); }
TEST(peer_wait_with_cancellation_disabled) { check_uncancellable(&for_peer); }
TEST(send_wait_with_cancellation_disabled) { check_uncancellable(&for_sent); }
TEST(recv_wait_with_cancellation_disabled) { check_uncancellable(&for_received); }
TEST(cq_wait_with_cancellation_disabled) { check_uncancellable(&for_entry); }

/* ---- Posting and polling ----------------------------------------------------------------------------------------- */

enum { EXCHANGES = 20, SMALL = 16, LARGE = 300 * 1024 };

static VIP_UINT32 length;

/* The other process sleeps meanwhile, so that it must be woken. */
static void do_answer(Endpoint *end, void *unused) {
    (void)unused;
    for (int i = 0; i < EXCHANGES; ++i) {
        EXPECT_RECV(end, 0, RECEIVED);
        post_simple_recv(end, 0, LARGE);
        post_simple_send(end, 0, SMALL);
        EXPECT_SEND(end, 0, SENT);
    }
}

static void expect_polled_send(int slot, VIP_UINT32 status) {
    while (cq_done(here).rc == VIP_NOT_DONE) sched_yield();
    check_completion(__FILE__, __LINE__, send_done(here), slot, status);
}

static void post_and_poll(void *unused) {
    (void)unused;
    const Work write = rdma_work(here, VIP_CONTROL_OP_RDMAWRITE, SEND_AT(1), length, there, RECV_AT(8));
    post_simple_recv(here, 0, LARGE);
    CHECK_RC(post_send(here, 1, write), VIP_SUCCESS);
    post_simple_send(here, 0, length);
    expect_polled_send(1, WRITTEN);
    expect_polled_send(0, SENT);
    while ((completed = recv_done(here)).rc == VIP_NOT_DONE) sched_yield();
    check_completion(__FILE__, __LINE__, completed, 0, RECEIVED);
}

static void check_working(VIP_UINT32 bytes) {
    length = bytes;
    open_for(&(Wait){.options = {.send_on_cq = VIP_TRUE}, .connected = true});
    post_simple_recv(there, 0, LARGE);
    begin(&task, there, do_answer, NULL, 0);
    run_while_cancelled(post_and_poll, NULL, EXCHANGES);
    finish(&task);
}

TEST(posting_and_polling_are_no_cancellation_points) { check_working(SMALL); }
TEST(posting_and_polling_large_messages_are_no_cancellation_points) { check_working(LARGE); }

/* It ends the connection. */
static void post_unusable(void *unused) {
    (void)unused;
    CHECK_RC(VipPostRecv(here->vi, recv_descriptor(here, 1), 0), VIP_SUCCESS);
}

TEST(a_refused_post_is_no_cancellation_point) {
    open_for(&(Wait){.connected = true});
    run_while_cancelled(post_unusable, NULL, 2);
    await_error(here, VIP_ERROR_POST_DESC);
    CHECK_EQ(state_of(here), VIP_STATE_ERROR);
}

static sem_t handling, handled;

static void handle_slowly(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    (void)context, (void)nic, (void)vi;
    CHECK(descriptor != NULL);
    CHECK(sem_post(&handling) == 0 && sem_wait(&handled) == 0);
}

static void poll_empty_queue(void *unused) {
    (void)unused;
    CHECK_RC(recv_done(here).rc, VIP_DESCRIPTOR_ERROR);
}

TEST(polling_beside_a_handler_is_no_cancellation_point) {
    CHECK(sem_init(&handling, 0, 0) == 0 && sem_init(&handled, 0, 0) == 0);
    open_for(&(Wait){.connected = true});
    receive_one(VIP_INFINITE);
    CHECK_RC(VipRecvNotify(here->vi, NULL, handle_slowly), VIP_SUCCESS);
    send_one();
    CHECK(sem_wait(&handling) == 0);
    run_while_cancelled(poll_empty_queue, NULL, EXCHANGES);
    CHECK(sem_post(&handled) == 0);
    finish(&task);
    close_both();
}

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

static void check_signals(const Wait *wait) {
    Call call = {.wait = wait, .timeout_ms = VIP_INFINITE};
    open_for(wait);
    wait->prepare(VIP_INFINITE);
    count_signals(SIGUSR1, SA_RESTART);
    count_signals(SIGUSR2, 0);
    start(&call);
    CHECK(sleeper_disturb(&call.sleeper, SIGUSR1) > 0);
    CHECK(sleeper_disturb(&call.sleeper, SIGUSR2) > 0);
    wait->provoke();
    CHECK(!sleeper_join(&call.sleeper));
    CHECK_RC(call.rc, VIP_SUCCESS);
    wait->check();
    close_both();
}

TEST(connect_wait_disturbed_by_signals) { check_signals(&for_client); }
TEST(peer_wait_disturbed_by_signals) { check_signals(&for_peer); }
TEST(send_wait_disturbed_by_signals) { check_signals(&for_sent); }
TEST(recv_wait_disturbed_by_signals) { check_signals(&for_received); }
TEST(cq_wait_disturbed_by_signals) { check_signals(&for_entry); }

/* However many signals come, the time is up when it is. */
static void check_timeout(const Wait *wait) {
    Call call = {.wait = wait, .timeout_ms = MEDIUM_MS};
    count_signals(SIGUSR2, 0);
    open_for(wait);
    const VIP_UINT64 began = steady_ns();
    wait->prepare(MEDIUM_MS);
    start(&call);
    sleeper_interrupt(&call.sleeper, SIGUSR2);
    CHECK_RC(call.rc, VIP_TIMEOUT);
    check_time(__FILE__, __LINE__, began, MEDIUM_MS);
}

TEST(connect_wait_times_out_between_signals) { check_timeout(&for_client); }
TEST(peer_wait_times_out_between_signals) { check_timeout(&for_peer); }
TEST(recv_wait_times_out_between_signals) { check_timeout(&for_received); }
TEST(cq_wait_times_out_between_signals) { check_timeout(&for_entry); }

TEST(send_wait_times_out_between_signals) {
    check_timeout(&for_sent);
    expect_next(&for_sent);
}

/* ---- VipCloseNic ------------------------------------------------------------------------------------------------- */

/* Threads are in different calls for objects of one NIC. */
static void close_under(const Wait *const waits[], int count) {
    Call calls[4];
    for (int i = 0; i < count; ++i) {
        calls[i] = (Call){.wait = waits[i], .timeout_ms = VIP_INFINITE};
        start(&calls[i]);
    }
    CHECK_RC(VipCloseNic(here->nic), VIP_SUCCESS);
    for (int i = 0; i < count; ++i) {
        CHECK(!sleeper_join(&calls[i].sleeper));
        CHECK_RC(calls[i].rc, VIP_INVALID_PARAMETER);
    }
    endpoint_close_nic(there);
}

static void check_closed(const Wait *wait) {
    open_for(wait);
    wait->prepare(VIP_INFINITE);
    close_under(&wait, 1);
}

TEST(close_nic_ends_connect_wait) { check_closed(&for_client); }
TEST(close_nic_ends_peer_wait) { check_closed(&for_peer); }
TEST(close_nic_ends_recv_wait) { check_closed(&for_received); }
TEST(close_nic_ends_cq_wait) { check_closed(&for_entry); }

/* A thread that is on its way into a call, or out of it. */
static _Atomic bool begun;

static void *begin_to_wait(void *argument) {
    Call *call = argument;
    begun = true;
    call_once(call);
    return NULL;
}

static void close_as_it_begins(const Wait *wait) {
    here = new_endpoint(NULL);
    for (int round = 0, rounds = 500; round < rounds; ++round) {
        Call call = {.wait = wait, .timeout_ms = VIP_INFINITE};
        pthread_t thread;
        endpoint_open(here, wait->options);
        if (is_hardware(here)) rounds = 50; /* to open and close a device takes long */
        receive_one(VIP_INFINITE);
        begun = false;
        CHECK(pthread_create(&thread, NULL, begin_to_wait, &call) == 0);
        while (!begun) {
        }
        for (volatile int spin = 0; spin < round % 100 * 20; ++spin) {
        }
        endpoint_close_nic(here);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_RC(call.rc, VIP_INVALID_PARAMETER);
    }
}

TEST(close_nic_as_recv_wait_begins) { close_as_it_begins(&for_received); }
TEST(close_nic_as_cq_wait_begins) { close_as_it_begins(&for_entry); }

TEST(close_nic_ends_all_waits_at_once) {
    static const Wait *const waits[] = {&for_client, &for_peer, &for_received, &for_entry};
    open_for(&(Wait){.options = {.send_on_cq = VIP_TRUE}});
    receive_one(VIP_INFINITE);
    look_for_peer(VIP_INFINITE);
    close_under(waits, 4);
}
