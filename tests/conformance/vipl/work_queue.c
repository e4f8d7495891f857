/* SPDX-License-Identifier: BSD-3-Clause
 * VipSendDone, VipSendWait, VipRecvDone, VipRecvWait: guide, sections 3.5.2, 3.5.3, 3.5.5 and 3.5.6.
 */
#include "endpoint.h"

#include <time.h>

static Endpoint *opened_with(Options options) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, options);
    return end;
}

static Endpoint *opened(void) { return opened_with((Options){0}); }

/* ---- The send queue ---------------------------------------------------------------------------------------------- */

TEST(send_done_gives_the_completed_descriptor) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64);
    Completion completion = check_completion(__FILE__, __LINE__, send_poll(pair.client), 0, SENT);
    CHECK_EQ(completion.length, 64);
}

TEST(send_wait_gives_the_completed_descriptor) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64);
    CHECK_EQ(check_completion(__FILE__, __LINE__, send_wait(pair.client, VIP_INFINITE), 0, SENT).length, 64);
}

TEST(send_queue_empty) {
    Endpoint *end = opened();
    VIP_DESCRIPTOR *descriptor = send_descriptor(end, 0);
    CHECK_RC(VipSendDone(end->vi, &descriptor), VIP_DESCRIPTOR_ERROR);
    CHECK(descriptor == NULL);
    descriptor = send_descriptor(end, 0);
    CHECK_RC(VipSendWait(end->vi, VIP_INFINITE, &descriptor), VIP_DESCRIPTOR_ERROR);
    CHECK(descriptor == NULL);
}

TEST(send_completed_with_an_error) {
    Endpoint *end = opened();
    post_simple_send(end, 0, 64);
    post_simple_send(end, 1, 64);
    check_completion(__FILE__, __LINE__, send_done(end), 0, SENT | FLUSHED);
    check_completion(__FILE__, __LINE__, send_wait(end, 0), 1, SENT | FLUSHED);
}

/*
 * What keeps a send waiting is a peer that does nothing at all: it is stopped. With more data under way than any buffer
 * between the two holds, a send comes to wait, and is not done.
 */
static void occupy_stopped_peer(Pair *pair, Peer *peer) {
    const VIP_UINT32 big = 512 * 1024;
    *pair = (Pair){new_endpoint(NULL), new_endpoint(peer)};
    endpoint_open(pair->client, (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION});
    endpoint_open(pair->server, (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION});
    pair_connect(pair);
    for (int slot = 0; slot < SLOTS; ++slot) {
        CHECK_RC(post_recv(pair->server, slot, recv_work(pair->server, BIG_AT + (size_t)slot * big, big)), VIP_SUCCESS);
    }
    peer_stop(peer);
    for (int slot = 0; slot < SLOTS; ++slot) {
        CHECK_RC(post_send(pair->client, slot, send_work(pair->client, BIG_AT + (size_t)slot * big, big)), VIP_SUCCESS);
    }
}

TEST(send_not_done) {
    Peer *peer = peer_start();
    Pair pair;
    Completion completion;
    int taken = 0;
    occupy_stopped_peer(&pair, peer);
    while ((completion = send_done(pair.client)).rc == VIP_SUCCESS) ++taken;
    if (is_hardware(pair.client) && taken == SLOTS) skip("this device completes sends while the peer is stopped");
    CHECK_RC(completion.rc, VIP_NOT_DONE);
    CHECK_EQ(completion.slot, -1);
    peer_continue(peer);
    for (int slot = taken; slot < SLOTS; ++slot) EXPECT_SEND(pair.client, slot, SENT);
}

