/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a connection, with DAT 2.0.
 */
#pragma once
#include <arpa/inet.h>

#include <dat2/udat.h>

#include "../common.h"

struct End {
    char in[ROOM], out[ROOM];
    DAT_LMR_CONTEXT region;
    DAT_EP_HANDLE ep;
};

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE sends, receives, connections, requests; /* the queues of completions and other events */
static struct Descriptor ours, theirs; /* the memory for RDMA: the server's own, and the peer's */

static inline void fail(const char* call, DAT_RETURN result) {
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

static inline void open_device(const char* address, enum Side side) {
    DAT_EVD_HANDLE errors = DAT_HANDLE_NULL; /* asynchronous errors; nobody waits for them here */
    (void)address;                           /* adapters are opened by name */
    (void)side;
    TRY(dat_ia_open("viaduct-lo", 8, &errors, &ia));
    TRY(dat_pz_create(ia, &pz));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &sends));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &receives));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connections));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
}

/* Returns the key for peers. */
static inline DAT_RMR_CONTEXT create_region(void* address, size_t length, DAT_MEM_PRIV_FLAGS rights,
                                            DAT_LMR_CONTEXT* region) {
    DAT_REGION_DESCRIPTION description = {.for_va = address};
    DAT_LMR_HANDLE lmr;
    DAT_RMR_CONTEXT key;
    DAT_VLEN registered;
    DAT_VADDR start;
    TRY(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, description, length, pz, rights, DAT_VA_TYPE_VA, &lmr, region, &key,
                       &registered, &start));
    return key;
}

static inline void register_memory(struct End* end) {
    /* The peer may neither read nor write here. */
    create_region(end, sizeof *end, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &end->region);
}

static inline void create_endpoint(struct End* end) {
    /* Without attributes, the defaults of the adapter. DAT endpoints are always reliable. */
    TRY(dat_ep_create(ia, pz, receives, sends, connections, NULL, &end->ep));
}

/* A message that comes before its receive waits, unless the sender is a program of VIPL. */
static inline void post_receive(struct End* end) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)end->in, ROOM, end->region};
    TRY(dat_ep_post_recv(end->ep, 1, &piece, (DAT_DTO_COOKIE){.as_ptr = end}, DAT_COMPLETION_DEFAULT_FLAG));
}

/* Waits without spinning; `call` is what the event belongs to. */
static inline DAT_EVENT wait_event(DAT_EVD_HANDLE evd, const char* call) {
    DAT_EVENT event;
    DAT_COUNT more;
    DAT_RETURN result = DAT_SUCCESS;
    do result = dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
    while (DAT_GET_TYPE(result) == DAT_INTERRUPTED_CALL);
    if (result != DAT_SUCCESS) fail(call, result);
    return event;
}

static inline void expect_connection(DAT_EVENT_NUMBER expected, DAT_EVENT_NUMBER number) {
    if (number == expected) return;
    fprintf(stderr, "connection event %#x instead of %#x\n", number, expected);
    exit(1);
}

static inline void connect_to(struct End* end, const char* address, const char* port) {
    struct sockaddr_in host = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, address, &host.sin_addr) != 1) stop("not an IPv4 address");
    DAT_EVENT_NUMBER outcome = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
    create_endpoint(end);
    /* A rejection that does not come from the peer usually means that nobody listens yet. The client asks again. */
    for (int tries = 0; outcome == DAT_CONNECTION_EVENT_NON_PEER_REJECTED && tries < TIMEOUT_MS / RETRY_MS; ++tries) {
        if (tries > 0) {
            pause_before_retry();
            TRY(dat_ep_reset(end->ep));
        }
        TRY(dat_ep_connect(end->ep, (DAT_IA_ADDRESS_PTR)&host, (DAT_CONN_QUAL)atoi(port), TIMEOUT_MS * 1000, 0, NULL,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
        outcome = wait_event(connections, "dat_ep_connect").event_number;
    }
    expect_connection(DAT_CONNECTION_EVENT_ESTABLISHED, outcome);
}

static inline void accept_request(struct End* end, const DAT_EVENT* event) {
    create_endpoint(end);
    post_receive(end); /* before the client can send */
    TRY(dat_cr_accept(event->event_data.cr_arrival_event_data.cr_handle, end->ep, 0, NULL));
}

static inline void accept_client(struct End* end, const char* address, const char* port) {
    DAT_PSP_HANDLE psp;
    (void)address;
    TRY(dat_psp_create(ia, (DAT_CONN_QUAL)atoi(port), requests, DAT_PSP_CONSUMER_FLAG, &psp));
    const DAT_EVENT event = wait_event(requests, "dat_psp_create");
    TRY(dat_psp_free(psp)); /* one client is enough */
    accept_request(end, &event);
    expect_connection(DAT_CONNECTION_EVENT_ESTABLISHED, wait_event(connections, "dat_cr_accept").event_number);
}

/* Waits for a completion and returns the number of bytes. */
static inline size_t wait_completion(DAT_EVD_HANDLE evd, const char* call) {
    const DAT_DTO_COMPLETION_EVENT_DATA done = wait_event(evd, call).event_data.dto_completion_event_data;
    if (done.status != DAT_DTO_SUCCESS) {
        fprintf(stderr, "%s: completion status %d\n", call, done.status);
        exit(1);
    }
    return done.transfered_length;
}

static inline void send_message(struct End* end, size_t length) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)end->out, length, end->region};
    TRY(dat_ep_post_send(end->ep, 1, &piece, (DAT_DTO_COOKIE){0}, DAT_COMPLETION_DEFAULT_FLAG));
    wait_completion(sends, "dat_ep_post_send");
}

