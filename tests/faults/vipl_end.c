/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a VIPL connection.
 */
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <vipl.h>

#include "end.h"

enum { address_size = 64, port = 7400 };

typedef union {
    VIP_NET_ADDRESS address;
    VIP_UINT8 bytes[address_size];
} NetAddress;

/* Registered as one region, because descriptors are read from it, too. */
static struct {
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR send;
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR receive;
    char data[memory_size];
} memory;

static VIP_NIC_HANDLE nic;
static VIP_PROTECTION_HANDLE tag;
static VIP_MEM_HANDLE region;
static VIP_VI_HANDLE vi;
static VIP_CONN_HANDLE request;
static bool sends, receives; /* a descriptor is posted */
static sem_t errors;
static VIP_ERROR_CODE last_error;

static const char* name_of(VIP_RETURN result) {
    switch (result) {
        case VIP_SUCCESS: return "ok";
        case VIP_TIMEOUT: return "timeout";
        case VIP_NOT_REACHABLE: return "unreachable";
        case VIP_NO_MATCH: return "no match";
        case VIP_REJECT: return "rejected";
        case VIP_INVALID_STATE: return "invalid state";
        case VIP_INVALID_PARAMETER: return "invalid parameter";
        case VIP_ERROR_RESOURCE: return "no resources";
        default: return "failed";
    }
}

/* The first failure during a command, which becomes its answer. */
static VIP_RETURN problem;

static bool check(VIP_RETURN result) {
    if (problem == VIP_SUCCESS) problem = result;
    return result == VIP_SUCCESS;
}

static const char* answer(const char* text) {
    const char* const said = problem != VIP_SUCCESS ? name_of(problem) : text;
    problem = VIP_SUCCESS;
    return said;
}

static void note_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    (void)context;
    last_error = error->ErrorCode;
    sem_post(&errors);
}

static VIP_VI_ATTRIBUTES attributes(void) {
    return (VIP_VI_ATTRIBUTES){
        .ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY, .MaxTransferSize = sizeof memory.data, .Ptag = tag};
}

const char* open_all(void) {
    char device[32];
    VIP_MEM_ATTRIBUTES access = {0};
    VIP_VI_ATTRIBUTES wanted;
    snprintf(device, sizeof device, "viaduct-veth%d", own_host);
    sem_init(&errors, 0, 0);
    if (!check(VipOpenNic(device, &nic)) || !check(VipErrorCallback(nic, NULL, note_error)) ||
        !check(VipCreatePtag(nic, &tag)))
        return answer(NULL);
    access.Ptag = tag;
    wanted = attributes();
    if (check(VipRegisterMem(nic, &memory, sizeof memory, &access, &region)))
        check(VipCreateVi(nic, &wanted, NULL, NULL, &vi));
    return answer("ok");
}

static VIP_NET_ADDRESS* address_of(NetAddress* place, int host) {
    const VIP_UINT8 bytes[] = {10, 0, 0, (VIP_UINT8)host, port >> 8, port & 0xFF};
    place->address.HostAddressLen = 4;
    place->address.DiscriminatorLen = 2;
    memcpy(place->address.HostAddress, bytes, sizeof bytes);
    return &place->address;
}

const char* take_request(void) {
    NetAddress local, remote;
    VIP_VI_ATTRIBUTES theirs;
    remote.address.HostAddressLen = 4;
    remote.address.DiscriminatorLen = 2;
    check(VipConnectWait(nic, address_of(&local, own_host), VIP_INFINITE, &remote.address, &theirs, &request));
    return answer("ok");
}

const char* connect_ends(void) {
    NetAddress local, remote;
    VIP_VI_ATTRIBUTES theirs;
    if (server_host == 0)
        check(VipConnectAccept(request, vi));
    else
        check(VipConnectRequest(vi, address_of(&local, own_host), address_of(&remote, server_host), connect_timeout_ms,
                                &theirs));
    return answer("established");
}

const char* next_event(void) {
    while (sem_wait(&errors) != 0) continue;
    switch (last_error) {
        case VIP_ERROR_CONN_LOST: return "lost";
        case VIP_ERROR_CATASTROPHIC: return "catastrophe";
        default: return "another error";
    }
}

static void prepare(VIP_DESCRIPTOR* descriptor, VIP_UINT32 length) {
    memset(descriptor, 0, sizeof *descriptor);
    descriptor->CS.SegCount = 1;
    descriptor->CS.Length = length;
    descriptor->DS[0].Local.Data.Address = memory.data;
    descriptor->DS[0].Local.Handle = region;
    descriptor->DS[0].Local.Length = length;
}

const char* post_receive(void) {
    prepare(&memory.receive, sizeof memory.data);
    receives = check(VipPostRecv(vi, &memory.receive, region));
    return answer("ok");
}

const char* post_send(void) {
    prepare(&memory.send, message_size);
    sends = check(VipPostSend(vi, &memory.send, region));
    return answer("ok");
}

const char* finish(void) {
    VIP_DESCRIPTOR* done = NULL;
    bool succeeded = false;
    if (sends) succeeded = VipSendWait(vi, VIP_INFINITE, &done) == VIP_SUCCESS;
    /* On Reliable Delivery a send has succeeded once it has left, so the receive decides. */
    if (receives) succeeded = VipRecvWait(vi, VIP_INFINITE, &done) == VIP_SUCCESS;
    sends = receives = false;
    return succeeded ? "done" : "failed";
}

const char* close_all(void) {
    check(VipDisconnect(vi));
    finish(); /* a VI can be destroyed only when its queues are empty */
    check(VipDestroyVi(vi));
    check(VipDeregisterMem(nic, &memory, region));
    check(VipDestroyPtag(nic, tag));
    check(VipCloseNic(nic));
    sem_destroy(&errors);
    return answer("ok");
}
