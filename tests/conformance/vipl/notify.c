/* SPDX-License-Identifier: BSD-3-Clause
 * VipSendNotify, VipRecvNotify, VipCQNotify: guide, sections 3.5.9 to 3.5.12.
 *
 * The handlers run in the process of the case, so the endpoint under test is the client.
 */
#include "endpoint.h"

enum { MAX_CALLS = 64 };

typedef struct {
    VIP_PVOID context;
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    VIP_DESCRIPTOR *descriptor;
    VIP_BOOLEAN recv_queue;
    pthread_t thread;
} Call;

static pthread_mutex_t calls_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t calls_changed = PTHREAD_COND_INITIALIZER;
static Call calls[MAX_CALLS];
static int call_count;

static void record(Call call) {
    call.thread = pthread_self();
    pthread_mutex_lock(&calls_mutex);
    if (call_count < MAX_CALLS) calls[call_count++] = call;
    pthread_cond_broadcast(&calls_changed);
    pthread_mutex_unlock(&calls_mutex);
}

static void on_descriptor(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    record((Call){.context = context, .nic = nic, .vi = vi, .descriptor = descriptor});
}

static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv_queue) {
    record((Call){.context = context, .nic = nic, .vi = vi, .recv_queue = recv_queue});
}

/* The n-th call of a handler, counted from 0; waits until it has come. */
static Call await_call(int n) {
    pthread_mutex_lock(&calls_mutex);
    while (call_count <= n) pthread_cond_wait(&calls_changed, &calls_mutex);
    Call call = calls[n];
    pthread_mutex_unlock(&calls_mutex);
    return call;
}

static int calls_so_far(void) {
    pthread_mutex_lock(&calls_mutex);
    int count = call_count;
    pthread_mutex_unlock(&calls_mutex);
    return count;
}

static void check_call(Call call, const Endpoint *end, void *context, const VIP_DESCRIPTOR *descriptor) {
    CHECK(call.context == context);
    CHECK(call.nic == end->nic);
    CHECK(call.vi == end->vi);
    CHECK(call.descriptor == descriptor);
}

/* ---- VipRecvNotify ----------------------------------------------------------------------------------------------- */

/* "If the queue becomes empty", the handlers of outstanding requests are called without a descriptor. */
TEST(recv_handler_when_the_program_takes_the_last_descriptor) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    for (int round = 0; round < 30; ++round) {
        Completion done = {0};
        post_simple_recv(pair.client, 0, 64);
        CHECK_RC(VipRecvNotify(pair.client->vi, NULL, on_descriptor), VIP_SUCCESS);
        post_simple_send(pair.server, 0, 64);
        do done = round % 2 == 0 ? recv_done(pair.client) : recv_wait(pair.client, LONG_MS);
        while (done.rc == VIP_NOT_DONE);
        const VIP_DESCRIPTOR *handlers = await_call(round).descriptor;
        CHECK((handlers == NULL) == (done.slot == 0)); /* one of the two has taken it */
    }
}

TEST(recv_handler_of_a_descriptor_that_completes_later) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    int context;
    post_simple_recv(pair.client, 0, 64);
    CHECK_RC(VipRecvNotify(pair.client->vi, &context, on_descriptor), VIP_SUCCESS);
    CHECK_EQ(calls_so_far(), 0);
    post_simple_send(pair.server, 0, 12);
    check_call(await_call(0), pair.client, &context, recv_descriptor(pair.client, 0));
    CHECK_EQ(recv_descriptor(pair.client, 0)->CS.Status, RECEIVED);
    CHECK_EQ(recv_descriptor(pair.client, 0)->CS.Length, 12);
    CHECK_EQ(recv_done(pair.client).slot, -1); /* it was taken off the queue */
}

TEST(recv_handler_of_a_descriptor_that_is_complete) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    post_simple_recv(pair.client, 1, 64);
    post_simple_send(pair.server, 0, 12);
    post_simple_send(pair.server, 1, 12);
    EXPECT_RECV(pair.client, 0, RECEIVED);
    CHECK_RC(VipRecvNotify(pair.client->vi, NULL, on_descriptor), VIP_SUCCESS);
    check_call(await_call(0), pair.client, NULL, recv_descriptor(pair.client, 1));
}

