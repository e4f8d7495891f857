/* SPDX-License-Identifier: BSD-3-Clause
 * VipCreateVi, VipDestroyVi, and the extension VipSetUserData / VipGetUserData: guide, sections 3.2 and 9.2.
 */
#include "endpoint.h"

#include <stdlib.h>

static Endpoint *opened(void) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    return end;
}

static VIP_RETURN create(const Endpoint *end, VIP_VI_ATTRIBUTES attribs, VIP_VI_HANDLE *vi) {
    return VipCreateVi(end->nic, &attribs, NULL, NULL, vi);
}

/* ---- VipCreateVi ------------------------------------------------------------------------------------------------- */

TEST(begins_idle_with_empty_queues) {
    Endpoint *end = opened();
    ViQuery query = query_vi(end);
    CHECK_EQ(query.state, VIP_STATE_IDLE);
    CHECK(query.send_empty && query.recv_empty);
}

TEST(every_reliability_level) {
    Endpoint *end = opened();
    VIP_RELIABILITY_LEVEL all = VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    CHECK_EQ(end->limits.ReliabilityLevelSupport, all);
    for (VIP_RELIABILITY_LEVEL level = 1; level <= 4; level = (VIP_RELIABILITY_LEVEL)(level * 2)) {
        VIP_VI_HANDLE vi;
        VIP_VI_ATTRIBUTES attribs = end->attribs;
        attribs.ReliabilityLevel = level;
        attribs.EnableRdmaRead = VIP_FALSE;
        CHECK_RC(create(end, attribs, &vi), VIP_SUCCESS);
        CHECK_RC(VipDestroyVi(vi), VIP_SUCCESS);
    }
}

TEST(create_with_invalid_arguments_is_refused) {
    Endpoint *end = opened();
    VIP_VI_HANDLE vi;
    CHECK_RC(VipCreateVi(NULL, &end->attribs, NULL, NULL, &vi), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreateVi(end, &end->attribs, NULL, NULL, &vi), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreateVi(end->nic, NULL, NULL, NULL, &vi), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreateVi(end->nic, &end->attribs, NULL, NULL, NULL), VIP_INVALID_PARAMETER);
}

TEST(create_with_an_invalid_cq_is_refused) {
    Endpoint *end = opened();
    VIP_VI_HANDLE vi;
    CHECK_RC(VipCreateVi(end->nic, &end->attribs, end, NULL, &vi), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreateVi(end->nic, &end->attribs, NULL, end->vi, &vi), VIP_INVALID_PARAMETER);
}

TEST(create_with_a_cq_of_another_nic_is_refused) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE other;
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE vi;
    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipCreateCQ(other, 8, &cq), VIP_SUCCESS);
    CHECK_RC(VipCreateVi(end->nic, &end->attribs, NULL, cq, &vi), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreateVi(end->nic, &end->attribs, cq, NULL, &vi), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyCQ(cq), VIP_SUCCESS);
}

TEST(create_wants_one_reliability_level) {
    static const VIP_RELIABILITY_LEVEL wrong[] = {0, 0x03, 0x05, 0x06, 0x07, 0x08, 0xffff};
    Endpoint *end = opened();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        VIP_VI_HANDLE vi;
        VIP_VI_ATTRIBUTES attribs = end->attribs;
        attribs.ReliabilityLevel = wrong[i];
        CHECK_RC(create(end, attribs, &vi), VIP_INVALID_RELIABILITY_LEVEL);
    }
}

TEST(create_checks_the_transfer_size) {
    Endpoint *end = opened();
    VIP_VI_HANDLE vi;
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    attribs.MaxTransferSize = 0;
    CHECK_RC(create(end, attribs, &vi), VIP_INVALID_MTU);
    attribs.MaxTransferSize = end->limits.MaxTransferSize + 1;
    CHECK_RC(create(end, attribs, &vi), VIP_INVALID_MTU);
    attribs.MaxTransferSize = end->limits.MaxTransferSize;
    CHECK_RC(create(end, attribs, &vi), VIP_SUCCESS);
}

TEST(create_accepts_no_quality_of_service) {
    Endpoint *end = opened();
    VIP_VI_HANDLE vi;
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    attribs.QoS = end;
    CHECK_RC(create(end, attribs, &vi), VIP_INVALID_QOS);
}

TEST(create_checks_the_protection_tag) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE other;
    VIP_VI_HANDLE vi;
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    attribs.Ptag = end;
    CHECK_RC(create(end, attribs, &vi), VIP_INVALID_PTAG);
    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(other, &attribs.Ptag), VIP_SUCCESS);
    CHECK_RC(create(end, attribs, &vi), VIP_INVALID_PTAG);
    CHECK_RC(VipDestroyPtag(other, attribs.Ptag), VIP_SUCCESS);
    CHECK_RC(VipCreateVi(other, &attribs, NULL, NULL, &vi), VIP_INVALID_PTAG);
}

