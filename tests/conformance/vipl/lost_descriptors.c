/* SPDX-License-Identifier: BSD-3-Clause
 * Descriptors whose memory is de-registered while they are posted (guide, section 3.8.1, Completion Protection Error),
 * or cannot be written although it is registered; and what becomes of the other descriptors and of the connection.
 *
 * Nothing is written where they were, whether it is still mapped or not. The error comes by itself; over devices that
 * complete work by themselves, with the next call that looks for completions.
 */
#include "endpoint.h"

#include <semaphore.h>
#include <sys/mman.h>

enum { PAGE = 4096, MESSAGE = 64 };

/* A descriptor on a page of its own, which is registered by itself; the data stay where the endpoint has them. */
typedef struct {
    VIP_DESCRIPTOR *descriptor;
    VIP_MEM_HANDLE handle;
    VIP_DESCRIPTOR before; /* as it was when it was de-registered */
} Alone;

typedef enum { DEREGISTERED, UNMAPPED, STILL_REGISTERED, READ_ONLY } Loss;

static Alone descriptor_alone(const Endpoint *end, Work work) {
    Alone alone;
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_FALSE, VIP_FALSE};
    alone.descriptor = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(alone.descriptor != MAP_FAILED);
    memcpy(alone.descriptor, &work, sizeof(VIP_CONTROL_SEGMENT) + work.CS.SegCount * sizeof work.DS[0]);
    CHECK_RC(VipRegisterMem(end->nic, alone.descriptor, PAGE, &attribs, &alone.handle), VIP_SUCCESS);
    return alone;
}

static void lose(const Endpoint *end, Alone *alone, Loss loss) {
    const int deregisters = loss == DEREGISTERED || loss == UNMAPPED;
#ifdef __SANITIZE_THREAD__
    if (!deregisters) skip("the sanitizer does not let the library continue after a fault");
#endif
    if (deregisters) CHECK_RC(VipDeregisterMem(end->nic, alone->descriptor, alone->handle), VIP_SUCCESS);
    alone->before = *alone->descriptor;
    if (loss != DEREGISTERED) CHECK(mprotect(alone->descriptor, PAGE, loss == READ_ONLY ? PROT_READ : PROT_NONE) == 0);
}

static void check_untouched(const Alone *alone, Loss loss) {
    if (loss != DEREGISTERED) CHECK(mprotect(alone->descriptor, PAGE, PROT_READ) == 0);
    CHECK(memcmp(alone->descriptor, &alone->before, sizeof alone->before) == 0);
}

/* Looks for completions where nothing else brings the error; none is found. */
static VIP_ERROR_DESCRIPTOR await_completion_error(Endpoint *end) {
    const VIP_UINT64 began = steady_ns();
    while (is_hardware(end) && count_errors(end, VIP_ERROR_COMP_PROT) == 0 &&
           steady_ns() - began < LATE_MS * 1000000ULL) {
        CHECK_EQ(recv_done(end).slot, -1);
        CHECK_EQ(send_done(end).slot, -1);
    }
    return await_error(end, VIP_ERROR_COMP_PROT);
}

/* Told once. */
static void expect_completion_error(Endpoint *end, const Alone *alone, VIP_ULONG operation) {
    VIP_ERROR_DESCRIPTOR error = await_completion_error(end);
    CHECK(error.NicHandle == end->nic);
    CHECK(error.ViHandle == end->vi);
    CHECK(error.DescriptorPtr == alone->descriptor);
    CHECK_EQ(error.ResourceCode, VIP_RESOURCE_VI);
    CHECK_EQ(error.OpCode, operation);
    CHECK_EQ(count_errors(end, VIP_ERROR_COMP_PROT), 0);
}

/* ---- Receives ---------------------------------------------------------------------------------------------------- */

