/* SPDX-License-Identifier: BSD-3-Clause
 * Hello, with librpma: the client sends a text; the server prints it and sends it back.
 */
#define _POSIX_C_SOURCE 200809L
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <librpma.h>

enum { ROOM = 4096, TIMEOUT_MS = 10000 };

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

static void accept_client(const char* address, const char* port) {
    struct rpma_ep* ep;
    struct rpma_conn_req* request;
    TRY(rpma_ep_listen(peer, address, port, &ep));
    TRY(rpma_ep_next_conn_req(ep, configuration, &request));
    TRY(rpma_conn_req_recv(request, region, offsetof(struct Memory, in), ROOM, NULL)); /* before the client can send */
    TRY(rpma_conn_req_connect(&request, NULL, &conn));
    TRY(rpma_ep_shutdown(&ep)); /* one client is enough */
    expect_connection(RPMA_CONN_ESTABLISHED, next_event());
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

/* When the client disconnects, there is an event. */
static void wait_disconnect(void) { expect_connection(RPMA_CONN_CLOSED, next_event()); }

static void disconnect(void) {
    TRY(rpma_conn_disconnect(conn));
    TRY(rpma_conn_delete(&conn));
    TRY(rpma_mr_dereg(&region));
    TRY(rpma_conn_cfg_delete(&configuration));
    TRY(rpma_peer_delete(&peer));
}

static void server(const char* address, const char* port) {
    open_device(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
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
    open_device(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
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