static VIP_PROTECTION_HANDLE tag_of(VIP_VI_HANDLE vi) {
    ViQuery query;
    CHECK_RC(VipQueryVi(vi, &query.state, &query.attribs, &query.send_empty, &query.recv_empty), VIP_SUCCESS);
    return query.attribs.Ptag;
}

/* Beyond the guide, for programs of the time that leave the tag out: the NIC's default tag, which is the first that the
 * program creates, whether before or after. */
TEST(create_without_a_tag_takes_the_default) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE other;
    VIP_VI_HANDLE vi;
    VIP_PROTECTION_HANDLE first, second;
    VIP_MEM_HANDLE handle;
    VIP_MEM_ATTRIBUTES memory = {NULL, VIP_FALSE, VIP_FALSE};
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    attribs.Ptag = NULL;
    CHECK_RC(create(end, attribs, &vi), VIP_SUCCESS);
    CHECK(tag_of(vi) == end->ptag);
    CHECK(attribs.Ptag == NULL); /* what the program passed stays as it was */
    CHECK_RC(VipDestroyPtag(end->nic, end->ptag), VIP_ERROR_RESOURCE);

    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipCreateVi(other, &attribs, NULL, NULL, &vi), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(other, &first), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(other, &second), VIP_SUCCESS);
    CHECK(tag_of(vi) == first && second != first);
    memory.Ptag = first;
    CHECK_RC(VipRegisterMem(other, end->memory, 4096, &memory, &handle), VIP_SUCCESS);
    VIP_DESCRIPTOR *receive = recv_descriptor(end, 0);
    memset(receive, 0, sizeof *receive);
    CHECK_RC(VipRegisterMem(other, receive, sizeof *receive, &memory, &handle), VIP_SUCCESS);
    CHECK_RC(VipPostRecv(vi, receive, handle), VIP_SUCCESS);
    CHECK_RC(VipDisconnect(vi), VIP_SUCCESS);
    CHECK_RC(VipRecvDone(vi, &receive), VIP_DESCRIPTOR_ERROR);
    CHECK(receive == recv_descriptor(end, 0)); /* it was queued, so that the tags match */
}

/* Where the program destroys the default tag, the next one that it creates takes its place. */
TEST(the_default_tag_can_be_destroyed) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    VIP_PROTECTION_HANDLE first, second;
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    attribs.Ptag = NULL;
    CHECK_RC(VipOpenNic("VINIC", &nic), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(nic, &first), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(nic, first), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(nic, &second), VIP_SUCCESS);
    CHECK_RC(VipCreateVi(nic, &attribs, NULL, NULL, &vi), VIP_SUCCESS);
    CHECK(tag_of(vi) == second);
}

/* Nor is its place taken by a tag of another NIC, which in time has the same handle. */
TEST(the_default_tag_is_of_the_nic) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    VIP_PROTECTION_HANDLE first, tag = NULL;
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    attribs.Ptag = NULL;
    if (is_hardware(end)) skip("a device takes long to make so many tags");
    CHECK_RC(VipOpenNic("VINIC", &nic), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(nic, &first), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(nic, first), VIP_SUCCESS);
    for (int i = 0; tag != first && i < 20000; ++i) {
        if (tag != NULL) CHECK_RC(VipDestroyPtag(end->nic, tag), VIP_SUCCESS);
        CHECK_RC(VipCreatePtag(end->nic, &tag), VIP_SUCCESS);
    }
    CHECK_RC(VipCreateVi(nic, &attribs, NULL, NULL, &vi), VIP_SUCCESS);
    CHECK(tag_of(vi) != tag);
}

TEST(create_refuses_rdma_read_where_it_is_not_supported) {
    Endpoint *end = opened();
    VIP_VI_HANDLE vi;
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    CHECK_EQ(end->limits.RDMAReadSupport & VIP_SERVICE_UNRELIABLE, 0);
    attribs.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
    attribs.EnableRdmaRead = VIP_TRUE;
    CHECK_RC(create(end, attribs, &vi), VIP_INVALID_RDMAREAD);
}

TEST(create_more_than_max_vi_is_a_resource_error) {
    Endpoint *end = opened();
    VIP_ULONG count = 1; /* the endpoint's own */
    VIP_VI_HANDLE vi = NULL, last;
    VIP_RETURN rc;
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    need_limit(end, end->limits.MaxVI);
    while ((rc = create(end, attribs, &last)) == VIP_SUCCESS && count <= end->limits.MaxVI) {
        vi = last;
        ++count;
    }
    CHECK_RC(rc, VIP_ERROR_RESOURCE);
    CHECK_EQ(count, end->limits.MaxVI);
    CHECK_RC(VipDestroyVi(vi), VIP_SUCCESS);
    CHECK_RC(create(end, attribs, &vi), VIP_SUCCESS);
}