static void lost_receive(Options options, Loss loss) {
    Pair pair = connected_pair_with(options);
    Alone alone = descriptor_alone(pair.client, recv_work(pair.client, RECV_AT(0), MESSAGE));
    CHECK_RC(VipPostRecv(pair.client->vi, alone.descriptor, alone.handle), VIP_SUCCESS);
    if (!is_hardware(pair.client)) post_simple_recv(pair.client, 1, MESSAGE);
    lose(pair.client, &alone, loss);
    post_simple_send(pair.server, 0, MESSAGE);
    expect_completion_error(pair.client, &alone, VIP_STATUS_OP_RECEIVE);
    CHECK_EQ(state_of(pair.client), VIP_STATE_ERROR);
    check_untouched(&alone, loss);
    if (!is_hardware(pair.client)) EXPECT_RECV(pair.client, 1, RECEIVED | FLUSHED); /* the lost one is passed over */
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
}

#define EACH_LOSS(name, reliability)                                                             \
    TEST(deregistered_##name) { lost_receive((Options){.level = (reliability)}, DEREGISTERED); } \
    TEST(unmapped_##name) { lost_receive((Options){.level = (reliability)}, UNMAPPED); }         \
    TEST(unwritable_##name) { lost_receive((Options){.level = (reliability)}, READ_ONLY); }
EACH_LOSS(receive_unreliable, VIP_SERVICE_UNRELIABLE)
EACH_LOSS(receive_reliable_delivery, VIP_SERVICE_RELIABLE_DELIVERY)
EACH_LOSS(receive_reliable_reception, VIP_SERVICE_RELIABLE_RECEPTION)

/* With a completion queue there is no entry for it either. */
static void lost_receive_on_a_cq(Loss loss) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    Alone alone = descriptor_alone(pair.client, recv_work(pair.client, RECV_AT(0), MESSAGE));
    CHECK_RC(VipPostRecv(pair.client->vi, alone.descriptor, alone.handle), VIP_SUCCESS);
    lose(pair.client, &alone, loss);
    post_simple_send(pair.server, 0, MESSAGE);
    if (!is_hardware(pair.client)) await_error(pair.client, VIP_ERROR_COMP_PROT);
    CHECK_RC(cq_wait(pair.client, 100).rc, VIP_TIMEOUT);
    if (is_hardware(pair.client)) await_error(pair.client, VIP_ERROR_COMP_PROT);
    CHECK_EQ(recv_done(pair.client).slot, -1);
    check_untouched(&alone, loss);
}
TEST(deregistered_receive_on_a_cq) { lost_receive_on_a_cq(DEREGISTERED); }
TEST(unmapped_receive_on_a_cq) { lost_receive_on_a_cq(UNMAPPED); }
TEST(unwritable_receive_on_a_cq) { lost_receive_on_a_cq(STILL_REGISTERED); }

/* ---- Sends ------------------------------------------------------------------------------------------------------- */

/* Sends that wait for a peer which is stopped. */
static void lost_send(Loss loss) {
    const VIP_UINT32 big = BIG_BYTES;
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(peer)};
    endpoint_open(pair.client, (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION});
    endpoint_open(pair.server, (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION});
    if (is_hardware(pair.client)) skip("a device may complete sends while the peer is stopped");
    pair_connect(&pair);
    CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT, big)), VIP_SUCCESS);
    peer_stop(peer);
    Alone alone = descriptor_alone(pair.client, send_work(pair.client, BIG_AT, big));
    CHECK_RC(VipPostSend(pair.client->vi, alone.descriptor, alone.handle), VIP_SUCCESS);
    CHECK_EQ(alone.descriptor->CS.Status, 0);
    lose(pair.client, &alone, loss);
    peer_continue(peer);
    expect_completion_error(pair.client, &alone, VIP_STATUS_OP_SEND);
    CHECK_EQ(state_of(pair.client), VIP_STATE_ERROR);
    check_untouched(&alone, loss);
    CHECK_EQ(send_done(pair.client).slot, -1);
}
TEST(deregistered_send) { lost_send(DEREGISTERED); }
TEST(unmapped_send) { lost_send(UNMAPPED); }
TEST(unwritable_send) { lost_send(STILL_REGISTERED); }

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

