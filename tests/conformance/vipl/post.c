/* SPDX-License-Identifier: BSD-3-Clause
 * VipPostSend and VipPostRecv: guide, sections 3.5.1, 3.5.4, 5.5 and 6.6.
 */
#include "endpoint.h"

#include <stdlib.h>

static Endpoint *opened(void) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    return end;
}

TEST(invalid_arguments_are_refused) {
    Endpoint *end = opened();
    int forged;
    CHECK_RC(VipPostSend(NULL, send_descriptor(end, 0), end->handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipPostRecv(NULL, recv_descriptor(end, 0), end->handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipPostSend(&forged, send_descriptor(end, 0), end->handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipPostRecv(&forged, recv_descriptor(end, 0), end->handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipPostSend(end->nic, send_descriptor(end, 0), end->handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipPostRecv(end->nic, recv_descriptor(end, 0), end->handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipPostSend(end->vi, NULL, end->handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipPostRecv(end->vi, NULL, end->handle), VIP_INVALID_PARAMETER);
    CHECK(query_vi(end).send_empty && query_vi(end).recv_empty);
}

/* Descriptors complete in the order of posting, and it is the posted pointers that come back. */
TEST(completions_come_in_posting_order) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    for (int slot = 0; slot < SLOTS; ++slot) post_simple_recv(pair.server, SLOTS - 1 - slot, 256);
    for (int slot = 0; slot < SLOTS; ++slot) {
        fill(pair.client, SEND_AT(slot), 256, (unsigned)slot);
        CHECK_RC(post_send(pair.client, slot, send_work(pair.client, SEND_AT(slot), (VIP_UINT32)slot * 8)),
                 VIP_SUCCESS);
    }
    for (int slot = 0; slot < SLOTS; ++slot) {
        CHECK_EQ(EXPECT_SEND(pair.client, slot, SENT).length, slot * 8);
        CHECK_EQ(EXPECT_RECV(pair.server, SLOTS - 1 - slot, RECEIVED).length, slot * 8);
        CHECK(filled(pair.server, RECV_AT(SLOTS - 1 - slot), (size_t)slot * 8, (unsigned)slot));
    }
}

/* The data leaves without any further call of the sender: the receiver alone does something here. */
TEST(posting_is_enough) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    const VIP_UINT32 length = 4 * 1024 * 1024;
    CHECK_RC(post_recv(pair.client, 0, recv_work(pair.client, BIG_AT, length)), VIP_SUCCESS);
    post_simple_recv(pair.client, 1, 64);
    fill(pair.server, BIG_AT, length, 5);
    CHECK_RC(post_send(pair.server, 0, send_work(pair.server, BIG_AT, length)), VIP_SUCCESS);
    post_simple_send(pair.server, 1, 64);
    CHECK_EQ(EXPECT_RECV(pair.client, 0, RECEIVED).length, length);
    EXPECT_RECV(pair.client, 1, RECEIVED);
    CHECK(filled(pair.client, BIG_AT, length, 5));
}

/* And the other way: the receiver does nothing while the sends complete. */
TEST(sends_complete_without_the_receiver) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT, BIG_BYTES)), VIP_SUCCESS);
    post_simple_recv(pair.server, 1, 64);
    CHECK_RC(post_send(pair.client, 0, send_work(pair.client, BIG_AT, 4 * 1024 * 1024)), VIP_SUCCESS);
    post_simple_send(pair.client, 1, 64);
    EXPECT_SEND(pair.client, 0, SENT);
    EXPECT_SEND(pair.client, 1, SENT);
}

/* The library clears the status; the provider alone writes it then: guide, section 5.5. */
TEST(posting_clears_the_status) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Work work = recv_work(pair.client, RECV_AT(0), 64);
    work.CS.Status = 0xffffffff;
    CHECK_RC(post_recv(pair.client, 0, work), VIP_SUCCESS);
    CHECK_EQ(recv_descriptor(pair.client, 0)->CS.Status, 0);
    CHECK_RC(recv_done(pair.client).rc, VIP_NOT_DONE);
    post_simple_send(pair.server, 0, 8);
    EXPECT_RECV(pair.client, 0, RECEIVED);
    work = send_work(pair.client, SEND_AT(0), 64);
    work.CS.Status = 0xffffffff;
    post_simple_recv(pair.server, 0, 64);
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT);
}

/* The status may be polled in the descriptor itself, without a call. */
TEST(the_provider_writes_the_status) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    const volatile VIP_UINT32 *status = &recv_descriptor(pair.client, 0)->CS.Status;
    post_simple_send(pair.server, 0, 8);
    EXPECT_RECV(pair.client, 0, RECEIVED);
    CHECK_EQ(*status, RECEIVED);
}

TEST(a_descriptor_can_be_posted_again) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    for (unsigned round = 0; round < 300; ++round) {
        fill(pair.client, SEND_AT(0), 100, round);
        post_simple_recv(pair.server, 0, 100);
        post_simple_send(pair.client, 0, 100);
        EXPECT_SEND(pair.client, 0, SENT);
        CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 100);
        CHECK(filled(pair.server, RECV_AT(0), 100, round));
    }
}