TEST(send_wait_times_out) {
    Peer *peer = peer_start();
    Pair pair;
    Completion completion;
    int taken = 0;
    occupy_stopped_peer(&pair, peer);
    while ((completion = send_wait(pair.client, taken == 0 ? SHORT_MS : 0)).rc == VIP_SUCCESS) ++taken;
    if (is_hardware(pair.client) && taken == SLOTS) skip("this device completes sends while the peer is stopped");
    CHECK_RC(completion.rc, VIP_TIMEOUT);
    CHECK_TIMES_OUT(send_wait(pair.client, SHORT_MS).rc, SHORT_MS);
    CHECK_AT_ONCE(send_wait(pair.client, 0).rc, VIP_TIMEOUT); /* looks once */
    peer_continue(peer);
    for (int slot = taken; slot < SLOTS; ++slot) EXPECT_SEND(pair.client, slot, SENT);
}

TEST(send_calls_with_invalid_arguments_are_refused) {
    Endpoint *end = opened();
    VIP_DESCRIPTOR *descriptor;
    CHECK_RC(VipSendDone(NULL, &descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSendDone(end->nic, &descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSendDone(end->vi, NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSendWait(NULL, 0, &descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSendWait(end, 0, &descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSendWait(end->vi, 0, NULL), VIP_INVALID_PARAMETER);
}

TEST(send_wait_is_refused_with_a_cq) {
    Endpoint *end = opened_with((Options){.send_on_cq = VIP_TRUE});
    CHECK_RC(send_wait(end, SHORT_MS).rc, VIP_ERROR_RESOURCE);
    post_simple_send(end, 0, 64);
    CHECK_RC(send_wait(end, SHORT_MS).rc, VIP_ERROR_RESOURCE);
    CHECK_RC(recv_wait(end, 0).rc, VIP_DESCRIPTOR_ERROR); /* the other queue has none */
    check_completion(__FILE__, __LINE__, send_done(end), 0, SENT | FLUSHED);
}

/* ---- The receive queue ------------------------------------------------------------------------------------------- */

TEST(recv_done_gives_the_completed_descriptor) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.server, 0, 64);
    fill(pair.client, SEND_AT(0), 30, 8);
    post_simple_send(pair.client, 0, 30);
    Completion completion = check_completion(__FILE__, __LINE__, recv_poll(pair.server), 0, RECEIVED);
    CHECK_EQ(completion.length, 30);
    CHECK(filled(pair.server, RECV_AT(0), 30, 8));
}

TEST(recv_wait_gives_the_completed_descriptor) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 30);
    CHECK_EQ(check_completion(__FILE__, __LINE__, recv_wait(pair.server, VIP_INFINITE), 0, RECEIVED).length, 30);
}

typedef struct {
    VIP_ULONG timeout_ms;
    Completion completion;
} Waiting;

static void do_recv_wait(Endpoint *end, void *argument) {
    Waiting *waiting = argument;
    waiting->completion = recv_wait(end, waiting->timeout_ms);
}

/* A thread that sleeps in the call is woken by the message. */
TEST(recv_wait_is_woken) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    const struct timespec a_while = {0, 30 * 1000000}; /* so the thread is most likely asleep; right either way */
    for (int round = 0; round < 5; ++round) {
        Task task;
        Waiting waiting = {VIP_INFINITE, {VIP_NOT_DONE, -1, 0, 0, 0}};
        post_simple_recv(pair.server, 0, 64);
        begin(&task, pair.server, do_recv_wait, &waiting, sizeof waiting);
        nanosleep(&a_while, NULL);
        post_simple_send(pair.client, 0, 16);
        finish(&task);
        check_completion(__FILE__, __LINE__, waiting.completion, 0, RECEIVED);
        EXPECT_SEND(pair.client, 0, SENT);
    }
}

TEST(recv_queue_empty) {
    Endpoint *end = opened();
    VIP_DESCRIPTOR *descriptor = recv_descriptor(end, 0);
    CHECK_RC(VipRecvDone(end->vi, &descriptor), VIP_DESCRIPTOR_ERROR);
    CHECK(descriptor == NULL);
    descriptor = recv_descriptor(end, 0);
    CHECK_RC(VipRecvWait(end->vi, VIP_INFINITE, &descriptor), VIP_DESCRIPTOR_ERROR);
    CHECK(descriptor == NULL);
}