static inline size_t wait_receive(struct End* end) {
    (void)end;
    return wait_completion(receives, "dat_ep_post_recv");
}

static inline void register_shared(void* address, size_t length, uint8_t usage) {
    DAT_LMR_CONTEXT region;
    const DAT_RMR_CONTEXT key = create_region(address, length, DAT_MEM_PRIV_ALL_FLAG, &region);
    ours = (struct Descriptor){(uintptr_t)address, length, key, usage};
}

/* Takes the descriptor from the message that has just arrived. */
static inline void learn_key(struct End* end, size_t length) { theirs = descriptor_in(end->in, length); }

/* RDMA between `out` and the peer's memory. */
static inline void rdma_read(struct End* end, size_t offset, size_t length) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)end->out, length, end->region};
    const DAT_RMR_TRIPLET remote = {theirs.address + offset, length, theirs.key};
    TRY(dat_ep_post_rdma_read(end->ep, 1, &piece, (DAT_DTO_COOKIE){0}, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    wait_completion(sends, "dat_ep_post_rdma_read");
}
static inline void rdma_write(struct End* end, size_t offset, size_t length) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)end->out, length, end->region};
    const DAT_RMR_TRIPLET remote = {theirs.address + offset, length, theirs.key};
    TRY(dat_ep_post_rdma_write(end->ep, 1, &piece, (DAT_DTO_COOKIE){0}, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    wait_completion(sends, "dat_ep_post_rdma_write");
}

/* DAT 2.0 has no flush: when an RDMA write has completed, the data may still be on the way to the peer's memory, and
   certainly not on its disk. A message that follows the writes arrives after them, and the server calls msync. */
static inline void flush(struct End* end, size_t offset, size_t length) {
    const struct Commit part = {offset, length};
    memcpy(end->out, &part, sizeof part);
    post_receive(end);
    send_message(end, sizeof part);
    wait_receive(end);
}

/* When the client disconnects, there is an event. */
static inline void wait_disconnect(struct End* end) {
    (void)end;
    expect_connection(DAT_CONNECTION_EVENT_DISCONNECTED, wait_event(connections, "dat_evd_wait").event_number);
}

static inline void disconnect(struct End* end) { TRY(dat_ep_disconnect(end->ep, DAT_CLOSE_ABRUPT_FLAG)); }

static inline void close_device(void) {
    TRY(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG)); /* frees everything that was created on it */
}

/* A server for several clients. One thread waits for everything, without spinning, because all events except the
   completions of sends come to one dispatcher. */
static inline void serve_clients(struct End* guests, int clients, const char* address, const char* port,
                                 void (*on_message)(struct End* guest, size_t length)) {
    const DAT_EVD_FLAGS kinds = DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG;
    DAT_EVD_HANDLE events;
    DAT_PSP_HANDLE psp;
    int present = 0;
    (void)address;
    TRY(dat_evd_create(ia, 8 * MAX_CLIENTS, DAT_HANDLE_NULL, kinds, &events));
    receives = connections = requests = events;
    for (int i = 0; i < clients; ++i) register_memory(&guests[i]);
    TRY(dat_psp_create(ia, (DAT_CONN_QUAL)atoi(port), requests, DAT_PSP_CONSUMER_FLAG, &psp));
    for (int left = clients; left > 0;) {
        const DAT_EVENT event = wait_event(events, "dat_evd_wait");
        const DAT_DTO_COMPLETION_EVENT_DATA* done = &event.event_data.dto_completion_event_data;
        if (event.event_number == DAT_CONNECTION_REQUEST_EVENT) {
            if (present < clients)
                accept_request(&guests[present++], &event);
            else
                TRY(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
        } else if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
            if (done->status == DAT_DTO_SUCCESS) on_message(done->user_cookie.as_ptr, done->transfered_length);
        } else if (event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED) {
            --left;
        } else {
            expect_connection(DAT_CONNECTION_EVENT_ESTABLISHED, event.event_number);
        }
    }
}
