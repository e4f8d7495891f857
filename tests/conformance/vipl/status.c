/* SPDX-License-Identifier: BSD-3-Clause
 * Programs that look at the status of a posted descriptor instead of making a call (guide, section 5.5: a descriptor is
 * the program's again once its status says Done). The status and the data come by themselves; the calls that take
 * descriptors off their queues still return them.
 */
#include "endpoint.h"

#include <sched.h>

enum { MESSAGE = 64 };

static VIP_UINT32 status_of(const VIP_DESCRIPTOR *descriptor) {
    return __atomic_load_n(&descriptor->CS.Status, __ATOMIC_ACQUIRE);
}

/* Makes no call. */
static void await_status(const VIP_DESCRIPTOR *descriptor, VIP_UINT32 status) {
    const VIP_UINT64 began = steady_ns();
    while ((status_of(descriptor) & VIP_STATUS_DONE) == 0 && steady_ns() - began < LATE_MS * 1000000ULL) sched_yield();
    CHECK_EQ(status_of(descriptor), status);
}

static Pair watched_pair(Options options) {
    Pair pair = connected_pair_with(options);
    if (is_hardware(pair.client)) skip("status is written by the calls that look for completions");
    return pair;
}

static void receive(Options options) {
    Pair pair = watched_pair(options);
    for (int slot = 0; slot < 3; ++slot) post_simple_recv(pair.client, slot, MESSAGE);
    for (int slot = 0; slot < 3; ++slot) {
        fill(pair.server, SEND_AT(slot), MESSAGE, (unsigned)slot);
        post_simple_send(pair.server, slot, MESSAGE);
        await_status(recv_descriptor(pair.client, slot), RECEIVED);
        CHECK_EQ(recv_descriptor(pair.client, slot)->CS.Length, MESSAGE);
        CHECK(filled(pair.client, RECV_AT(slot), MESSAGE, (unsigned)slot));
    }
    for (int slot = 0; slot < 3; ++slot) EXPECT_RECV(pair.client, slot, RECEIVED);
}
TEST(receive_unreliable) { receive((Options){.level = VIP_SERVICE_UNRELIABLE}); }
TEST(receive_reliable_delivery) { receive((Options){.level = VIP_SERVICE_RELIABLE_DELIVERY}); }
TEST(receive_reliable_reception) { receive((Options){.level = VIP_SERVICE_RELIABLE_RECEPTION}); }

TEST(receive_on_a_cq) {
    Pair pair = watched_pair((Options){.recv_on_cq = VIP_TRUE});
    post_simple_recv(pair.client, 0, MESSAGE);
    post_simple_send(pair.server, 0, MESSAGE);
    await_status(recv_descriptor(pair.client, 0), RECEIVED);
    CHECK_RC(cq_done(pair.client).rc, VIP_SUCCESS);
    Completion completion = recv_done(pair.client);
    CHECK_RC(completion.rc, VIP_SUCCESS);
    CHECK_EQ(completion.slot, 0);
}

TEST(receive_of_immediate_data) {
    Pair pair = watched_pair((Options){.level = VIP_SERVICE_RELIABLE_DELIVERY});
    post_simple_recv(pair.client, 0, MESSAGE);
    CHECK_RC(post_send(pair.server, 0, with_immediate(send_work(pair.server, SEND_AT(0), MESSAGE), 4711)), VIP_SUCCESS);
    await_status(recv_descriptor(pair.client, 0), RECEIVED | VIP_STATUS_IMMEDIATE);
    CHECK_EQ(recv_descriptor(pair.client, 0)->CS.ImmediateData, 4711);
}

/* The receiver makes no call either. */
static void send_of(VIP_RELIABILITY_LEVEL level, VIP_UINT32 length) {
    Pair pair = watched_pair((Options){.level = level});
    CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT, length)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 0, send_work(pair.client, BIG_AT, length)), VIP_SUCCESS);
    await_status(send_descriptor(pair.client, 0), SENT);
    EXPECT_SEND(pair.client, 0, SENT);
}
TEST(send_unreliable) { send_of(VIP_SERVICE_UNRELIABLE, MESSAGE); }
TEST(send_reliable_delivery) { send_of(VIP_SERVICE_RELIABLE_DELIVERY, MESSAGE); }
TEST(send_reliable_reception) { send_of(VIP_SERVICE_RELIABLE_RECEPTION, MESSAGE); }
TEST(large_send_unreliable) { send_of(VIP_SERVICE_UNRELIABLE, BIG_BYTES); }
TEST(large_send_reliable_delivery) { send_of(VIP_SERVICE_RELIABLE_DELIVERY, BIG_BYTES); }
TEST(large_send_reliable_reception) { send_of(VIP_SERVICE_RELIABLE_RECEPTION, BIG_BYTES); }

static void rdma(VIP_UINT16 operation, VIP_UINT32 status) {
    Pair pair = watched_pair((Options){.level = VIP_SERVICE_RELIABLE_DELIVERY});
    CHECK_RC(post_send(pair.client, 0, rdma_work(pair.client, operation, SEND_AT(0), MESSAGE, pair.server, RECV_AT(0))),
             VIP_SUCCESS);
    await_status(send_descriptor(pair.client, 0), status);
    EXPECT_SEND(pair.client, 0, status);
}
TEST(rdma_write) { rdma(VIP_CONTROL_OP_RDMAWRITE, WRITTEN); }
TEST(rdma_read) { rdma(VIP_CONTROL_OP_RDMAREAD, READ); }

TEST(flush_when_the_peer_disconnects) {
    Pair pair = watched_pair((Options){.level = VIP_SERVICE_RELIABLE_DELIVERY});
    post_simple_recv(pair.client, 0, MESSAGE);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    await_status(recv_descriptor(pair.client, 0), RECEIVED | FLUSHED);
    EXPECT_RECV(pair.client, 0, RECEIVED | FLUSHED);
}

/* Closing the NIC destroys the VI with what is posted. The memory may be gone by then. */
TEST(nothing_is_written_by_closing_the_nic) {
    Pair pair = watched_pair((Options){.level = VIP_SERVICE_RELIABLE_DELIVERY});
    post_simple_recv(pair.client, 0, MESSAGE);
    endpoint_close_nic(pair.client);
    CHECK_EQ(status_of(recv_descriptor(pair.client, 0)), 0);
}