TEST(recv_handler_of_a_descriptor_in_error) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    CHECK_RC(VipRecvNotify(pair.client->vi, NULL, on_descriptor), VIP_SUCCESS);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    check_call(await_call(0), pair.client, NULL, recv_descriptor(pair.client, 0));
    CHECK_EQ(recv_descriptor(pair.client, 0)->CS.Status, RECEIVED | FLUSHED);
}

/* Several handlers are queued in the order of the descriptors, and run on one thread, which is not the caller's. */
TEST(recv_handlers_come_in_order_on_one_thread) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    int contexts[8];
    for (int slot = 0; slot < 8; ++slot) post_simple_recv(pair.client, slot, 64);
    for (int slot = 0; slot < 8; ++slot) {
        CHECK_RC(VipRecvNotify(pair.client->vi, &contexts[slot], on_descriptor), VIP_SUCCESS);
    }
    for (int slot = 0; slot < 8; ++slot) post_simple_send(pair.server, slot, 8);
    for (int slot = 0; slot < 8; ++slot) {
        Call call = await_call(slot);
        check_call(call, pair.client, &contexts[slot], recv_descriptor(pair.client, slot));
        CHECK(!pthread_equal(call.thread, pthread_self()));
        CHECK(pthread_equal(call.thread, await_call(0).thread));
    }
}

TEST(recv_notify_is_for_one_descriptor) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    for (int slot = 0; slot < 2; ++slot) post_simple_recv(pair.client, slot, 64);
    CHECK_RC(VipRecvNotify(pair.client->vi, NULL, on_descriptor), VIP_SUCCESS);
    for (int slot = 0; slot < 2; ++slot) post_simple_send(pair.server, slot, 8);
    await_call(0);
    EXPECT_RECV(pair.client, 1, RECEIVED);
    CHECK_EQ(calls_so_far(), 1);
}

TEST(recv_notify_on_an_empty_queue) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(VipRecvNotify(pair.client->vi, NULL, on_descriptor), VIP_DESCRIPTOR_ERROR);
}

/* One descriptor, two handlers: when the queue becomes empty the second one is called with NULL. */
TEST(recv_handlers_left_over_get_null) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    CHECK_RC(VipRecvNotify(pair.client->vi, NULL, on_descriptor), VIP_SUCCESS);
    CHECK_RC(VipRecvNotify(pair.client->vi, pair.client, on_descriptor), VIP_SUCCESS);
    post_simple_send(pair.server, 0, 8);
    check_call(await_call(0), pair.client, NULL, recv_descriptor(pair.client, 0));
    check_call(await_call(1), pair.client, pair.client, NULL);
}

TEST(recv_notify_with_invalid_arguments_is_refused) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    CHECK_RC(VipRecvNotify(NULL, NULL, on_descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipRecvNotify(pair.client->nic, NULL, on_descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipRecvNotify(pair.client->vi, NULL, NULL), VIP_INVALID_PARAMETER);
}

TEST(recv_notify_is_refused_with_a_cq) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    post_simple_recv(pair.client, 0, 64);
    CHECK_RC(VipRecvNotify(pair.client->vi, NULL, on_descriptor), VIP_ERROR_RESOURCE);
}

/* A handler may post and ask again: an echo that runs by itself. */
static void echo(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    Endpoint *end = context;
    if (descriptor == NULL || descriptor->CS.Status != RECEIVED) return;
    VIP_DESCRIPTOR *sent;
    Work reply = send_work(end, RECV_AT(0), descriptor->CS.Length);
    CHECK_RC(post_recv(end, 0, recv_work(end, RECV_AT(0), 64)), VIP_SUCCESS);
    CHECK_RC(VipRecvNotify(vi, context, echo), VIP_SUCCESS);
    CHECK_RC(post_send(end, 0, reply), VIP_SUCCESS);
    CHECK_RC(VipSendWait(vi, LONG_MS, &sent), VIP_SUCCESS);
    on_descriptor(context, nic, vi, descriptor);
}

TEST(a_handler_can_ask_again) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    CHECK_RC(VipRecvNotify(pair.client->vi, pair.client, echo), VIP_SUCCESS);
    for (int round = 0; round < 50; ++round) {
        fill(pair.server, SEND_AT(0), 40, (unsigned)round);
        post_simple_recv(pair.server, 0, 64);
        post_simple_send(pair.server, 0, 40);
        EXPECT_SEND(pair.server, 0, SENT);
        CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 40);
        CHECK(filled(pair.server, RECV_AT(0), 40, (unsigned)round));
    }
    CHECK(pthread_equal(await_call(49).thread, await_call(0).thread));
}

