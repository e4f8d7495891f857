/* SPDX-License-Identifier: BSD-3-Clause
 * An end for VIPL: see ends.h. It must not be moved, because the NIC reads its descriptors.
 */
#ifndef TESTS_SUPPORT_ENDS_VIPL_END_H
#define TESTS_SUPPORT_ENDS_VIPL_END_H

#include <arpa/inet.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>

#include "../ends.h"

#define END_OPENS_ADDRESSES false
#define END_CONFIRMS_SENDS false /* on Reliable Delivery they have left */

enum { end_ring = 256 };

/* An address with a port as its discriminator, as DAT and librpma have it. */
typedef union {
    VIP_NET_ADDRESS address;
    VIP_UINT8 room[sizeof(VIP_NET_ADDRESS) + 64];
} NetAddress;

/* A queue's descriptors in the order of posting, which is also that of completion. */
typedef struct {
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR descriptors[end_ring];
    unsigned posted, done;
} Ring;

typedef struct {
    Ring sends, receives;
    Setup setup;
    VIP_NIC_HANDLE nic;
    VIP_PROTECTION_HANDLE ptag;
    VIP_VI_HANDLE vi;
    VIP_MEM_HANDLE memory, descriptors;
    VIP_CONN_HANDLE request;
    Key there;
    VIP_NIC_ATTRIBUTES nic_attributes;
    NetAddress local, remote;
    enum { end_waits, end_meets, end_is_connected } state;
    sem_t errors;
    VIP_ERROR_CODE last_error;
} End;

static inline bool end_check(const char* call, VIP_RETURN result) {
    static const char* const texts[] = {[VIP_TIMEOUT] = "timeout",
                                        [VIP_NOT_REACHABLE] = "unreachable",
                                        [VIP_NO_MATCH] = "no match",
                                        [VIP_REJECT] = "rejected",
                                        [VIP_INVALID_STATE] = "invalid state",
                                        [VIP_INVALID_PARAMETER] = "invalid parameter",
                                        [VIP_ERROR_RESOURCE] = "no resources"};
    if (result == VIP_SUCCESS) return true;
    fail(call, result < sizeof texts / sizeof *texts && texts[result] != NULL ? texts[result] : "failed");
    return false;
}

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

static inline void end_on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    End* const end = context;
    end->last_error = error->ErrorCode;
    sem_post(&end->errors);
}

static inline bool end_register(End* end, void* start, size_t size, VIP_BOOLEAN for_peers, VIP_MEM_HANDLE* handle) {
    VIP_MEM_ATTRIBUTES attributes = {.Ptag = end->ptag, .EnableRdmaWrite = for_peers, .EnableRdmaRead = for_peers};
    return CALL(VipRegisterMem, end->nic, start, size, &attributes, handle);
}

static inline bool end_open(End* end, const Setup* setup) {
    memset(end, 0, sizeof *end);
    end->setup = *setup;
    sem_init(&end->errors, 0, 0);
    return CALL(VipOpenNic, (char*)(uintptr_t)setup->at, &end->nic) &&
           CALL(VipErrorCallback, end->nic, end, end_on_error) && CALL(VipQueryNic, end->nic, &end->nic_attributes) &&
           CALL(VipCreatePtag, end->nic, &end->ptag) &&
           end_register(end, setup->memory, setup->bytes, setup->for_peers, &end->memory) &&
           end_register(end, end, sizeof *end, VIP_FALSE, &end->descriptors);
}

static inline bool end_prepare(End* end) {
    VIP_VI_ATTRIBUTES attributes = {.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
                                    .MaxTransferSize = end->setup.bytes,
                                    .Ptag = end->ptag,
                                    .EnableRdmaWrite = end->setup.for_peers,
                                    .EnableRdmaRead = end->setup.for_peers};
    return CALL(VipCreateVi, end->nic, &attributes, NULL, NULL, &end->vi);
}

/* A VI can be destroyed only when its queues are empty. */
static inline void end_part(End* end) {
    VIP_DESCRIPTOR* done = NULL;
    CALL(VipDisconnect, end->vi);
    do VipSendDone(end->vi, &done);
    while (done != NULL);
    do VipRecvDone(end->vi, &done);
    while (done != NULL);
    CALL(VipDestroyVi, end->vi);
}

