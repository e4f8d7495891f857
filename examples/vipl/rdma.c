/* SPDX-License-Identifier: BSD-3-Clause
 * RDMA write and read, with VIPL: the client reads the server's memory and then writes to it.
 * The server sends the address and the key of its memory when the client asks.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vipl.h>

enum { ROOM = 4096, TIMEOUT_MS = 10000 };

/* Where a peer's memory is, as a message: the 21 bytes of a librpma descriptor, little-endian. VIPL has no private
   data, so that the keys travel in messages. */
struct __attribute__((packed)) Descriptor {
    uint64_t address, size;
    uint32_t key;
    uint8_t usage;
};
enum { USAGE = 1 | 8 }; /* of librpma: READ_SRC, WRITE_DST */
static struct Descriptor ours, theirs;

/* VIPL reads and writes descriptors in the memory of the program, which must be registered, too. */
static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) struct {
    VIP_DESCRIPTOR receive;
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR send;
    char in[ROOM], out[ROOM];
} memory;

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES nic_attributes;
static VIP_PROTECTION_HANDLE ptag;
static VIP_MEM_HANDLE region;
static VIP_VI_HANDLE vi;

/* An address has room for a host and a discriminator behind the structure. */
typedef union {
    VIP_NET_ADDRESS address;
    char room[sizeof(VIP_NET_ADDRESS) + 256];
} ADDRESS;

/* The guide has no texts for return codes, only names. */
static void fail(const char* call, VIP_RETURN result) {
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
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    (void)context;
    if (error->ErrorCode != VIP_ERROR_CONN_LOST) fprintf(stderr, "asynchronous error %d\n", error->ErrorCode);
}

static void open_device(const char* address) {
    (void)address; /* NICs are opened by name */
    TRY(VipOpenNic("VINIC", &nic));
    TRY(VipErrorCallback(nic, NULL, on_error));
    TRY(VipQueryNic(nic, &nic_attributes));
    TRY(VipCreatePtag(nic, &ptag));
}

static void register_memory(void) {
    VIP_MEM_ATTRIBUTES rights = {.Ptag = ptag}; /* the peer may neither read nor write here */
    TRY(VipRegisterMem(nic, &memory, sizeof memory, &rights, &region));
}

static void create_endpoint(void) {
    /* Both ends must ask for the same level. DAT and librpma have this one only. */
    VIP_VI_ATTRIBUTES attributes = {.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
                                    .MaxTransferSize = nic_attributes.MaxTransferSize,
                                    .Ptag = ptag,
                                    .EnableRdmaWrite = VIP_TRUE,
                                    .EnableRdmaRead = VIP_TRUE};
    TRY(VipCreateVi(nic, &attributes, NULL, NULL, &vi));
}

/* A program of VIPL must post the receive before the message is sent: a message without one breaks the connection. */
static void post_receive(void) {
    memory.receive = (VIP_DESCRIPTOR){
        .CS.SegCount = 1, .CS.Control = VIP_CONTROL_OP_SENDRECV, .DS[0].Local = {{.Address = memory.in}, region, ROOM}};
    TRY(VipPostRecv(vi, &memory.receive, region));
}

/* A discriminator of two bytes, big-endian, is the port of librpma and the connection qualifier of DAT. */
static ADDRESS address_of(const void* host, const char* port) {
    ADDRESS result = {.address = {.HostAddressLen = nic_attributes.NicAddressLen, .DiscriminatorLen = 2}};
    const VIP_UINT16 discriminator = htons((VIP_UINT16)atoi(port));
    memcpy(result.address.HostAddress, host, nic_attributes.NicAddressLen);
    memcpy(result.address.HostAddress + nic_attributes.NicAddressLen, &discriminator, sizeof discriminator);
    return result;
}

static void connect_to(const char* address, const char* port) {
    struct in_addr host;
    if (inet_pton(AF_INET, address, &host) != 1) fail("inet_pton", VIP_INVALID_PARAMETER);
    ADDRESS local = address_of(nic_attributes.LocalNicAddress, "0"), remote = address_of(&host, port);
    VIP_VI_ATTRIBUTES attributes;
    VIP_RETURN result = VIP_NO_MATCH;
    create_endpoint();
    /* A server listens only while it is in VipConnectWait. A client that comes at another time asks again. */
    for (int tries = 0; result == VIP_NO_MATCH && tries < TIMEOUT_MS / 10; ++tries) {
        if (tries > 0) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        result = VipConnectRequest(vi, &local.address, &remote.address, TIMEOUT_MS, &attributes);
    }
    if (result != VIP_SUCCESS) fail("VipConnectRequest", result);
}

static void accept_client(const char* address, const char* port) {
    ADDRESS local = address_of(nic_attributes.LocalNicAddress, port), remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE request;
    (void)address;
    create_endpoint();
    post_receive(); /* before the client can send */
    TRY(VipConnectWait(nic, &local.address, VIP_INFINITE, &remote.address, &attributes, &request));
    TRY(VipConnectAccept(request, vi));
}