/* ---- VipSendNotify ----------------------------------------------------------------------------------------------- */

TEST(send_handler_of_a_completed_descriptor) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    int context;
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64);
    CHECK_RC(VipSendNotify(pair.client->vi, &context, on_descriptor), VIP_SUCCESS);
    Call call = await_call(0);
    check_call(call, pair.client, &context, send_descriptor(pair.client, 0));
    CHECK(!pthread_equal(call.thread, pthread_self()));
    CHECK_EQ(send_descriptor(pair.client, 0)->CS.Status, SENT);
    CHECK_EQ(send_done(pair.client).slot, -1);
}

TEST(send_handlers_come_in_order_on_one_thread) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    int contexts[8];
    for (int slot = 0; slot < 8; ++slot) post_simple_recv(pair.server, slot, 64);
    for (int slot = 0; slot < 8; ++slot) post_simple_send(pair.client, slot, 64);
    for (int slot = 0; slot < 8; ++slot) {
        VIP_RETURN rc = VipSendNotify(pair.client->vi, &contexts[slot], on_descriptor);
        CHECK_RC(rc, VIP_SUCCESS);
    }
    for (int slot = 0; slot < 8; ++slot) {
        Call call = await_call(slot);
        check_call(call, pair.client, &contexts[slot], send_descriptor(pair.client, slot));
        CHECK(pthread_equal(call.thread, await_call(0).thread));
    }
}

TEST(send_notify_on_an_empty_queue) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(VipSendNotify(pair.client->vi, NULL, on_descriptor), VIP_DESCRIPTOR_ERROR);
}

TEST(send_notify_with_invalid_arguments_is_refused) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64);
    CHECK_RC(VipSendNotify(NULL, NULL, on_descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSendNotify(pair.client, NULL, on_descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSendNotify(pair.client->vi, NULL, NULL), VIP_INVALID_PARAMETER);
}

TEST(send_notify_is_refused_with_a_cq) {
    Pair pair = connected_pair_with((Options){.send_on_cq = VIP_TRUE});
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64);
    CHECK_RC(VipSendNotify(pair.client->vi, NULL, on_descriptor), VIP_ERROR_RESOURCE);
}

/* A thread for each queue: handlers of the send queue and of the receive queue run on different ones. */
TEST(each_queue_has_a_thread_of_its_own) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.server, 0, 64);
    post_simple_recv(pair.client, 0, 64);
    post_simple_send(pair.client, 0, 64);
    CHECK_RC(VipSendNotify(pair.client->vi, NULL, on_descriptor), VIP_SUCCESS);
    pthread_t of_sends = await_call(0).thread;
    CHECK_RC(VipRecvNotify(pair.client->vi, NULL, on_descriptor), VIP_SUCCESS);
    post_simple_send(pair.server, 0, 64);
    CHECK(!pthread_equal(await_call(1).thread, of_sends));
}

/* ---- VipCQNotify ------------------------------------------------------------------------------------------------- */

TEST(cq_handler_of_an_entry_that_comes_later) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    int context;
    post_simple_recv(pair.client, 0, 64);
    CHECK_RC(VipCQNotify(pair.client->cq, &context, on_entry), VIP_SUCCESS); /* an empty queue is no error */
    post_simple_send(pair.server, 0, 64);
    Call call = await_call(0);
    check_call(call, pair.client, &context, NULL);
    CHECK_EQ(call.recv_queue, VIP_TRUE);
    CHECK(!pthread_equal(call.thread, pthread_self()));
    CHECK_RC(cq_done(pair.client).rc, VIP_NOT_DONE); /* the entry is used up, the descriptor is not */
    check_completion(__FILE__, __LINE__, recv_done(pair.client), 0, RECEIVED);
}

TEST(cq_handler_of_an_entry_that_is_there) {
    Pair pair = connected_pair_with((Options){.send_on_cq = VIP_TRUE});
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64);
    (void)send_poll(pair.client);
    CHECK_RC(VipCQNotify(pair.client->cq, NULL, on_entry), VIP_SUCCESS);
    Call call = await_call(0);
    check_call(call, pair.client, NULL, NULL);
    CHECK_EQ(call.recv_queue, VIP_FALSE);
}

