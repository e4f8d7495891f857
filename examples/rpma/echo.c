/* SPDX-License-Identifier: BSD-3-Clause
 * Echo, with librpma: a server for several clients, which waits for all of them without spinning.
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <librpma.h>

enum { ROOM = 4096, TIMEOUT_MS = 10000, MESSAGES = 100, MAX_CLIENTS = 64 };

static struct Memory { char in[ROOM], out[ROOM]; } memory;

static struct rpma_peer* peer;
static struct rpma_mr_local* region;
static struct rpma_conn_cfg* configuration;
static struct rpma_conn* conn;
static struct rpma_cq *sends, *receives;

static void fail(const char* call, int result) {
    fprintf(stderr, "%s: %s\n", call, rpma_err_2str(result));
    exit(1);
}
#define TRY(call)                             \
    do {                                      \
        const int result = (call);            \
        if (result != 0) fail(#call, result); \
    } while (0)

static void open_device(const char* address, enum rpma_util_ibv_context_type side) {
    struct ibv_context* device; /* the one that has the address, or the one that reaches it */
    TRY(rpma_utils_get_ibv_context(address, side, &device));
    TRY(rpma_peer_new(device, &peer));
    TRY(rpma_conn_cfg_new(&configuration));
    TRY(rpma_conn_cfg_set_rcq_size(configuration, 8)); /* receives get a completion queue of their own */
    TRY(rpma_conn_cfg_set_timeout(configuration, TIMEOUT_MS));
}

static void register_memory(void) {
    const int usage = RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;
    TRY(rpma_mr_reg(peer, &memory, sizeof memory, usage, &region));
}

/* A message that comes before its receive waits, unless the sender is a program of VIPL. */
static void post_receive(void) { TRY(rpma_recv(conn, region, offsetof(struct Memory, in), ROOM, NULL)); }

static void expect_connection(enum rpma_conn_event expected, enum rpma_conn_event event) {
    if (event == expected) return;
    fprintf(stderr, "%s instead of %s\n", rpma_utils_conn_event_2str(event), rpma_utils_conn_event_2str(expected));
    exit(1);
}

static enum rpma_conn_event next_event(void) {
    enum rpma_conn_event event;
    TRY(rpma_conn_next_event(conn, &event)); /* waits without spinning */
    return event;
}

static void get_queues(void) {
    TRY(rpma_conn_get_cq(conn, &sends));
    TRY(rpma_conn_get_rcq(conn, &receives));
}

static void connect_to(const char* address, const char* port) {
    enum rpma_conn_event outcome = RPMA_CONN_REJECTED;
    /* A rejection may mean that nobody listens yet. The client asks again, with a new request. */
    for (int tries = 0; outcome == RPMA_CONN_REJECTED && tries < TIMEOUT_MS / 10; ++tries) {
        struct rpma_conn_req* request;
        if (tries > 0) {
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            TRY(rpma_conn_delete(&conn));
        }
        TRY(rpma_conn_req_new(peer, address, port, configuration, &request));
        TRY(rpma_conn_req_connect(&request, NULL, &conn));
        outcome = next_event();
    }
    expect_connection(RPMA_CONN_ESTABLISHED, outcome);
    get_queues();
}

