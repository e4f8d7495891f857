/* SPDX-License-Identifier: BSD-3-Clause
 * Names that vendors' headers of the time had beyond the guide, used as programs of the time use them. Their sizes and
 * values are checked in abi.c.
 */
#include "endpoint.h"

/* ARMCI's sources stand in a newer header's way like this. It must see the name, as a code that no call of the guide
 * returns. */
#ifndef VIP_ERROR_NOT_SUPPORTED
#define VIP_ERROR_NOT_SUPPORTED -33333
#endif

/* ---- Descriptors with the names Control and Data ----------------------------------------------------------------- */

static VIP_DESCRIPTOR *prepare(VIP_DESCRIPTOR *descriptor, VIP_UINT8 *data, VIP_MEM_HANDLE handle) {
    memset(descriptor, 0, sizeof *descriptor);
    descriptor->Control.SegCount = 1;
    descriptor->Control.Control = VIP_CONTROL_OP_SENDRECV;
    descriptor->Control.Length = 64;
    descriptor->Data[0].Data.Address = data;
    descriptor->Data[0].Handle = handle;
    descriptor->Data[0].Length = 64;
    return descriptor;
}

TEST(descriptors_by_their_older_names) {
    Pair pair = connected_pair_with((Options){.level = VIP_SERVICE_RELIABLE_DELIVERY});
    VIP_DESCRIPTOR *done,
        *sent = prepare(send_descriptor(pair.client, 0), data_at(pair.client, SEND_AT(0)), pair.client->handle);
    post_simple_recv(pair.server, 0, 64);
    fill(pair.client, SEND_AT(0), 64, 1);
    CHECK_RC(VipPostSend(pair.client->vi, sent, pair.client->handle), VIP_SUCCESS);
    CHECK_RC(VipSendWait(pair.client->vi, LONG_MS, &done), VIP_SUCCESS);
    CHECK(done == sent);
    CHECK_EQ(done->Control.Status, SENT);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 64);
    CHECK(filled(pair.server, RECV_AT(0), 64, 1));
}

/* They are chained by the field that is the provider's while they are posted. */
TEST(a_free_list_of_descriptors) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    VIP_DESCRIPTOR *first = send_descriptor(end, 0), *second = send_descriptor(end, 1);
    first->Control.Next.Descriptor = second;
    CHECK(first->CS.Next.Address == second);
}

/* ---- Types of handlers ------------------------------------------------------------------------------------------- */

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) { (void)context, (void)error; }
static void on_descriptor(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    (void)context, (void)nic, (void)vi, (void)descriptor;
}
static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv_queue) {
    (void)context, (void)nic, (void)vi, (void)recv_queue;
}

TEST(handlers_have_types) {
    VIP_ERROR_HANDLER error_handler = on_error;
    VIP_VI_CALLBACK descriptor_handler = on_descriptor;
    VIP_CQ_CALLBACK entry_handler = on_entry;
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){.send_on_cq = VIP_TRUE});
    post_simple_recv(end, 0, 64);
    CHECK_RC(VipErrorCallback(end->nic, NULL, error_handler), VIP_SUCCESS);
    CHECK_RC(VipRecvNotify(end->vi, NULL, descriptor_handler), VIP_SUCCESS);
    CHECK_RC(VipCQNotify(end->cq, NULL, entry_handler), VIP_SUCCESS);
    CHECK_RC(VipErrorCallback(end->nic, NULL, NULL), VIP_SUCCESS);
}

/* ---- Services and calls that no specification describes ---------------------------------------------------------- */

/* VIP_BASE_SERVICES is what ReliabilityLevelSupport is held against; the other bits are no level. */
TEST(services_beyond_the_levels_are_not_offered) {
    static const int more[] = {VIP_SERVICE_ACK, VIP_SERVICE_DFC};
    Endpoint *end = new_endpoint(NULL);
    VIP_VI_HANDLE vi;
    endpoint_open(end, (Options){0});
    CHECK_EQ(end->limits.ReliabilityLevelSupport & VIP_BASE_SERVICES, end->limits.ReliabilityLevelSupport);
    for (size_t i = 0; i < sizeof more / sizeof more[0]; ++i) {
        VIP_VI_ATTRIBUTES attribs = end->attribs;
        attribs.ReliabilityLevel = (VIP_RELIABILITY_LEVEL)(attribs.ReliabilityLevel | more[i]);
        CHECK_RC(VipCreateVi(end->nic, &attribs, NULL, NULL, &vi), VIP_INVALID_RELIABILITY_LEVEL);
        attribs.ReliabilityLevel = (VIP_RELIABILITY_LEVEL)more[i];
        CHECK_RC(VipCreateVi(end->nic, &attribs, NULL, NULL, &vi), VIP_INVALID_RELIABILITY_LEVEL);
    }
}

/* Every send starts with its post, so that none is ever deferred. */
TEST(no_send_is_deferred) {
    Pair pair = connected_pair_with((Options){.level = VIP_SERVICE_RELIABLE_DELIVERY});
    VIP_BOOLEAN deferred = VIP_TRUE;
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64);
    CHECK_RC(VipPostDeferredSends(pair.client->vi, VIP_FALSE, &deferred), VIP_SUCCESS);
    CHECK_EQ(deferred, VIP_FALSE);
    EXPECT_SEND(pair.client, 0, SENT);
    EXPECT_RECV(pair.server, 0, RECEIVED);
    CHECK_RC(VipPostDeferredSends(NULL, VIP_FALSE, &deferred), VIP_INVALID_PARAMETER);
    CHECK_RC(VipPostDeferredSends(pair.client->nic, VIP_FALSE, &deferred), VIP_INVALID_PARAMETER);
    CHECK_RC(VipPostDeferredSends(pair.client->vi, VIP_FALSE, NULL), VIP_INVALID_PARAMETER);
}

TEST(tags_of_completion_queues_are_not_supported) {
    Endpoint *end = new_endpoint(NULL);
    int dummy = 0;
    VIP_EVENT_HANDLE event = &dummy;
    endpoint_open(end, (Options){.recv_on_cq = VIP_TRUE});
    CHECK_RC(VipAddTagCQ(end->cq, &event, 1, 0), VIP_ERROR_NOT_SUPPORTED);
    CHECK_RC(VipRemoveTagCQ(end->cq, event, 1), VIP_ERROR_NOT_SUPPORTED);
    CHECK(event == &dummy);
    CHECK_RC(VipAddTagCQ(NULL, &event, 1, 0), VIP_INVALID_PARAMETER);
    CHECK_RC(VipAddTagCQ(end->vi, &event, 1, 0), VIP_INVALID_PARAMETER);
    CHECK_RC(VipAddTagCQ(end->cq, NULL, 1, 0), VIP_INVALID_PARAMETER);
    CHECK_RC(VipRemoveTagCQ(NULL, event, 1), VIP_INVALID_PARAMETER);
}
