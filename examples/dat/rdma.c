/* SPDX-License-Identifier: BSD-3-Clause
 * RDMA write and read, with DAT 2.0: the client reads the server's memory and then writes to it.
 * The server sends the address and the key of its memory when the client asks.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dat2/udat.h>

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

static struct { char in[ROOM], out[ROOM]; } memory;

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_LMR_CONTEXT region;
static DAT_EP_HANDLE ep;
static DAT_EVD_HANDLE sends, receives, connections, requests; /* the queues of completions and other events */

static void fail(const char* call, DAT_RETURN result) {
    const char *type = "unknown error", *subtype = "";
    dat_strerror(result, &type, &subtype);
    fprintf(stderr, "%s: %s %s\n", call, type, subtype);
    exit(1);
}
#define TRY(call)                                       \
    do {                                                \
        const DAT_RETURN result = (call);               \
        if (result != DAT_SUCCESS) fail(#call, result); \
    } while (0)

static void open_device(const char* address) {
    DAT_EVD_HANDLE errors = DAT_HANDLE_NULL; /* asynchronous errors; nobody waits for them here */
    (void)address;                           /* adapters are opened by name */
    TRY(dat_ia_open("viaduct-lo", 8, &errors, &ia));
    TRY(dat_pz_create(ia, &pz));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &sends));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &receives));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connections));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
}

static void register_memory(void) {
    const DAT_MEM_PRIV_FLAGS rights = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
    DAT_REGION_DESCRIPTION description = {.for_va = &memory};
    DAT_LMR_HANDLE lmr;
    DAT_RMR_CONTEXT key;
    DAT_VLEN length;
    DAT_VADDR start;
    TRY(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, description, sizeof memory, pz, rights, DAT_VA_TYPE_VA, &lmr, &region,
                       &key, &length, &start));
}

static void create_endpoint(void) {
    /* Without attributes, the defaults of the adapter. DAT endpoints are always reliable. */
    TRY(dat_ep_create(ia, pz, receives, sends, connections, NULL, &ep));
}

/* A message that comes before its receive waits, unless the sender is a program of VIPL. */
static void post_receive(void) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)memory.in, ROOM, region};
    TRY(dat_ep_post_recv(ep, 1, &piece, (DAT_DTO_COOKIE){0}, DAT_COMPLETION_DEFAULT_FLAG));
}

/* Waits without spinning; `call` is what the event belongs to. */
static DAT_EVENT wait_event(DAT_EVD_HANDLE evd, const char* call) {
    DAT_EVENT event;
    DAT_COUNT more;
    DAT_RETURN result = DAT_SUCCESS;
    do result = dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
    while (DAT_GET_TYPE(result) == DAT_INTERRUPTED_CALL);
    if (result != DAT_SUCCESS) fail(call, result);
    return event;
}

static void expect_connection(DAT_EVENT_NUMBER expected, DAT_EVENT_NUMBER number) {
    if (number == expected) return;
    fprintf(stderr, "connection event %#x instead of %#x\n", number, expected);
    exit(1);
}

static void connect_to(const char* address, const char* port) {
    struct sockaddr_in host = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, address, &host.sin_addr) != 1) fail("inet_pton", DAT_INVALID_ADDRESS);
    DAT_EVENT_NUMBER outcome = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
    create_endpoint();
    /* A rejection that does not come from the peer usually means that nobody listens yet. The client asks again. */
    for (int tries = 0; outcome == DAT_CONNECTION_EVENT_NON_PEER_REJECTED && tries < TIMEOUT_MS / 10; ++tries) {
        if (tries > 0) {
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            TRY(dat_ep_reset(ep));
        }
        TRY(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&host, (DAT_CONN_QUAL)atoi(port), TIMEOUT_MS * 1000, 0, NULL,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
        outcome = wait_event(connections, "dat_ep_connect").event_number;
    }
    expect_connection(DAT_CONNECTION_EVENT_ESTABLISHED, outcome);
}

static void accept_client(const char* address, const char* port) {
    DAT_PSP_HANDLE psp;
    (void)address;
    create_endpoint();
    post_receive(); /* before the client can send */
    TRY(dat_psp_create(ia, (DAT_CONN_QUAL)atoi(port), requests, DAT_PSP_CONSUMER_FLAG, &psp));
    DAT_EVENT event = wait_event(requests, "dat_psp_create");
    TRY(dat_psp_free(psp)); /* one client is enough */
    TRY(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
    expect_connection(DAT_CONNECTION_EVENT_ESTABLISHED, wait_event(connections, "dat_cr_accept").event_number);
}

/* Waits for a completion and returns the number of bytes. */
static size_t wait_completion(DAT_EVD_HANDLE evd, const char* call) {
    const DAT_DTO_COMPLETION_EVENT_DATA done = wait_event(evd, call).event_data.dto_completion_event_data;
    if (done.status != DAT_DTO_SUCCESS) {
        fprintf(stderr, "%s: completion status %d\n", call, done.status);
        exit(1);
    }
    return done.transfered_length;
}

static void send_message(size_t length) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)memory.out, length, region};
    TRY(dat_ep_post_send(ep, 1, &piece, (DAT_DTO_COOKIE){0}, DAT_COMPLETION_DEFAULT_FLAG));
    wait_completion(sends, "dat_ep_post_send");
}

static size_t wait_receive(void) { return wait_completion(receives, "dat_ep_post_recv"); }

static void register_shared(void* address, size_t length) {
    DAT_REGION_DESCRIPTION description = {.for_va = address};
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT context;
    DAT_RMR_CONTEXT key;
    DAT_VLEN registered;
    DAT_VADDR start;
    TRY(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, description, length, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr,
                       &context, &key, &registered, &start));
    ours = (struct Descriptor){(uintptr_t)address, length, key, USAGE};
}

/* RDMA between `memory.out` and the peer's memory. */
static void rdma_read(size_t offset, size_t length) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)memory.out, length, region};
    const DAT_RMR_TRIPLET remote = {theirs.address + offset, length, theirs.key};
    TRY(dat_ep_post_rdma_read(ep, 1, &piece, (DAT_DTO_COOKIE){0}, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    wait_completion(sends, "dat_ep_post_rdma_read");
}
static void rdma_write(size_t offset, size_t length) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)memory.out, length, region};
    const DAT_RMR_TRIPLET remote = {theirs.address + offset, length, theirs.key};
    TRY(dat_ep_post_rdma_write(ep, 1, &piece, (DAT_DTO_COOKIE){0}, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    wait_completion(sends, "dat_ep_post_rdma_write");
}

/* Takes the descriptor from the message that has just arrived. */
static void learn_key(size_t length) {
    memcpy(&theirs, memory.in, sizeof theirs);
    if (length == sizeof theirs && theirs.size >= ROOM) return;
    fprintf(stderr, "not the descriptor of enough memory\n");
    exit(1);
}

/* When the client disconnects, there is an event. */
static void wait_disconnect(void) {
    expect_connection(DAT_CONNECTION_EVENT_DISCONNECTED, wait_event(connections, "dat_evd_wait").event_number);
}

static void disconnect(void) {
    TRY(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
    TRY(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG)); /* frees everything that was created on it */
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