/* Waits without spinning for the descriptor that was posted last on the send queue. */
static void wait_send(void) {
    VIP_DESCRIPTOR* done;
    const VIP_RETURN result = VipSendWait(vi, VIP_INFINITE, &done);
    if (result == VIP_DESCRIPTOR_ERROR && done) fprintf(stderr, "status %#x\n", done->CS.Status);
    if (result != VIP_SUCCESS) fail("VipSendWait", result);
}

static void send_message(size_t length) {
    memory.send = (VIP_DESCRIPTOR){.CS.SegCount = 1,
                                   .CS.Control = VIP_CONTROL_OP_SENDRECV,
                                   .CS.Length = (VIP_UINT32)length,
                                   .DS[0].Local = {{.Address = memory.out}, region, (VIP_UINT32)length}};
    TRY(VipPostSend(vi, &memory.send, region));
    wait_send();
}

static size_t wait_receive(void) {
    VIP_DESCRIPTOR* done;
    TRY(VipRecvWait(vi, VIP_INFINITE, &done));
    return done->CS.Length;
}

static void register_shared(void* address, size_t length) {
    VIP_MEM_ATTRIBUTES rights = {.Ptag = ptag, .EnableRdmaWrite = VIP_TRUE, .EnableRdmaRead = VIP_TRUE};
    VIP_MEM_HANDLE handle;
    TRY(VipRegisterMem(nic, address, length, &rights, &handle));
    ours = (struct Descriptor){(uintptr_t)address, length, handle, USAGE};
}

/* RDMA between `memory.out` and the peer's memory. The segment of the remote address comes first. */
static void rdma(VIP_UINT16 operation, size_t offset, size_t length) {
    memory.send = (VIP_DESCRIPTOR){.CS.SegCount = 2,
                                   .CS.Control = operation,
                                   .CS.Length = (VIP_UINT32)length,
                                   .DS[0].Remote = {{.AddressBits = theirs.address + offset}, theirs.key, 0},
                                   .DS[1].Local = {{.Address = memory.out}, region, (VIP_UINT32)length}};
    TRY(VipPostSend(vi, &memory.send, region));
    wait_send();
}
static void rdma_read(size_t offset, size_t length) { rdma(VIP_CONTROL_OP_RDMAREAD, offset, length); }
static void rdma_write(size_t offset, size_t length) { rdma(VIP_CONTROL_OP_RDMAWRITE, offset, length); }

/* Takes the descriptor from the message that has just arrived. */
static void learn_key(size_t length) {
    memcpy(&theirs, memory.in, sizeof theirs);
    if (length == sizeof theirs && theirs.size >= ROOM) return;
    fprintf(stderr, "not the descriptor of enough memory\n");
    exit(1);
}

/* When the client disconnects, the posted receive completes as flushed. */
static void wait_disconnect(void) {
    VIP_DESCRIPTOR* done;
    post_receive();
    const VIP_RETURN result = VipRecvWait(vi, VIP_INFINITE, &done);
    if (result != VIP_DESCRIPTOR_ERROR) fail("VipRecvWait", result);
}

static void disconnect(void) {
    TRY(VipDisconnect(vi)); /* flushes what is posted */
    TRY(VipCloseNic(nic));  /* frees everything that was created on it */
}

static char table[ROOM];

static void server(const char* address, const char* port) {
    open_device(address);
    register_memory();
    register_shared(table, sizeof table);
    strcpy(table, "read from the server");
    accept_client(address, port);
    wait_receive(); /* the client asks for the key */
    post_receive();
    memcpy(memory.out, &ours, sizeof ours);
    send_message(sizeof ours);
    wait_receive(); /* the client has written; what was written before a message is there when it arrives */
    printf("%.*s\n", ROOM, table);
    send_message(0);
    wait_disconnect();
    disconnect();
}

static void client(const char* address, const char* port, const char* text) {
    open_device(address);
    register_memory();
    connect_to(address, port);
    post_receive();
    send_message(0); /* asks for the key */
    learn_key(wait_receive());
    post_receive();
    rdma_read(0, ROOM);
    printf("%.*s\n", ROOM, memory.out);
    memset(memory.out, 0, ROOM);
    memcpy(memory.out, text, strnlen(text, ROOM));
    rdma_write(0, ROOM);
    send_message(0); /* tells the server, which RDMA does not */
    wait_receive();
    disconnect();
}

int main(int argc, char** argv) {
    if (argc == 4 && strcmp(argv[1], "server") == 0)
        server(argv[2], argv[3]);
    else if (argc == 5 && strcmp(argv[1], "client") == 0)
        client(argv[2], argv[3], argv[4]);
    else
        return fprintf(stderr, "usage: rdma server ADDRESS PORT | rdma client ADDRESS PORT TEXT\n"), 2;
    return 0;
}