static inline void end_close(End* end) {
    end_part(end);
    CALL(VipDeregisterMem, end->nic, end, end->descriptors);
    CALL(VipDeregisterMem, end->nic, end->setup.memory, end->memory);
    CALL(VipDestroyPtag, end->nic, end->ptag);
    CALL(VipCloseNic, end->nic);
    sem_destroy(&end->errors);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static inline const char* end_host(End* end) {
    static char text[INET_ADDRSTRLEN];
    return inet_ntop(AF_INET, end->nic_attributes.LocalNicAddress, text, sizeof text);
}

static inline NetAddress end_address(const void* host, const char* port) {
    NetAddress made = {.address = {.HostAddressLen = sizeof(struct in_addr), .DiscriminatorLen = sizeof(uint16_t)}};
    const uint16_t discriminator = htons((uint16_t)atoi(port));
    memcpy(made.address.HostAddress, host, sizeof(struct in_addr));
    memcpy(made.address.HostAddress + sizeof(struct in_addr), &discriminator, sizeof discriminator);
    return made;
}

static inline bool end_listen(End* end, const char* host, const char* port) {
    (void)host;
    end->local = end->remote = end_address(end->nic_attributes.LocalNicAddress, port);
    return true;
}

static inline unsigned end_timeout(const End* end) {
    return end->setup.timeout_ms != 0 ? end->setup.timeout_ms : VIP_INFINITE;
}

static inline bool end_take(End* end) {
    VIP_VI_ATTRIBUTES theirs;
    return CALL(VipConnectWait, end->nic, &end->local.address, VIP_INFINITE, &end->remote.address, &theirs,
                &end->request);
}

static inline bool end_call(End* end, const char* host, const char* port) {
    struct in_addr server;
    const bool known = inet_pton(AF_INET, host, &server) == 1;
    if (!known) fail(host, "not an address");
    end->local = end_address(end->nic_attributes.LocalNicAddress, port);
    end->remote = end_address(&server, port);
    return known;
}

static inline bool end_connect(End* end, const void* data, size_t size) {
    VIP_VI_ATTRIBUTES theirs;
    (void)data, (void)size;
    end->state = end_is_connected;
    return end->request != NULL
               ? CALL(VipConnectAccept, end->request, end->vi)
               : CALL(VipConnectRequest, end->vi, &end->local.address, &end->remote.address, end_timeout(end), &theirs);
}

#define END_MEETS
/* Instead of end_connect(), for two ends that call each other: does not wait. */
static inline bool end_meet(End* end) {
    end->state = end_meets;
    return CALL(VipConnectPeerRequest, end->vi, &end->local.address, &end->remote.address, end_timeout(end));
}

static inline const char* end_event(End* end) {
    VIP_VI_ATTRIBUTES theirs;
    const bool meets = end->state == end_meets, is_new = end->state != end_waits;
    end->state = end_waits;
    if (meets && !CALL(VipConnectPeerWait, end->vi, &theirs)) return NULL;
    if (is_new) return "established";
    while (sem_wait(&end->errors) != 0) continue;
    switch (end->last_error) {
        case VIP_ERROR_CONN_LOST: return "lost";
        case VIP_ERROR_CATASTROPHIC: return "catastrophe";
        default: return "another error";
    }
}

static inline void end_describe(End* end, Key* key) {
    *key = (Key){.address = (uintptr_t)end->setup.memory, .key = end->memory};
}
static inline void end_learn(End* end, const Key* key) { end->there = *key; }

/* The end that disconnects is not told of it. */
static inline const char* end_hang_up(End* end, bool first) {
    if (!first) return end_event(end);
    return CALL(VipDisconnect, end->vi) ? "closed" : NULL;
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

static inline VIP_DESCRIPTOR* end_descriptor(Ring* ring, VIP_UINT16 operation, VIP_UINT16 segments, size_t size) {
    VIP_DESCRIPTOR* descriptor = &ring->descriptors[ring->posted++ % end_ring];
    memset(&descriptor->CS, 0, sizeof descriptor->CS);
    descriptor->CS.Control = operation;
    descriptor->CS.SegCount = segments;
    descriptor->CS.Length = (VIP_UINT32)size;
    return descriptor;
}

static inline VIP_DATA_SEGMENT end_piece(const End* end, size_t at, size_t size) {
    return (VIP_DATA_SEGMENT){
        .Data = {.Address = (char*)end->setup.memory + at}, .Handle = end->memory, .Length = (VIP_UINT32)size};
}

static inline bool end_post_receive(End* end, size_t at, size_t size, uint64_t context) {
    VIP_DESCRIPTOR* descriptor = end_descriptor(&end->receives, VIP_CONTROL_OP_SENDRECV, 1, size);
    (void)context;
    descriptor->DS[0].Local = end_piece(end, at, size);
    return CALL(VipPostRecv, end->vi, descriptor, end->descriptors);
}

#define end_early_receive end_post_receive

static inline bool end_post_send(End* end, size_t at, size_t size, uint64_t context) {
    VIP_DESCRIPTOR* descriptor = end_descriptor(&end->sends, VIP_CONTROL_OP_SENDRECV, 1, size);
    (void)context;
    descriptor->DS[0].Local = end_piece(end, at, size);
    return CALL(VipPostSend, end->vi, descriptor, end->descriptors);
}

static inline bool end_post_rdma(End* end, VIP_UINT16 operation, size_t at, size_t there, size_t size) {
    VIP_DESCRIPTOR* descriptor = end_descriptor(&end->sends, operation, 2, size);
    descriptor->DS[0].Remote =
        (VIP_ADDRESS_SEGMENT){.Data = {.AddressBits = end->there.address + there}, .Handle = end->there.key};
    descriptor->DS[1].Local = end_piece(end, at, size);
    return CALL(VipPostSend, end->vi, descriptor, end->descriptors);
}

static inline bool end_post_write(End* end, size_t from, size_t to, size_t size, uint64_t context) {
    (void)context;
    return end_post_rdma(end, VIP_CONTROL_OP_RDMAWRITE, from, to, size);
}

static inline bool end_post_read(End* end, size_t to, size_t from, size_t size, uint64_t context) {
    (void)context;
    return end_post_rdma(end, VIP_CONTROL_OP_RDMAREAD, to, from, size);
}

/* ---- Completions ------------------------------------------------------------------------------------------------- */

static inline bool end_take_done(const char* call, VIP_RETURN result, const VIP_DESCRIPTOR* descriptor, Done* done) {
    *done = (Done){result == VIP_SUCCESS, 0, descriptor != NULL ? descriptor->CS.Length : 0};
    return result == VIP_DESCRIPTOR_ERROR || end_check(call, result);
}

static inline bool end_await_send(End* end, Done* done) {
    VIP_DESCRIPTOR* descriptor = NULL;
    const VIP_RETURN result = VipSendWait(end->vi, VIP_INFINITE, &descriptor);
    ++end->sends.done;
    return end_take_done("VipSendWait", result, descriptor, done);
}

static inline bool end_await_receive(End* end, Done* done) {
    VIP_DESCRIPTOR* descriptor = NULL;
    const VIP_RETURN result = VipRecvWait(end->vi, VIP_INFINITE, &descriptor);
    ++end->receives.done;
    return end_take_done("VipRecvWait", result, descriptor, done);
}

static inline bool end_poll(const char* call, VIP_RETURN result, Ring* ring) {
    if (result == VIP_NOT_DONE) return false;
    end_check(call, result);
    ++ring->done;
    return true;
}

/* To poll an empty queue is an error. */
static inline bool end_poll_send(End* end) {
    VIP_DESCRIPTOR* done = NULL;
    return end->sends.posted != end->sends.done && end_poll("VipSendDone", VipSendDone(end->vi, &done), &end->sends);
}

static inline bool end_poll_receive(End* end) {
    VIP_DESCRIPTOR* done = NULL;
    return end_poll("VipRecvDone", VipRecvDone(end->vi, &done), &end->receives);
}

#endif