/* ---- VipDestroyVi ------------------------------------------------------------------------------------------------ */

TEST(destroys_an_idle_vi) {
    Endpoint *end = opened();
    VIP_DESCRIPTOR *descriptor;
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attribs;
    VIP_BOOLEAN send_empty, recv_empty;
    CHECK_RC(VipDestroyVi(end->vi), VIP_SUCCESS);
    CHECK_RC(VipQueryVi(end->vi, &state, &attribs, &send_empty, &recv_empty), VIP_INVALID_PARAMETER);
    CHECK_RC(VipPostSend(end->vi, send_descriptor(end, 0), end->handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSendDone(end->vi, &descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDisconnect(end->vi), VIP_INVALID_PARAMETER);
}

TEST(destroy_of_an_invalid_handle_is_refused) {
    Endpoint *end = opened();
    CHECK_RC(VipDestroyVi(NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyVi(end), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyVi(end->nic), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyVi(end->vi), VIP_SUCCESS);
    CHECK_RC(VipDestroyVi(end->vi), VIP_INVALID_PARAMETER);
}

/* A handle that was destroyed stays invalid although another VI may take its place. */
TEST(a_destroyed_handle_is_not_that_of_the_next_vi) {
    Endpoint *end = opened();
    VIP_VI_HANDLE old = end->vi, next;
    CHECK_RC(VipDestroyVi(old), VIP_SUCCESS);
    CHECK_RC(create(end, end->attribs, &next), VIP_SUCCESS);
    CHECK_RC(VipDestroyVi(old), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyVi(next), VIP_SUCCESS);
}

TEST(destroy_of_a_connected_vi_is_refused) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(VipDestroyVi(pair.client->vi), VIP_INVALID_STATE);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_RC(VipDestroyVi(pair.client->vi), VIP_SUCCESS);
}

TEST(destroy_of_a_pending_vi_is_refused) {
    Endpoint *end = opened();
    Request request = request_to(end, end, LONG_MS);
    CHECK_RC(peer_request(end, &request), VIP_SUCCESS);
    CHECK_RC(VipDestroyVi(end->vi), VIP_INVALID_STATE);
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    CHECK_RC(VipDestroyVi(end->vi), VIP_SUCCESS);
}

TEST(destroy_of_a_vi_in_error_is_refused) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    CHECK_RC(VipDestroyVi(pair.client->vi), VIP_INVALID_STATE);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_RC(VipDestroyVi(pair.client->vi), VIP_SUCCESS);
}

TEST(destroy_with_queued_descriptors_is_refused) {
    Endpoint *end = opened();
    post_simple_recv(end, 0, 64);
    CHECK_RC(VipDestroyVi(end->vi), VIP_INVALID_STATE);
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    CHECK_RC(VipDestroyVi(end->vi), VIP_INVALID_STATE); /* complete, but not yet taken off the queue */
    EXPECT_RECV(end, 0, RECEIVED | FLUSHED);
    CHECK_RC(VipDestroyVi(end->vi), VIP_SUCCESS);
}

TEST(destroy_with_an_undequeued_send_is_refused) {
    Endpoint *end = opened();
    post_simple_send(end, 0, 64);
    CHECK_RC(VipDestroyVi(end->vi), VIP_INVALID_STATE);
    EXPECT_SEND(end, 0, SENT | FLUSHED);
    CHECK_RC(VipDestroyVi(end->vi), VIP_SUCCESS);
}

TEST(everything_is_destroyed_in_order) {
    Pair pair = connected_pair_with((Options){.send_on_cq = VIP_TRUE, .recv_on_cq = VIP_TRUE});
    post_simple_recv(pair.client, 0, 64);
    endpoint_close(pair.client);
    endpoint_close(pair.server);
}

/* ---- VipSetUserData, VipGetUserData ------------------------------------------------------------------------------ */

TEST(user_data_is_kept_for_each_vi) {
    Endpoint *end = opened();
    VIP_VI_HANDLE other;
    int mine, others;
    CHECK_RC(create(end, end->attribs, &other), VIP_SUCCESS);
    CHECK(VipGetUserData(end->vi) == NULL);
    VipSetUserData(end->vi, &mine);
    VipSetUserData(other, &others);
    CHECK(VipGetUserData(end->vi) == &mine);
    CHECK(VipGetUserData(other) == &others);
    VipSetUserData(end->vi, NULL);
    CHECK(VipGetUserData(end->vi) == NULL);
}

TEST(user_data_of_an_invalid_handle_is_null) {
    Endpoint *end = opened();
    VipSetUserData(NULL, end);
    VipSetUserData(end, end);
    CHECK(VipGetUserData(NULL) == NULL);
    CHECK(VipGetUserData(end) == NULL);
    VipSetUserData(end->vi, end);
    CHECK_RC(VipDestroyVi(end->vi), VIP_SUCCESS);
    CHECK(VipGetUserData(end->vi) == NULL);
}