/* What is flushed is not written either. The error meets a VI that is being disconnected, or is idle already. */
static void flushed(Loss loss) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Alone alone = descriptor_alone(pair.client, recv_work(pair.client, RECV_AT(0), MESSAGE));
    CHECK_RC(VipPostRecv(pair.client->vi, alone.descriptor, alone.handle), VIP_SUCCESS);
    lose(pair.client, &alone, loss);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    expect_completion_error(pair.client, &alone, VIP_STATUS_OP_RECEIVE);
    check_untouched(&alone, loss);
}
TEST(flush_of_a_deregistered_descriptor) { flushed(DEREGISTERED); }
TEST(flush_of_an_unmapped_descriptor) { flushed(UNMAPPED); }
TEST(flush_of_an_unwritable_descriptor) { flushed(READ_ONLY); }

static VIP_MEM_HANDLE register_anew(const Endpoint *end, const Alone *alone) {
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    CHECK_RC(VipRegisterMem(end->nic, alone->descriptor, PAGE, &attribs, &handle), VIP_SUCCESS);
    return handle;
}

static void expect_received(const Pair *pair, const Alone *alone) {
    VIP_DESCRIPTOR *done = NULL;
    post_simple_send(pair->server, 0, MESSAGE);
    CHECK_RC(VipRecvWait(pair->client->vi, LONG_MS, &done), VIP_SUCCESS);
    CHECK(done == alone->descriptor);
    CHECK_EQ(done->CS.Status, RECEIVED);
    CHECK_EQ(count_errors(pair->client, VIP_ERROR_COMP_PROT), 0);
}

/* Memory that is registered again holds descriptors as before. */
TEST(registered_again) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Alone alone = descriptor_alone(pair.client, recv_work(pair.client, RECV_AT(0), MESSAGE));
    CHECK_RC(VipPostRecv(pair.client->vi, alone.descriptor, alone.handle), VIP_SUCCESS);
    lose(pair.client, &alone, DEREGISTERED);
    register_anew(pair.client, &alone);
    expect_received(&pair, &alone);
}

/* And so does memory of which another registration remains. */
TEST(registered_twice) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Alone alone = descriptor_alone(pair.client, recv_work(pair.client, RECV_AT(0), MESSAGE));
    register_anew(pair.client, &alone);
    CHECK_RC(VipPostRecv(pair.client->vi, alone.descriptor, alone.handle), VIP_SUCCESS);
    lose(pair.client, &alone, DEREGISTERED);
    expect_received(&pair, &alone);
}

/* What is complete is returned without an access to its memory, also after the completion queue has told of it. */
TEST(unmapped_when_complete) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    Alone alone[2];
    for (int i = 0; i < 2; ++i) {
        alone[i] = descriptor_alone(pair.client, recv_work(pair.client, RECV_AT(i), MESSAGE));
        CHECK_RC(VipPostRecv(pair.client->vi, alone[i].descriptor, alone[i].handle), VIP_SUCCESS);
        post_simple_send(pair.server, i, MESSAGE);
    }
    for (int i = 0; i < 2; ++i) CHECK_RC(cq_wait(pair.client, LONG_MS).rc, VIP_SUCCESS);
    for (int i = 0; i < 2; ++i) {
        CHECK_EQ(alone[i].descriptor->CS.Status, RECEIVED);
        lose(pair.client, &alone[i], UNMAPPED);
    }
    for (int i = 0; i < 2; ++i) {
        VIP_DESCRIPTOR *done = NULL;
        CHECK_RC(VipRecvDone(pair.client->vi, &done), VIP_SUCCESS);
        CHECK(done == alone[i].descriptor);
    }
    CHECK_EQ(count_errors(pair.client, VIP_ERROR_COMP_PROT), 0);
}