/* ---- Overrun ----------------------------------------------------------------------------------------------------- */

typedef VIP_RETURN (*PostCall)(VIP_VI_HANDLE, VIP_DESCRIPTOR *, VIP_MEM_HANDLE);

/* One descriptor more than the queue holds: the post succeeds as any other (guide, sections 3.5.1 and 3.5.4), and the
 * overrun is an asynchronous error (section 3.8.1) that takes the VI to the Error state (section 6.3.1). */
static void overrun(PostCall post, VIP_UINT16 control, VIP_ULONG operation) {
    Endpoint *end = opened();
    VIP_ULONG limit = end->limits.MaxDescriptorsPerQueue;
    VIP_DESCRIPTOR *descriptors = aligned_alloc(VIP_DESCRIPTOR_ALIGNMENT, (limit + 1) * sizeof *descriptors);
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    _Static_assert(sizeof(VIP_DESCRIPTOR) % VIP_DESCRIPTOR_ALIGNMENT == 0, "an array of descriptors is aligned");
    CHECK(descriptors != NULL);
    memset(descriptors, 0, (limit + 1) * sizeof *descriptors);
    CHECK_RC(VipRegisterMem(end->nic, descriptors, (limit + 1) * sizeof *descriptors, &attribs, &handle), VIP_SUCCESS);
    for (VIP_ULONG i = 0; i < limit; ++i) CHECK_RC(post(end->vi, &descriptors[i], handle), VIP_SUCCESS);
    CHECK_EQ(count_errors(end, VIP_ERROR_VI_OVERRUN), 0);
    descriptors[limit].CS.Control = control;
    descriptors[limit].CS.SegCount = control == VIP_CONTROL_OP_SENDRECV ? 0 : 1;
    CHECK_RC(post(end->vi, &descriptors[limit], handle), VIP_SUCCESS);
    VIP_ERROR_DESCRIPTOR error = await_error(end, VIP_ERROR_VI_OVERRUN);
    CHECK(error.ViHandle == end->vi);
    CHECK(error.DescriptorPtr == &descriptors[limit]);
    CHECK_EQ(error.OpCode, operation); /* section 4.4 */
    CHECK_EQ(error.ResourceCode, VIP_RESOURCE_VI);
    CHECK_EQ(state_of(end), VIP_STATE_ERROR);
    for (VIP_ULONG i = 0; i < limit; ++i) {
        VIP_DESCRIPTOR *done;
        VIP_RETURN rc = post == VipPostRecv ? VipRecvDone(end->vi, &done) : VipSendDone(end->vi, &done);
        CHECK_RC(rc, VIP_DESCRIPTOR_ERROR);
        CHECK(done == &descriptors[i]);
        CHECK(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
    }
    CHECK(query_vi(end).recv_empty && query_vi(end).send_empty); /* the one too many was not queued */
    CHECK_EQ(count_errors(end, VIP_ERROR_VI_OVERRUN), 0);
    CHECK_RC(disconnect(end), VIP_SUCCESS);
}

TEST(overrun_of_the_receive_queue) { overrun(VipPostRecv, VIP_CONTROL_OP_SENDRECV, VIP_STATUS_OP_RECEIVE); }
TEST(overrun_of_the_send_queue) { overrun(VipPostSend, VIP_CONTROL_OP_SENDRECV, VIP_STATUS_OP_SEND); }
TEST(overrun_by_an_rdma_write) { overrun(VipPostSend, VIP_CONTROL_OP_RDMAWRITE, VIP_STATUS_OP_RDMA_WRITE); }

/* As many as the NIC promises can be posted and are all used. */
TEST(a_full_receive_queue_is_used_to_the_end) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_ULONG limit = pair.client->limits.MaxDescriptorsPerQueue;
    VIP_DESCRIPTOR *descriptors = aligned_alloc(VIP_DESCRIPTOR_ALIGNMENT, limit * sizeof *descriptors);
    VIP_MEM_ATTRIBUTES attribs = {pair.client->ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    CHECK(descriptors != NULL);
    memset(descriptors, 0, limit * sizeof *descriptors);
    CHECK_RC(VipRegisterMem(pair.client->nic, descriptors, limit * sizeof *descriptors, &attribs, &handle),
             VIP_SUCCESS);
    for (VIP_ULONG i = 0; i < limit; ++i) CHECK_RC(VipPostRecv(pair.client->vi, &descriptors[i], handle), VIP_SUCCESS);
    for (VIP_ULONG i = 0; i < limit; ++i) {
        VIP_DESCRIPTOR *done = NULL;
        CHECK_RC(post_send(pair.server, 0, with_immediate(send_work(pair.server, 0, 0), (VIP_UINT32)i)), VIP_SUCCESS);
        EXPECT_SEND(pair.server, 0, SENT);
        CHECK_RC(VipRecvWait(pair.client->vi, LONG_MS, &done), VIP_SUCCESS);
        CHECK(done == &descriptors[i]);
        CHECK_EQ(done->CS.ImmediateData, i);
    }
}
