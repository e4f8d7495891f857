/* SPDX-License-Identifier: BSD-3-Clause */
/* VIPL for cycles.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vipl.h>

#include "tests/bench/cycles.h"

enum { timeout_ms = 30000 };

/* A queue's descriptors in the order of posting, which is also that of completion. */
struct Ring {
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR descriptors[queue_size];
    unsigned posted, done;
};

static struct End {
    struct Ring sends, receives;
    VIP_NIC_HANDLE nic;
    VIP_PROTECTION_HANDLE ptag;
    VIP_VI_HANDLE vi;
    VIP_MEM_HANDLE memory, descriptors;
} ends[end_count];

static void check(const char* call, VIP_RETURN result) {
    char text[32];
    if (result == VIP_SUCCESS) return;
    snprintf(text, sizeof text, "result %d", (int)result);
    fail(call, text);
}

static VIP_DESCRIPTOR* next_of(struct Ring* ring) { return &ring->descriptors[ring->posted++ % queue_size]; }

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static VIP_MEM_HANDLE register_memory(struct End* end, void* start, size_t size, VIP_BOOLEAN for_peers) {
    VIP_MEM_ATTRIBUTES attributes = {.Ptag = end->ptag, .EnableRdmaWrite = for_peers, .EnableRdmaRead = for_peers};
    VIP_MEM_HANDLE handle = 0;
    check("VipRegisterMem", VipRegisterMem(end->nic, start, size, &attributes, &handle));
    return handle;
}

static void open_end(struct End* end, struct Memory* area, char* device) {
    check("VipOpenNic", VipOpenNic(device, &end->nic));
    check("VipCreatePtag", VipCreatePtag(end->nic, &end->ptag));
    end->memory = register_memory(end, area, sizeof *area, VIP_TRUE);
    end->descriptors = register_memory(end, end, sizeof *end, VIP_FALSE);
    VIP_VI_ATTRIBUTES attributes = {.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
                                    .MaxTransferSize = max_size,
                                    .Ptag = end->ptag,
                                    .EnableRdmaWrite = VIP_TRUE,
                                    .EnableRdmaRead = VIP_TRUE};
    check("VipCreateVi", VipCreateVi(end->nic, &attributes, NULL, NULL, &end->vi));
}

union NetAddress {
    VIP_NET_ADDRESS address;
    VIP_UINT8 room[128];
};

/* The host of the end; both ends search for each other by the same discriminator. */
static union NetAddress address_of(int end) {
    union NetAddress made = {.address = {.DiscriminatorLen = sizeof(pid_t)}};
    const pid_t process = getpid();
    VIP_NIC_ATTRIBUTES attributes;
    check("VipQueryNic", VipQueryNic(ends[end].nic, &attributes));
    made.address.HostAddressLen = attributes.NicAddressLen;
    memcpy(made.address.HostAddress, attributes.LocalNicAddress, attributes.NicAddressLen);
    memcpy(made.address.HostAddress + attributes.NicAddressLen, &process, sizeof process);
    return made;
}

void open_ends(char* const names[end_count]) {
    for (int end = 0; end < end_count; ++end) open_end(&ends[end], &memory[end], names[end]);
    union NetAddress addresses[end_count] = {address_of(0), address_of(1)};
    for (int end = 0; end < end_count; ++end) {
        for (int i = 0; i < receives_ahead; ++i) post_receive(end);
        check("VipConnectPeerRequest",
              VipConnectPeerRequest(ends[end].vi, &addresses[end].address, &addresses[1 - end].address, timeout_ms));
    }
    for (int end = 0; end < end_count; ++end) {
        VIP_VI_ATTRIBUTES remote;
        check("VipConnectPeerWait", VipConnectPeerWait(ends[end].vi, &remote));
    }
}

void close_ends(void) {
    check("VipDisconnect", VipDisconnect(ends[0].vi));
    for (int end = 0; end < end_count; ++end) check("VipCloseNic", VipCloseNic(ends[end].nic));
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static VIP_DESCRIPTOR* prepare(struct Ring* ring, VIP_UINT16 operation, VIP_UINT16 segments, size_t size) {
    VIP_DESCRIPTOR* descriptor = next_of(ring);
    memset(&descriptor->CS, 0, sizeof descriptor->CS);
    descriptor->CS.Control = operation;
    descriptor->CS.SegCount = segments;
    descriptor->CS.Length = (VIP_UINT32)size;
    return descriptor;
}

static VIP_DATA_SEGMENT segment(int end, void* start, size_t size) {
    return (VIP_DATA_SEGMENT){.Data = {.Address = start}, .Handle = ends[end].memory, .Length = (VIP_UINT32)size};
}

void post_receive(int end) {
    VIP_DESCRIPTOR* descriptor = prepare(&ends[end].receives, VIP_CONTROL_OP_SENDRECV, 1, max_size);
    descriptor->DS[0].Local = segment(end, memory[end].incoming, max_size);
    check("VipPostRecv", VipPostRecv(ends[end].vi, descriptor, ends[end].descriptors));
}

void post_send(int end, size_t size) {
    VIP_DESCRIPTOR* descriptor = prepare(&ends[end].sends, VIP_CONTROL_OP_SENDRECV, 1, size);
    descriptor->DS[0].Local = segment(end, memory[end].outgoing, size);
    check("VipPostSend", VipPostSend(ends[end].vi, descriptor, ends[end].descriptors));
}

static void post_rdma(int end, VIP_UINT16 operation, void* local, void* remote, size_t size) {
    VIP_DESCRIPTOR* descriptor = prepare(&ends[end].sends, operation, 2, size);
    descriptor->DS[0].Remote = (VIP_ADDRESS_SEGMENT){.Data = {.Address = remote}, .Handle = ends[1 - end].memory};
    descriptor->DS[1].Local = segment(end, local, size);
    check("VipPostSend", VipPostSend(ends[end].vi, descriptor, ends[end].descriptors));
}

void post_write(int end, size_t size) {
    post_rdma(end, VIP_CONTROL_OP_RDMAWRITE, memory[end].outgoing, memory[1 - end].incoming, size);
}

void post_read(int end, size_t size) {
    post_rdma(end, VIP_CONTROL_OP_RDMAREAD, memory[end].incoming, memory[1 - end].outgoing, size);
}

static unsigned take(const char* call, VIP_RETURN result, struct Ring* ring) {
    if (result == VIP_NOT_DONE) return 0;
    check(call, result);
    ++ring->done;
    return 1;
}

/* To poll an empty queue is an error. */
void poll_sends(int end) {
    struct Ring* ring = &ends[end].sends;
    VIP_DESCRIPTOR* done = NULL;
    if (ring->posted != ring->done) sent[end] += take("VipSendDone", VipSendDone(ends[end].vi, &done), ring);
}

void poll_receives(int end) {
    VIP_DESCRIPTOR* done = NULL;
    received[end] += take("VipRecvDone", VipRecvDone(ends[end].vi, &done), &ends[end].receives);
}