/* Whatever completes and is de-registered meanwhile. */
TEST(deregistered_long_before_it_completes) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Alone alone = descriptor_alone(pair.client, recv_work(pair.client, RECV_AT(0), MESSAGE));
    CHECK_RC(VipPostRecv(pair.client->vi, alone.descriptor, alone.handle), VIP_SUCCESS);
    lose(pair.client, &alone, DEREGISTERED);
    for (int i = 0; i < 10; ++i) {
        VIP_DESCRIPTOR *done = NULL;
        Alone sent = descriptor_alone(pair.client, send_work(pair.client, SEND_AT(0), MESSAGE));
        post_simple_recv(pair.server, 0, MESSAGE);
        CHECK_RC(VipPostSend(pair.client->vi, sent.descriptor, sent.handle), VIP_SUCCESS);
        CHECK_RC(VipSendWait(pair.client->vi, LONG_MS, &done), VIP_SUCCESS);
        CHECK(done == sent.descriptor);
        EXPECT_RECV(pair.server, 0, RECEIVED);
        lose(pair.client, &sent, DEREGISTERED);
    }
    CHECK_EQ(count_errors(pair.client, VIP_ERROR_COMP_PROT), 0);
    post_simple_send(pair.server, 0, MESSAGE);
    expect_completion_error(pair.client, &alone, VIP_STATUS_OP_RECEIVE);
    check_untouched(&alone, DEREGISTERED);
}

/* ---- Changed attributes ------------------------------------------------------------------------------------------ */

static _Atomic bool attributes_change;

static void change_attributes(Endpoint *end) {
    set_mem_attributes(end, end->memory, end->handle, (VIP_MEM_ATTRIBUTES){end->ptag, VIP_TRUE, VIP_TRUE});
}

static void *keep_changing(void *end) {
    while (attributes_change) change_attributes(end);
    return NULL;
}

/* Another thread changes those of other memory. */
TEST(deregistered_while_attributes_change) {
    Endpoint *end = new_endpoint(NULL);
    pthread_t thread;
    endpoint_open(end, (Options){0});
    change_attributes(end);
    attributes_change = true;
    CHECK(pthread_create(&thread, NULL, keep_changing, end) == 0);
    for (int round = 0; round < 50; ++round) {
        Alone alone = descriptor_alone(end, recv_work(end, RECV_AT(0), MESSAGE));
        CHECK_RC(VipPostRecv(end->vi, alone.descriptor, alone.handle), VIP_SUCCESS);
        lose(end, &alone, DEREGISTERED);
        CHECK_RC(disconnect(end), VIP_SUCCESS);
        expect_completion_error(end, &alone, VIP_STATUS_OP_RECEIVE);
        check_untouched(&alone, DEREGISTERED);
    }
    attributes_change = false;
    CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- While errors wait to be told -------------------------------------------------------------------------------- */

static sem_t reported, let_go;
static VIP_ERROR_CODE code;

static void stop_at_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
    (void)context;
    code = error->ErrorCode;
    CHECK(sem_post(&reported) == 0);
    CHECK(sem_wait(&let_go) == 0);
}

static void expect_stop(VIP_ERROR_CODE expected) {
    CHECK(sem_wait(&reported) == 0);
    CHECK_EQ(code, expected);
}

/* The handler is busy with an error of another VI of this NIC. */
static void hold_errors(Endpoint *end) {
    VIP_VI_HANDLE other;
    CHECK(sem_init(&reported, 0, 0) == 0 && sem_init(&let_go, 0, 0) == 0);
    CHECK_RC(VipErrorCallback(end->nic, NULL, stop_at_error), VIP_SUCCESS);
    CHECK_RC(VipCreateVi(end->nic, &end->attribs, NULL, NULL, &other), VIP_SUCCESS);
    CHECK_RC(VipPostRecv(other, recv_descriptor(end, SLOTS - 1), 0), VIP_SUCCESS);
    expect_stop(VIP_ERROR_POST_DESC);
}

/* And then learns of the next one. */
static void release_errors(VIP_ERROR_CODE expected) {
    CHECK(sem_post(&let_go) == 0);
    expect_stop(expected);
    CHECK(sem_post(&let_go) == 0);
}

