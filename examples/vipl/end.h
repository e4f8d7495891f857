/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a connection, with VIPL.
 */
#pragma once
#include <arpa/inet.h>
#include <pthread.h>

#include <vipl.h>

#include "../common.h"

/* VIPL reads and writes descriptors in the memory of the program, which must be registered, too. */
struct End {
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR receive;
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR send;
    char in[ROOM], out[ROOM];
    VIP_MEM_HANDLE region;
    VIP_VI_HANDLE vi;
};

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES nic_attributes;
static VIP_PROTECTION_HANDLE ptag;
static struct Descriptor ours, theirs; /* the memory for RDMA: the server's own, and the peer's */

/* An address has room for a host and a discriminator behind the structure. */
typedef union {
    VIP_NET_ADDRESS address;
    char room[sizeof(VIP_NET_ADDRESS) + 256];
} ADDRESS;

/* The guide has no texts for return codes, only names. */
static inline void fail(const char* call, VIP_RETURN result) {
    /* clang-format off */
    static const char* const names[] = {
        "SUCCESS", "NOT_DONE", "INVALID_PARAMETER", "ERROR_RESOURCE", "TIMEOUT", "REJECT", "INVALID_RELIABILITY_LEVEL",
        "INVALID_MTU", "INVALID_QOS", "INVALID_PTAG", "INVALID_RDMAREAD", "DESCRIPTOR_ERROR", "INVALID_STATE",
        "ERROR_NAMESERVICE", "NO_MATCH", "NOT_REACHABLE", "ERROR_NOT_SUPPORTED"};
    /* clang-format on */
    fprintf(stderr, "%s: VIP_%s\n", call, result < sizeof names / sizeof *names ? names[result] : "?");
    exit(1);
}
#define TRY(call)                                       \
    do {                                                \
        const VIP_RETURN result = (call);               \
        if (result != VIP_SUCCESS) fail(#call, result); \
    } while (0)

/* Runs on a thread of the library. That the peer disconnects is no error here; see wait_disconnect(). */
static inline void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    (void)context;
    if (error->ErrorCode != VIP_ERROR_CONN_LOST) fprintf(stderr, "asynchronous error %d\n", error->ErrorCode);
}

static inline void open_device(const char* address, enum Side side) {
    (void)address; /* NICs are opened by name */
    (void)side;
    TRY(VipOpenNic("VINIC", &nic));
    TRY(VipErrorCallback(nic, NULL, on_error));
    TRY(VipQueryNic(nic, &nic_attributes));
    TRY(VipCreatePtag(nic, &ptag));
}

static inline void register_memory(struct End* end) {
    VIP_MEM_ATTRIBUTES rights = {.Ptag = ptag}; /* the peer may neither read nor write here */
    TRY(VipRegisterMem(nic, end, sizeof *end, &rights, &end->region));
}

/* Without a completion queue, programs wait for the work queues of the VI. */
static inline void create_endpoint(struct End* end, VIP_CQ_HANDLE received) {
    /* Two VIs must have the same level. DAT and librpma join both reliable ones. */
    VIP_VI_ATTRIBUTES attributes = {.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
                                    .MaxTransferSize = nic_attributes.MaxTransferSize,
                                    .Ptag = ptag,
                                    .EnableRdmaWrite = VIP_TRUE,
                                    .EnableRdmaRead = VIP_TRUE};
    TRY(VipCreateVi(nic, &attributes, NULL, received, &end->vi));
}

/* A program of VIPL must post the receive before the message is sent: a message without one breaks the connection. */
static inline void post_receive(struct End* end) {
    end->receive = (VIP_DESCRIPTOR){.CS.SegCount = 1,
                                    .CS.Control = VIP_CONTROL_OP_SENDRECV,
                                    .DS[0].Local = {{.Address = end->in}, end->region, ROOM}};
    TRY(VipPostRecv(end->vi, &end->receive, end->region));
}

