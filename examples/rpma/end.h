/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a connection, with librpma.
 */
#pragma once
#include <poll.h>
#include <stddef.h>

#include <librpma.h>

#include "../common.h"

struct End {
    char in[ROOM], out[ROOM];
    struct rpma_mr_local* region;
    struct rpma_conn* conn;
    struct rpma_cq *sends, *receives;
};

static struct rpma_peer* peer;
static struct rpma_conn_cfg* configuration;
static struct rpma_mr_local* shared;  /* the memory for RDMA of the server */
static struct rpma_mr_remote* theirs; /* the same, at the client */
static char ours[sizeof(struct Descriptor)];

static inline void fail(const char* call, int result) {
    fprintf(stderr, "%s: %s\n", call, rpma_err_2str(result));
    exit(1);
}
#define TRY(call)                             \
    do {                                      \
        const int result = (call);            \
        if (result != 0) fail(#call, result); \
    } while (0)

static inline void open_device(const char* address, enum Side side) {
    struct ibv_context* device; /* the one that has the address, or the one that reaches it */
    TRY(rpma_utils_get_ibv_context(address, side == SERVER ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE,
                                   &device));
    TRY(rpma_peer_new(device, &peer));
    TRY(rpma_conn_cfg_new(&configuration));
    TRY(rpma_conn_cfg_set_rcq_size(configuration, 8)); /* receives get a completion queue of their own */
    TRY(rpma_conn_cfg_set_timeout(configuration, TIMEOUT_MS));
}

static inline void register_memory(struct End* end) {
    /* The peer may neither read nor write here. */
    const int usage = RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC;
    TRY(rpma_mr_reg(peer, end, sizeof *end, usage, &end->region));
}

/* The connection comes with its queues. */
static inline void create_endpoint(struct End* end, struct rpma_conn_req* request) {
    TRY(rpma_conn_req_connect(&request, NULL, &end->conn));
    TRY(rpma_conn_get_cq(end->conn, &end->sends));
    TRY(rpma_conn_get_rcq(end->conn, &end->receives));
}

/* A message that comes before its receive waits, unless the sender is a program of VIPL. */
static inline void post_receive(struct End* end) {
    TRY(rpma_recv(end->conn, end->region, offsetof(struct End, in), ROOM, NULL));
}

static inline enum rpma_conn_event next_event(struct End* end) {
    enum rpma_conn_event event;
    TRY(rpma_conn_next_event(end->conn, &event)); /* waits without spinning */
    return event;
}

static inline void expect_connection(enum rpma_conn_event expected, enum rpma_conn_event event) {
    if (event == expected) return;
    fprintf(stderr, "%s instead of %s\n", rpma_utils_conn_event_2str(event), rpma_utils_conn_event_2str(expected));
    exit(1);
}

static inline void connect_to(struct End* end, const char* address, const char* port) {
    enum rpma_conn_event outcome = RPMA_CONN_REJECTED;
    /* A rejection may mean that nobody listens yet. The client asks again, with a new request. */
    for (int tries = 0; outcome == RPMA_CONN_REJECTED && tries < TIMEOUT_MS / RETRY_MS; ++tries) {
        struct rpma_conn_req* request;
        if (tries > 0) {
            pause_before_retry();
            TRY(rpma_conn_delete(&end->conn));
        }
        TRY(rpma_conn_req_new(peer, address, port, configuration, &request));
        create_endpoint(end, request);
        outcome = next_event(end);
    }
    expect_connection(RPMA_CONN_ESTABLISHED, outcome);
}

static inline void accept_request(struct End* end, struct rpma_ep* ep) {
    struct rpma_conn_req* request;
    TRY(rpma_ep_next_conn_req(ep, configuration, &request));
    /* before the client can send */
    TRY(rpma_conn_req_recv(request, end->region, offsetof(struct End, in), ROOM, NULL));
    create_endpoint(end, request);
}

static inline void accept_client(struct End* end, const char* address, const char* port) {
    struct rpma_ep* ep;
    TRY(rpma_ep_listen(peer, address, port, &ep));
    accept_request(end, ep);
    TRY(rpma_ep_shutdown(&ep)); /* one client is enough */
    expect_connection(RPMA_CONN_ESTABLISHED, next_event(end));
}

/* Waits without spinning for a completion and returns the number of bytes. */
static inline size_t wait_completion(struct rpma_cq* queue, const char* call) {
    struct ibv_wc done;
    int result = 0;
    while ((result = rpma_cq_get_wc(queue, 1, &done, NULL)) == RPMA_E_NO_COMPLETION) TRY(rpma_cq_wait(queue));
    if (result != 0) fail("rpma_cq_get_wc", result);
    if (done.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "%s: %s\n", call, ibv_wc_status_str(done.status));
        exit(1);
    }
    return done.byte_len;
}

static inline void send_message(struct End* end, size_t length) {
    TRY(rpma_send(end->conn, end->region, offsetof(struct End, out), length, RPMA_F_COMPLETION_ALWAYS, NULL));
    wait_completion(end->sends, "rpma_send");
}

static inline size_t wait_receive(struct End* end) { return wait_completion(end->receives, "rpma_recv"); }