TEST(recv_completed_with_an_error) {
    Endpoint *end = opened();
    post_simple_recv(end, 0, 64);
    post_simple_recv(end, 1, 64);
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    check_completion(__FILE__, __LINE__, recv_done(end), 0, RECEIVED | FLUSHED);
    check_completion(__FILE__, __LINE__, recv_wait(end, 0), 1, RECEIVED | FLUSHED);
}

TEST(recv_not_done) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    for (int i = 0; i < 100; ++i) CHECK_RC(recv_done(pair.client).rc, VIP_NOT_DONE);
}

TEST(recv_wait_times_out) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    CHECK_TIMES_OUT(recv_wait(pair.client, SHORT_MS).rc, SHORT_MS);
    CHECK_TIMES_OUT(recv_wait(pair.client, MEDIUM_MS).rc, MEDIUM_MS);
    CHECK_AT_ONCE(recv_wait(pair.client, 0).rc, VIP_TIMEOUT); /* looks once */
    post_simple_send(pair.server, 0, 64);
    EXPECT_RECV(pair.client, 0, RECEIVED);
}

TEST(recv_calls_with_invalid_arguments_are_refused) {
    Endpoint *end = opened();
    VIP_DESCRIPTOR *descriptor;
    CHECK_RC(VipRecvDone(NULL, &descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipRecvDone(end->nic, &descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipRecvDone(end->vi, NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipRecvWait(NULL, 0, &descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipRecvWait(end, 0, &descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipRecvWait(end->vi, 0, NULL), VIP_INVALID_PARAMETER);
}

TEST(recv_wait_is_refused_with_a_cq) {
    Endpoint *end = opened_with((Options){.recv_on_cq = VIP_TRUE});
    CHECK_RC(recv_wait(end, SHORT_MS).rc, VIP_ERROR_RESOURCE);
    post_simple_recv(end, 0, 64);
    CHECK_RC(recv_wait(end, SHORT_MS).rc, VIP_ERROR_RESOURCE);
    CHECK_RC(send_wait(end, 0).rc, VIP_DESCRIPTOR_ERROR); /* the other queue has none */
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    check_completion(__FILE__, __LINE__, recv_done(end), 0, RECEIVED | FLUSHED);
}

/* Done must not block behind Wait: guide, section 3.5.5. */
TEST(recv_done_does_not_block_behind_recv_wait) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    const struct timespec a_while = {0, 30 * 1000000};
    Task task;
    Waiting waiting = {VIP_INFINITE, {VIP_NOT_DONE, -1, 0, 0, 0}};
    post_simple_recv(pair.client, 0, 64);
    begin(&task, pair.client, do_recv_wait, &waiting, sizeof waiting);
    nanosleep(&a_while, NULL);
    CHECK_RC(recv_done(pair.client).rc, VIP_NOT_DONE);
    post_simple_send(pair.server, 0, 64);
    finish(&task);
    check_completion(__FILE__, __LINE__, waiting.completion, 0, RECEIVED);
}

/* Two threads that wait on one queue each get one of two messages. */
TEST(two_threads_wait_on_one_queue) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Task tasks[2];
    Waiting waiting[2] = {{VIP_INFINITE, {VIP_NOT_DONE, -1, 0, 0, 0}}, {VIP_INFINITE, {VIP_NOT_DONE, -1, 0, 0, 0}}};
    for (int i = 0; i < 2; ++i) post_simple_recv(pair.client, i, 64);
    for (int i = 0; i < 2; ++i) begin(&tasks[i], pair.client, do_recv_wait, &waiting[i], sizeof waiting[i]);
    for (int i = 0; i < 2; ++i) post_simple_send(pair.server, i, 64);
    for (int i = 0; i < 2; ++i) finish(&tasks[i]);
    CHECK_RC(waiting[0].completion.rc, VIP_SUCCESS);
    CHECK_RC(waiting[1].completion.rc, VIP_SUCCESS);
    CHECK_EQ(waiting[0].completion.slot + waiting[1].completion.slot, 1);
}