/* A discriminator of two bytes, big-endian, is the port of librpma and the connection qualifier of DAT. */
static inline ADDRESS address_of(const void* host, const char* port) {
    ADDRESS result = {.address = {.HostAddressLen = nic_attributes.NicAddressLen, .DiscriminatorLen = 2}};
    const VIP_UINT16 discriminator = htons((VIP_UINT16)atoi(port));
    memcpy(result.address.HostAddress, host, nic_attributes.NicAddressLen);
    memcpy(result.address.HostAddress + nic_attributes.NicAddressLen, &discriminator, sizeof discriminator);
    return result;
}

static inline void connect_to(struct End* end, const char* address, const char* port) {
    struct in_addr host;
    if (inet_pton(AF_INET, address, &host) != 1) stop("not an IPv4 address");
    ADDRESS local = address_of(nic_attributes.LocalNicAddress, "0"), remote = address_of(&host, port);
    VIP_VI_ATTRIBUTES attributes;
    VIP_RETURN result = VIP_NO_MATCH;
    create_endpoint(end, NULL);
    /* A server listens only while it is in VipConnectWait. A client that comes at another time asks again. */
    for (int tries = 0; result == VIP_NO_MATCH && tries < TIMEOUT_MS / RETRY_MS; ++tries) {
        if (tries > 0) pause_before_retry();
        result = VipConnectRequest(end->vi, &local.address, &remote.address, TIMEOUT_MS, &attributes);
    }
    if (result != VIP_SUCCESS) fail("VipConnectRequest", result);
}

static inline void accept_request(struct End* end, const char* port) {
    ADDRESS local = address_of(nic_attributes.LocalNicAddress, port), remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE request;
    post_receive(end); /* before the client can send */
    TRY(VipConnectWait(nic, &local.address, VIP_INFINITE, &remote.address, &attributes, &request));
    TRY(VipConnectAccept(request, end->vi));
}

static inline void accept_client(struct End* end, const char* address, const char* port) {
    (void)address;
    create_endpoint(end, NULL);
    accept_request(end, port);
}

/* Waits without spinning for the descriptor that was posted last on the send queue. */
static inline void wait_completion(struct End* end, const char* call) {
    VIP_DESCRIPTOR* done;
    const VIP_RETURN result = VipSendWait(end->vi, VIP_INFINITE, &done);
    if (result == VIP_DESCRIPTOR_ERROR && done) fprintf(stderr, "%s: status %#x\n", call, done->CS.Status);
    if (result != VIP_SUCCESS) fail("VipSendWait", result);
}

static inline void send_message(struct End* end, size_t length) {
    end->send = (VIP_DESCRIPTOR){.CS.SegCount = 1,
                                 .CS.Control = VIP_CONTROL_OP_SENDRECV,
                                 .CS.Length = (VIP_UINT32)length,
                                 .DS[0].Local = {{.Address = end->out}, end->region, (VIP_UINT32)length}};
    TRY(VipPostSend(end->vi, &end->send, end->region));
    wait_completion(end, "send");
}

static inline size_t wait_receive(struct End* end) {
    VIP_DESCRIPTOR* done;
    TRY(VipRecvWait(end->vi, VIP_INFINITE, &done));
    return done->CS.Length;
}

static inline void register_shared(void* address, size_t length, uint8_t usage) {
    VIP_MEM_ATTRIBUTES rights = {.Ptag = ptag, .EnableRdmaWrite = VIP_TRUE, .EnableRdmaRead = VIP_TRUE};
    VIP_MEM_HANDLE handle;
    TRY(VipRegisterMem(nic, address, length, &rights, &handle));
    ours = (struct Descriptor){(uintptr_t)address, length, handle, usage};
}

/* Takes the descriptor from the message that has just arrived. */
static inline void learn_key(struct End* end, size_t length) { theirs = descriptor_in(end->in, length); }

