/* SPDX-License-Identifier: BSD-3-Clause
 * What echo_server and echo_client share: NIC, memory, descriptors and addresses. Guide, section 8.1.4.
 */
#include "echo_common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(EchoMessage) % VIP_DESCRIPTOR_ALIGNMENT == 0, "descriptors of an array of messages are aligned");

void echo_check(VIP_RETURN rc, const char *call) {
    if (rc == VIP_SUCCESS) return;
    fprintf(stderr, "echo: %s gives %d\n", call, (int)rc);
    exit(1);
}

void echo_open(EchoNic *nic, size_t messages) {
    memset(nic, 0, sizeof *nic);
    echo_check(VipOpenNic(VINICBASENAME, &nic->nic), "VipOpenNic");
    echo_check(VipQueryNic(nic->nic, &nic->attribs), "VipQueryNic");
    echo_check(VipCreatePtag(nic->nic, &nic->ptag), "VipCreatePtag");
    nic->memory_bytes = messages * sizeof(EchoMessage);
    nic->memory = aligned_alloc(VIP_DESCRIPTOR_ALIGNMENT, nic->memory_bytes);
    if (nic->memory == NULL) echo_check(VIP_ERROR_RESOURCE, "aligned_alloc");
    memset(nic->memory, 0, nic->memory_bytes);
    VIP_MEM_ATTRIBUTES attribs = {nic->ptag, VIP_FALSE, VIP_FALSE};
    echo_check(VipRegisterMem(nic->nic, nic->memory, nic->memory_bytes, &attribs, &nic->handle), "VipRegisterMem");
}

void echo_close(EchoNic *nic) {
    echo_check(VipDeregisterMem(nic->nic, nic->memory, nic->handle), "VipDeregisterMem");
    echo_check(VipDestroyPtag(nic->nic, nic->ptag), "VipDestroyPtag");
    echo_check(VipCloseNic(nic->nic), "VipCloseNic");
    free(nic->memory);
}

EchoMessage *echo_message(const EchoNic *nic, size_t index) { return (EchoMessage *)(void *)nic->memory + index; }

VIP_VI_HANDLE echo_create_vi(const EchoNic *nic, VIP_CQ_HANDLE send_cq, VIP_CQ_HANDLE recv_cq) {
    VIP_VI_ATTRIBUTES attribs;
    VIP_VI_HANDLE vi;
    memset(&attribs, 0, sizeof attribs);
    attribs.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attribs.MaxTransferSize = ECHO_BYTES;
    attribs.Ptag = nic->ptag;
    echo_check(VipCreateVi(nic->nic, &attribs, send_cq, recv_cq, &vi), "VipCreateVi");
    return vi;
}

EchoAddress echo_address(const EchoNic *nic) {
    EchoAddress address;
    VIP_UINT8 *bytes = address.bytes + offsetof(VIP_NET_ADDRESS, HostAddress);
    memset(&address, 0, sizeof address);
    address.address.HostAddressLen = nic->attribs.NicAddressLen;
    address.address.DiscriminatorLen = ECHO_DISCRIMINATOR;
    memcpy(bytes, nic->attribs.LocalNicAddress, nic->attribs.NicAddressLen);
    memcpy(bytes + nic->attribs.NicAddressLen, ECHO_SERVICE, ECHO_DISCRIMINATOR);
    return address;
}

static void fill_descriptor(const EchoNic *nic, EchoMessage *message, VIP_UINT32 length) {
    memset(&message->descriptor, 0, sizeof message->descriptor);
    message->descriptor.CS.Control = VIP_CONTROL_OP_SENDRECV;
    message->descriptor.CS.SegCount = 1;
    message->descriptor.CS.Length = length;
    message->descriptor.DS[0].Local.Data.Address = message->data;
    message->descriptor.DS[0].Local.Handle = nic->handle;
    message->descriptor.DS[0].Local.Length = length;
}

VIP_RETURN echo_post_recv(const EchoNic *nic, VIP_VI_HANDLE vi, EchoMessage *message) {
    fill_descriptor(nic, message, ECHO_BYTES);
    return VipPostRecv(vi, &message->descriptor, nic->handle);
}

VIP_RETURN echo_post_send(const EchoNic *nic, VIP_VI_HANDLE vi, EchoMessage *message, VIP_UINT32 length) {
    fill_descriptor(nic, message, length);
    return VipPostSend(vi, &message->descriptor, nic->handle);
}

void echo_drain(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR *descriptor;
    do VipSendDone(vi, &descriptor);
    while (descriptor != NULL);
    do VipRecvDone(vi, &descriptor);
    while (descriptor != NULL);
}
