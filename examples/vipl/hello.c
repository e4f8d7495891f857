/* SPDX-License-Identifier: BSD-3-Clause
 * Hello, with VIPL: the client sends a text; the server prints it and sends it back.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vipl.h>

enum { ROOM = 4096, TIMEOUT_MS = 10000 };

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
                                    .Ptag = ptag};
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

static void server(const char* address, const char* port) {
    open_device(address);
    register_memory();
    accept_client(address, port);
    const size_t length = wait_receive();
    printf("%.*s\n", (int)length, memory.in);
    memcpy(memory.out, memory.in, length);
    send_message(length);
    wait_disconnect();
    disconnect();
}

static void client(const char* address, const char* port, const char* text) {
    const size_t length = strnlen(text, ROOM);
    open_device(address);
    register_memory();
    connect_to(address, port);
    post_receive(); /* for the answer, before it can come */
    memcpy(memory.out, text, length);
    send_message(length);
    printf("%.*s\n", (int)wait_receive(), memory.in);
    disconnect();
}

int main(int argc, char** argv) {
    if (argc == 4 && strcmp(argv[1], "server") == 0)
        server(argv[2], argv[3]);
    else if (argc == 5 && strcmp(argv[1], "client") == 0)
        client(argv[2], argv[3], argv[4]);
    else
        return fprintf(stderr, "usage: hello server ADDRESS PORT | hello client ADDRESS PORT TEXT\n"), 2;
    return 0;
}