/* RDMA between `out` and the peer's memory. The segment of the remote address comes first. */
static inline void rdma(struct End* end, VIP_UINT16 operation, size_t offset, size_t length, const char* call) {
    end->send = (VIP_DESCRIPTOR){.CS.SegCount = 2,
                                 .CS.Control = operation,
                                 .CS.Length = (VIP_UINT32)length,
                                 .DS[0].Remote = {{.AddressBits = theirs.address + offset}, theirs.key, 0},
                                 .DS[1].Local = {{.Address = end->out}, end->region, (VIP_UINT32)length}};
    TRY(VipPostSend(end->vi, &end->send, end->region));
    wait_completion(end, call);
}
static inline void rdma_read(struct End* end, size_t offset, size_t length) {
    rdma(end, VIP_CONTROL_OP_RDMAREAD, offset, length, "RDMA read");
}
static inline void rdma_write(struct End* end, size_t offset, size_t length) {
    rdma(end, VIP_CONTROL_OP_RDMAWRITE, offset, length, "RDMA write");
}

/* VIPL has no flush: when an RDMA write has completed, the data may still be on the way to the peer's memory, and
   certainly not on its disk. A message that follows the writes arrives after them, and the server calls msync. */
static inline void flush(struct End* end, size_t offset, size_t length) {
    const struct Commit part = {offset, length};
    memcpy(end->out, &part, sizeof part);
    post_receive(end);
    send_message(end, sizeof part);
    wait_receive(end);
}

/* When the client disconnects, the posted receive completes as flushed. */
static inline void wait_disconnect(struct End* end) {
    VIP_DESCRIPTOR* done;
    post_receive(end);
    const VIP_RETURN result = VipRecvWait(end->vi, VIP_INFINITE, &done);
    if (result != VIP_DESCRIPTOR_ERROR) fail("VipRecvWait", result);
}

static inline void disconnect(struct End* end) { TRY(VipDisconnect(end->vi)); /* flushes what is posted */ }

static inline void close_device(void) { TRY(VipCloseNic(nic)); /* frees everything that was created on it */ }

/* A server for several clients. */
struct Service {
    struct End* guests;
    int clients;
    void (*on_message)(struct End* guest, size_t length);
    VIP_CQ_HANDLE received; /* of all guests */
};

static inline void* serve_messages(void* argument) {
    const struct Service* service = argument;
    for (int left = service->clients; left > 0;) {
        VIP_VI_HANDLE from;
        VIP_BOOLEAN is_receive;
        VIP_DESCRIPTOR* done;
        struct End* guest = service->guests;
        TRY(VipCQWait(service->received, VIP_INFINITE, &from, &is_receive)); /* does not spin */
        while (guest->vi != from) ++guest;
        const VIP_RETURN result = VipRecvDone(from, &done);
        if (result == VIP_SUCCESS)
            service->on_message(guest, done->CS.Length);
        else if (result == VIP_DESCRIPTOR_ERROR) /* flushed: the client has disconnected */
            --left;
        else
            fail("VipRecvDone", result);
    }
    return NULL;
}

/* VIPL has no descriptors for poll(2): another thread waits for messages, this one for clients. */
static inline void serve_clients(struct End* guests, int clients, const char* address, const char* port,
                                 void (*on_message)(struct End* guest, size_t length)) {
    struct Service service = {guests, clients, on_message, NULL};
    pthread_t thread;
    (void)address;
    TRY(VipCreateCQ(nic, 4 * MAX_CLIENTS, &service.received));
    for (int i = 0; i < clients; ++i) {
        register_memory(&guests[i]);
        create_endpoint(&guests[i], service.received);
    }
    if (pthread_create(&thread, NULL, serve_messages, &service) != 0) stop("no thread");
    for (int i = 0; i < clients; ++i) accept_request(&guests[i], port);
    pthread_join(thread, NULL);
}
