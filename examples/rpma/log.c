/* SPDX-License-Identifier: BSD-3-Clause
 * A log that is appended remotely, with librpma: the client writes a text to the end of the
 * server's file with RDMA, and makes it persistent before the new length. The server has one client at a time.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <librpma.h>

enum { ROOM = 4096, TIMEOUT_MS = 10000, LOG_SIZE = 1 << 20 };

enum { USAGE = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT };
static struct rpma_mr_local* shared;  /* the server's memory */
static struct rpma_mr_remote* remote; /* the same, at the client */
static char ours[21];                 /* its descriptor, as a message; VIPL has no private data */

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
    const int usage = RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC;
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

static void register_shared(void* address, size_t length) {
    TRY(rpma_mr_reg(peer, address, length, USAGE, &shared));
    TRY(rpma_mr_get_descriptor(shared, ours)); /* these 21 bytes are the wire format of all examples */
}

/* RDMA between `memory.out` and the peer's memory. */
static void rdma_read(size_t offset, size_t length) {
    TRY(rpma_read(conn, region, offsetof(struct Memory, out), remote, offset, length, RPMA_F_COMPLETION_ALWAYS, NULL));
    wait_completion(sends, "rpma_read");
}
static void rdma_write(size_t offset, size_t length) {
    TRY(rpma_write(conn, remote, offset, region, offsetof(struct Memory, out), length, RPMA_F_COMPLETION_ALWAYS, NULL));
    wait_completion(sends, "rpma_write");
}

/* Takes the descriptor from the message that has just arrived. */
static void learn_key(size_t length) {
    size_t size;
    TRY(rpma_mr_remote_from_descriptor(memory.in, length, &remote));
    TRY(rpma_mr_remote_get_size(remote, &size));
    if (size >= ROOM) return;
    fprintf(stderr, "not the descriptor of enough memory\n");
    exit(1);
}

/* When the flush has completed, the earlier writes to this part survive a loss of power of the server. Its program has
   no part in this. */
static void flush(size_t offset, size_t length) {
    TRY(rpma_flush(conn, remote, offset, length, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, NULL));
    wait_completion(sends, "rpma_flush");
}

/* librpma refuses persistent flushes until it knows that the server's platform allows them. Programs of librpma tell
   each other in private data (rpma_peer_cfg_get_descriptor); servers of Viaduct always do. */
static void allow_flush(void) {
    struct rpma_peer_cfg* server_configuration;
    TRY(rpma_peer_cfg_new(&server_configuration));
    TRY(rpma_peer_cfg_set_direct_write_to_pmem(server_configuration, true));
    TRY(rpma_conn_apply_remote_peer_cfg(conn, server_configuration));
    TRY(rpma_peer_cfg_delete(&server_configuration));
}

/* When the client disconnects, there is an event. */
static void wait_disconnect(void) { expect_connection(RPMA_CONN_CLOSED, next_event()); }

static void disconnect(void) {
    TRY(rpma_conn_disconnect(conn));
    TRY(rpma_conn_delete(&conn));
    if (shared) TRY(rpma_mr_dereg(&shared));
    if (remote) TRY(rpma_mr_remote_delete(&remote));
    TRY(rpma_mr_dereg(&region));
    TRY(rpma_conn_cfg_delete(&configuration));
    TRY(rpma_peer_delete(&peer));
}

/* The file: the number of bytes of text, and the text. */
struct Log {
    uint64_t tail;
    char text[LOG_SIZE - sizeof(uint64_t)];
};

/* A request to make a part of the log persistent, for APIs without a flush. */
struct Commit {
    uint64_t offset, length;
};

/* msync takes whole pages. */
static void make_persistent(void* start, struct Commit part) {
    const uint64_t begin = part.offset / 4096 * 4096, end = part.offset + part.length;
    if (part.offset > LOG_SIZE || part.length > LOG_SIZE - part.offset) {
        fprintf(stderr, "the client asked for more than the log\n");
        exit(1);
    }
    if (msync((char*)start + begin, end - begin, MS_SYNC) != 0) {
        perror("msync");
        exit(1);
    }
}

static void server(const char* address, const char* port, const char* path) {
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    struct Log* log = MAP_FAILED;
    if (file >= 0 && ftruncate(file, LOG_SIZE) == 0)
        log = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (log == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    open_device(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    register_memory();
    register_shared(log, LOG_SIZE);
    accept_client(address, port);
    wait_receive(); /* the client asks for the key */
    post_receive();
    memcpy(memory.out, ours, sizeof ours);
    send_message(sizeof ours);
    /* Until the client sends an empty message, each one is a request to make a part persistent. */
    while (wait_receive() == sizeof(struct Commit)) {
        struct Commit part;
        memcpy(&part, memory.in, sizeof part);
        make_persistent(log, part);
        post_receive();
        send_message(0);
    }
    printf("%.*s", (int)log->tail, log->text);
    send_message(0);
    wait_disconnect();
    disconnect();
}

static void client(const char* address, const char* port, const char* text) {
    uint64_t tail, length = strnlen(text, ROOM - 1);
    open_device(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    register_memory();
    connect_to(address, port);
    post_receive();
    send_message(0); /* asks for the key */
    learn_key(wait_receive());
    allow_flush();
    rdma_read(offsetof(struct Log, tail), sizeof tail);
    memcpy(&tail, memory.out, sizeof tail);
    if (tail + length + 1 > sizeof((struct Log*)0)->text) {
        fprintf(stderr, "the log is full\n");
        exit(1);
    }
    /* First the text and then its length: if the power fails between, the log ends before this text. */
    memcpy(memory.out, text, length);
    memory.out[length++] = '\n';
    rdma_write(offsetof(struct Log, text) + tail, length);
    flush(offsetof(struct Log, text) + tail, length);
    tail += length;
    memcpy(memory.out, &tail, sizeof tail);
    rdma_write(offsetof(struct Log, tail), sizeof tail);
    flush(offsetof(struct Log, tail), sizeof tail);
    printf("%llu bytes\n", (unsigned long long)tail);
    post_receive();
    send_message(0); /* the end */
    wait_receive();
    disconnect();
}

int main(int argc, char** argv) {
    if (argc == 5 && strcmp(argv[1], "server") == 0)
        server(argv[2], argv[3], argv[4]);
    else if (argc == 5 && strcmp(argv[1], "client") == 0)
        client(argv[2], argv[3], argv[4]);
    else
        return fprintf(stderr, "usage: log server ADDRESS PORT FILE | log client ADDRESS PORT TEXT\n"), 2;
    return 0;
}