/* What completes behind a lost receive must not succeed: a program would take it for the message that follows. */
static void messages_behind_a_lost_one(VIP_RELIABILITY_LEVEL level, bool disconnects) {
    enum { COUNT = 4 };
    Pair pair = connected_pair(level);
    hold_errors(pair.client);
    Alone alone = descriptor_alone(pair.client, recv_work(pair.client, RECV_AT(0), MESSAGE));
    CHECK_RC(VipPostRecv(pair.client->vi, alone.descriptor, alone.handle), VIP_SUCCESS);
    for (int slot = 1; slot < COUNT; ++slot) post_simple_recv(pair.client, slot, MESSAGE);
    lose(pair.client, &alone, DEREGISTERED);
    for (int slot = 0; slot < COUNT; ++slot) post_simple_send(pair.server, slot, MESSAGE);
    for (int slot = 0; slot < COUNT; ++slot) EXPECT_SEND(pair.server, slot, SENT);
    if (disconnects) CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    for (int slot = 1; slot < COUNT; ++slot) {
        Completion completion = EXPECT_RECV(pair.client, slot, RECEIVED | FLUSHED);
        CHECK_EQ(completion.length, 0);
    }
    CHECK_RC(recv_done(pair.client).rc, VIP_DESCRIPTOR_ERROR); /* the queue is empty */
    release_errors(VIP_ERROR_COMP_PROT);
    CHECK_EQ(state_of(pair.client), disconnects ? VIP_STATE_IDLE : VIP_STATE_ERROR);
    check_untouched(&alone, DEREGISTERED);
}

#define EACH_LEVEL(name, reliability)                                                             \
    TEST(messages_behind_a_lost_one_##name) { messages_behind_a_lost_one((reliability), false); } \
    TEST(disconnect_behind_a_lost_one_##name) { messages_behind_a_lost_one((reliability), true); }
EACH_LEVEL(reliable_delivery, VIP_SERVICE_RELIABLE_DELIVERY)
EACH_LEVEL(reliable_reception, VIP_SERVICE_RELIABLE_RECEPTION)

/* The VI is connected anew. The error of the old connection does not end the new one. */
TEST(an_error_that_outlives_the_connection) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    hold_errors(pair.client);
    Alone alone = descriptor_alone(pair.client, recv_work(pair.client, RECV_AT(0), MESSAGE));
    CHECK_RC(VipPostRecv(pair.client->vi, alone.descriptor, alone.handle), VIP_SUCCESS);
    lose(pair.client, &alone, DEREGISTERED);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_EQ(recv_done(pair.client).slot, -1);
    await_error(pair.server, VIP_ERROR_CONN_LOST);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    pair_connect(&pair);
    release_errors(VIP_ERROR_COMP_PROT);
    check_untouched(&alone, DEREGISTERED);
    post_simple_recv(pair.server, 0, MESSAGE);
    post_simple_send(pair.client, 0, MESSAGE);
    EXPECT_SEND(pair.client, 0, SENT);
    EXPECT_RECV(pair.server, 0, RECEIVED);
}

/* The same with lost entries of a completion queue. */
TEST(an_overrun_that_outlives_the_connection) {
    enum { ENTRIES = 4 };
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE, .cq_entries = ENTRIES});
    hold_errors(pair.client);
    for (int slot = 0; slot <= ENTRIES; ++slot) {
        post_simple_recv(pair.client, slot, MESSAGE);
        post_simple_send(pair.server, slot, MESSAGE);
        check_completion(__FILE__, __LINE__, recv_poll(pair.client), slot, RECEIVED);
        EXPECT_SEND(pair.server, slot, SENT);
    }
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    await_error(pair.server, VIP_ERROR_CONN_LOST);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    while (cq_done(pair.client).rc == VIP_SUCCESS) continue;
    pair_connect(&pair);
    release_errors(VIP_ERROR_CATASTROPHIC);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
    post_simple_recv(pair.client, 0, MESSAGE);
    post_simple_send(pair.server, 0, MESSAGE);
    CHECK_RC(cq_wait(pair.client, LONG_MS).rc, VIP_SUCCESS);
    check_completion(__FILE__, __LINE__, recv_done(pair.client), 0, RECEIVED);
}