static inline void register_shared(void* address, size_t length, uint8_t usage) {
    TRY(rpma_mr_reg(peer, address, length, usage, &shared));
    TRY(rpma_mr_get_descriptor(shared, ours)); /* these 21 bytes are the wire format of all examples */
}

/* Takes the descriptor from the message that has just arrived. */
static inline void learn_key(struct End* end, size_t length) {
    struct rpma_peer_cfg* server_configuration;
    size_t size;
    TRY(rpma_mr_remote_from_descriptor(end->in, length, &theirs));
    TRY(rpma_mr_remote_get_size(theirs, &size));
    if (size < ROOM) stop("not the descriptor of enough memory");
    /* librpma refuses persistent flushes until it knows that the server's platform allows them. librpma
       programs usually exchange this in private data (rpma_peer_cfg_get_descriptor). With Viaduct every server allows
       them. */
    TRY(rpma_peer_cfg_new(&server_configuration));
    TRY(rpma_peer_cfg_set_direct_write_to_pmem(server_configuration, true));
    TRY(rpma_conn_apply_remote_peer_cfg(end->conn, server_configuration));
    TRY(rpma_peer_cfg_delete(&server_configuration));
}

/* RDMA between `out` and the peer's memory. */
static inline void rdma_read(struct End* end, size_t offset, size_t length) {
    TRY(rpma_read(end->conn, end->region, offsetof(struct End, out), theirs, offset, length, RPMA_F_COMPLETION_ALWAYS,
                  NULL));
    wait_completion(end->sends, "rpma_read");
}
static inline void rdma_write(struct End* end, size_t offset, size_t length) {
    TRY(rpma_write(end->conn, theirs, offset, end->region, offsetof(struct End, out), length, RPMA_F_COMPLETION_ALWAYS,
                   NULL));
    wait_completion(end->sends, "rpma_write");
}

/* When the flush has completed, the earlier writes to this part survive a loss of power of the server. Its program has
   no part in this. */
static inline void flush(struct End* end, size_t offset, size_t length) {
    TRY(rpma_flush(end->conn, theirs, offset, length, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, NULL));
    wait_completion(end->sends, "rpma_flush");
}

/* When the client disconnects, there is an event. */
static inline void wait_disconnect(struct End* end) { expect_connection(RPMA_CONN_CLOSED, next_event(end)); }

static inline void disconnect(struct End* end) {
    TRY(rpma_conn_disconnect(end->conn));
    TRY(rpma_conn_delete(&end->conn));
    TRY(rpma_mr_dereg(&end->region));
}

static inline void close_device(void) {
    if (shared) TRY(rpma_mr_dereg(&shared));
    if (theirs) TRY(rpma_mr_remote_delete(&theirs));
    TRY(rpma_conn_cfg_delete(&configuration));
    TRY(rpma_peer_delete(&peer));
}

/* Returns whether the client has disconnected. */
static inline bool serve_event(struct End* guest) {
    const enum rpma_conn_event event = next_event(guest);
    if (event != RPMA_CONN_CLOSED) expect_connection(RPMA_CONN_ESTABLISHED, event);
    return event == RPMA_CONN_CLOSED;
}

static inline void serve_messages(struct End* guest, void (*on_message)(struct End* guest, size_t length)) {
    struct ibv_wc done;
    int result;
    TRY(rpma_cq_wait(guest->receives)); /* readable, so that it does not wait; it prepares the next wake-up */
    while ((result = rpma_cq_get_wc(guest->receives, 1, &done, NULL)) == 0)
        if (done.status == IBV_WC_SUCCESS) on_message(guest, done.byte_len); /* else the client has disconnected */
    if (result != RPMA_E_NO_COMPLETION) fail("rpma_cq_get_wc", result);
}

/* A server for several clients. One thread waits for everything, without spinning, with poll(2). */
static inline void serve_clients(struct End* guests, int clients, const char* address, const char* port,
                                 void (*on_message)(struct End* guest, size_t length)) {
    struct pollfd waiting[1 + 2 * MAX_CLIENTS] = {{.events = POLLIN}};
    struct rpma_ep* ep;
    for (int i = 0; i < clients; ++i) register_memory(&guests[i]);
    TRY(rpma_ep_listen(peer, address, port, &ep));
    TRY(rpma_ep_get_fd(ep, &waiting[0].fd));
    for (int left = clients, present = 0; left > 0;) {
        if (poll(waiting, 1 + 2 * (nfds_t)present, -1) < 0) continue; /* a signal */
        for (int i = 0; i < present; ++i) {
            struct pollfd* guest = &waiting[1 + 2 * i];
            if (guest[0].revents) serve_messages(&guests[i], on_message);
            if (guest[1].revents && serve_event(&guests[i])) {
                guest[0].fd = guest[1].fd = -1;
                disconnect(&guests[i]);
                --left;
            }
        }
        if (!waiting[0].revents) continue;
        accept_request(&guests[present], ep);
        struct pollfd* guest = &waiting[1 + 2 * present];
        guest[0] = guest[1] = (struct pollfd){.events = POLLIN};
        TRY(rpma_cq_get_fd(guests[present].receives, &guest[0].fd));
        TRY(rpma_conn_get_event_fd(guests[present].conn, &guest[1].fd));
        if (++present == clients) waiting[0].fd = -1;
    }
    TRY(rpma_ep_shutdown(&ep));
}