/* Waits without spinning for a completion and returns the number of bytes. */
static size_t wait_completion(struct rpma_cq* queue, const char* call) {
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

static void send_message(size_t length) {
    TRY(rpma_send(conn, region, offsetof(struct Memory, out), length, RPMA_F_COMPLETION_ALWAYS, NULL));
    wait_completion(sends, "rpma_send");
}

static size_t wait_receive(void) { return wait_completion(receives, "rpma_recv"); }

static void disconnect(void) {
    TRY(rpma_conn_disconnect(conn));
    TRY(rpma_conn_delete(&conn));
    TRY(rpma_mr_dereg(&region));
    TRY(rpma_conn_cfg_delete(&configuration));
    TRY(rpma_peer_delete(&peer));
}

/* One client of the server. */
static struct Guest {
    char in[ROOM], out[ROOM];
    struct rpma_conn* conn;
    struct rpma_cq *sends, *receives;
} guests[MAX_CLIENTS];

static struct rpma_mr_local* guests_region;

static size_t offset_of(const void* place) { return (size_t)((const char*)place - (const char*)guests); }

static void accept_guest(struct rpma_ep* ep, struct Guest* guest) {
    struct rpma_conn_req* request;
    TRY(rpma_ep_next_conn_req(ep, configuration, &request));
    TRY(rpma_conn_req_recv(request, guests_region, offset_of(guest->in), ROOM, NULL)); /* before the client can send */
    TRY(rpma_conn_req_connect(&request, NULL, &guest->conn));
    TRY(rpma_conn_get_cq(guest->conn, &guest->sends));
    TRY(rpma_conn_get_rcq(guest->conn, &guest->receives));
}

/* The receive is posted again before the echo is sent, because the next message may follow at once. */
static void echo(struct Guest* guest) {
    struct ibv_wc done;
    int result;
    TRY(rpma_cq_wait(guest->receives)); /* readable, so that it does not wait; it prepares the next wake-up */
    while ((result = rpma_cq_get_wc(guest->receives, 1, &done, NULL)) == 0) {
        if (done.status != IBV_WC_SUCCESS) continue; /* flushed: the client has disconnected */
        memcpy(guest->out, guest->in, done.byte_len);
        TRY(rpma_recv(guest->conn, guests_region, offset_of(guest->in), ROOM, NULL));
        TRY(rpma_send(guest->conn, guests_region, offset_of(guest->out), done.byte_len, RPMA_F_COMPLETION_ALWAYS,
                      NULL));
        wait_completion(guest->sends, "rpma_send");
    }
    if (result != RPMA_E_NO_COMPLETION) fail("rpma_cq_get_wc", result);
}

/* Returns whether the client has disconnected. */
static bool take_event(struct Guest* guest) {
    enum rpma_conn_event event;
    TRY(rpma_conn_next_event(guest->conn, &event));
    if (event != RPMA_CONN_CLOSED) expect_connection(RPMA_CONN_ESTABLISHED, event);
    if (event == RPMA_CONN_CLOSED) TRY(rpma_conn_disconnect(guest->conn));
    return event == RPMA_CONN_CLOSED;
}

/* One thread waits for everything, without spinning, with poll(2). */
static void serve(struct rpma_ep* ep, int clients) {
    struct pollfd waiting[1 + 2 * MAX_CLIENTS] = {{.events = POLLIN}};
    TRY(rpma_ep_get_fd(ep, &waiting[0].fd));
    for (int left = clients, present = 0; left > 0;) {
        if (poll(waiting, 1 + 2 * (nfds_t)present, -1) < 0) continue; /* a signal */
        for (int i = 0; i < present; ++i) {
            struct pollfd* guest = &waiting[1 + 2 * i];
            if (guest[0].revents) echo(&guests[i]);
            if (guest[1].revents && take_event(&guests[i])) {
                guest[0].fd = guest[1].fd = -1;
                --left;
            }
        }
        if (!waiting[0].revents) continue;
        accept_guest(ep, &guests[present]);
        struct pollfd* guest = &waiting[1 + 2 * present];
        guest[0] = guest[1] = (struct pollfd){.events = POLLIN};
        TRY(rpma_cq_get_fd(guests[present].receives, &guest[0].fd));
        TRY(rpma_conn_get_event_fd(guests[present].conn, &guest[1].fd));
        if (++present == clients) waiting[0].fd = -1;
    }
}

static void server(const char* address, const char* port, int clients) {
    struct rpma_ep* ep;
    open_device(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    TRY(rpma_mr_reg(peer, guests, sizeof guests, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &guests_region));
    TRY(rpma_ep_listen(peer, address, port, &ep));
    serve(ep, clients);
    printf("%d clients\n", clients);
    TRY(rpma_ep_shutdown(&ep));
    for (int i = 0; i < clients; ++i) TRY(rpma_conn_delete(&guests[i].conn));
    TRY(rpma_mr_dereg(&guests_region));
    TRY(rpma_conn_cfg_delete(&configuration));
    TRY(rpma_peer_delete(&peer));
}

static void client(const char* address, const char* port, const char* text) {
    const size_t length = strnlen(text, ROOM);
    open_device(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    register_memory();
    connect_to(address, port);
    memcpy(memory.out, text, length);
    for (int message = 0; message < MESSAGES; ++message) {
        post_receive(); /* for the echo, before it can come */
        send_message(length);
        if (wait_receive() != length || memcmp(memory.in, memory.out, length) != 0) {
            fprintf(stderr, "the echo differs from the message\n");
            exit(1);
        }
    }
    printf("%d echoes\n", MESSAGES);
    disconnect();
}

int main(int argc, char** argv) {
    if (argc == 5 && strcmp(argv[1], "server") == 0 && atoi(argv[4]) > 0 && atoi(argv[4]) <= MAX_CLIENTS)
        server(argv[2], argv[3], atoi(argv[4]));
    else if (argc == 5 && strcmp(argv[1], "client") == 0)
        client(argv[2], argv[3], argv[4]);
    else
        return fprintf(stderr, "usage: echo server ADDRESS PORT CLIENTS | echo client ADDRESS PORT TEXT\n"), 2;
    return 0;
}