TEST(cq_handlers_come_in_order_on_one_thread) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    int contexts[8];
    for (int slot = 0; slot < 8; ++slot) post_simple_recv(pair.client, slot, 64);
    for (int i = 0; i < 8; ++i) CHECK_RC(VipCQNotify(pair.client->cq, &contexts[i], on_entry), VIP_SUCCESS);
    for (int slot = 0; slot < 8; ++slot) post_simple_send(pair.server, slot, 8);
    for (int i = 0; i < 8; ++i) {
        CHECK(await_call(i).context == &contexts[i]);
        CHECK(pthread_equal(await_call(i).thread, await_call(0).thread));
    }
}

TEST(cq_notify_with_invalid_arguments_is_refused) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    CHECK_RC(VipCQNotify(NULL, NULL, on_entry), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCQNotify(pair.client->vi, NULL, on_entry), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCQNotify(pair.client->cq, NULL, NULL), VIP_INVALID_PARAMETER);
}

/* ---- Cancelling -------------------------------------------------------------------------------------------------- */

TEST(destroying_the_cq_cancels_its_handlers) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    VIP_CQ_HANDLE cq;
    CHECK_RC(VipCreateCQ(pair.client->nic, 8, &cq), VIP_SUCCESS);
    for (int i = 0; i < 3; ++i) CHECK_RC(VipCQNotify(cq, NULL, on_entry), VIP_SUCCESS);
    CHECK_RC(VipDestroyCQ(cq), VIP_SUCCESS);
    CHECK_EQ(calls_so_far(), 0);
}

/* After VipCloseNic has returned, no handler is running and none begins. */
TEST(closing_the_nic_cancels_handlers) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    for (int slot = 0; slot < 3; ++slot) post_simple_recv(pair.client, slot, 64);
    for (int slot = 0; slot < 3; ++slot) {
        CHECK_RC(VipRecvNotify(pair.client->vi, NULL, on_descriptor), VIP_SUCCESS);
    }
    endpoint_close_nic(pair.client);
    int count = calls_so_far();
    endpoint_close_nic(pair.server);
    CHECK_EQ(calls_so_far(), count);
}

/* A handler that makes calls until the handles are not valid any more. */
static void take_to_the_end(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv_queue) {
    VIP_DESCRIPTOR *descriptor;
    on_entry(context, nic, vi, recv_queue);
    while (VipRecvDone(vi, &descriptor) != VIP_INVALID_PARAMETER) continue;
    on_entry(context, nic, vi, recv_queue);
}

TEST(closing_the_nic_awaits_a_handler_of_a_cq) {
    Endpoint *end = new_endpoint(NULL);
    for (int round = 0, rounds = 30; round < rounds; ++round) {
        endpoint_open(end, (Options){.recv_on_cq = VIP_TRUE});
        if (is_hardware(end)) rounds = 5; /* to open and close a device takes long */
        post_simple_recv(end, 0, 64);
        CHECK_RC(VipCQNotify(end->cq, NULL, take_to_the_end), VIP_SUCCESS);
        CHECK_RC(disconnect(end), VIP_SUCCESS); /* flushes it */
        await_call(2 * round);
        endpoint_close_nic(end);
        CHECK_EQ(calls_so_far(), 2 * round + 2);
    }
}

TEST(destroying_the_vi_ends_its_thread) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    CHECK_RC(VipRecvNotify(pair.client->vi, NULL, on_descriptor), VIP_SUCCESS);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    check_call(await_call(0), pair.client, NULL, recv_descriptor(pair.client, 0)); /* flushed, hence complete */
    CHECK_RC(VipDestroyVi(pair.client->vi), VIP_SUCCESS);
    CHECK_EQ(calls_so_far(), 1);
}

static void destroy_own_vi(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    CHECK_RC(VipDisconnect(vi), VIP_SUCCESS);
    CHECK_RC(VipDestroyVi(vi), VIP_SUCCESS);
    on_descriptor(context, nic, vi, descriptor);
}

TEST(a_handler_can_destroy_its_vi) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    CHECK_RC(VipRecvNotify(pair.client->vi, NULL, destroy_own_vi), VIP_SUCCESS);
    post_simple_send(pair.server, 0, 64);
    await_call(0);
    CHECK_RC(VipDestroyVi(pair.client->vi), VIP_INVALID_PARAMETER);
    endpoint_close_nic(pair.client);
}
