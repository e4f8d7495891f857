/* SPDX-License-Identifier: BSD-3-Clause
 * Sides for the conformance programs: making and connecting them.
 */
#include "side.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

const char *test_address(void) {
    const char *address = getenv("CONFORMANCE_ADDRESS");
    return address != NULL ? address : "127.0.0.1";
}

bool on_loopback(void) { return strncmp(test_address(), "127.", 4) == 0; }

struct ibv_context *test_device(void) {
    struct ibv_context *device = NULL;
    CHECK_OK(rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &device));
    CHECK(device != NULL);
    return device;
}

struct rpma_peer *new_peer(void) {
    struct rpma_peer *peer = NULL;
    CHECK_OK(rpma_peer_new(test_device(), &peer));
    CHECK(peer != NULL);
    return peer;
}

void set_nonblocking(int fd, bool on) {
    int flags = fcntl(fd, F_GETFL);
    CHECK(flags >= 0);
    CHECK(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) == 0);
}

static void on_signal(int number) { (void)number; }

timer_t start_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    struct sigevent notice = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec often = {{0, 20000000}, {0, 20000000}};
    timer_t timer;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(timer_create(CLOCK_MONOTONIC, &notice, &timer) == 0 && timer_settime(timer, 0, &often, NULL) == 0);
    return timer;
}

void stop_signals(timer_t timer) { CHECK(timer_delete(timer) == 0); }

bool readable(int fd, int timeout_ms) {
    struct pollfd polled = {fd, POLLIN, 0};
    int count = poll(&polled, 1, timeout_ms);
    CHECK(count >= 0);
    return count == 1 && (polled.revents & POLLIN) != 0;
}

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

Side *new_side(Peer *process) {
    uint16_t port;
    Side *side = blank_side(process, &port);
    snprintf(side->port, sizeof side->port, "%u", (unsigned)port);
    return side;
}

typedef struct {
    Side *other;
    Options options;
    char port[8];
} Opening;

static void open_memory(Side *side, const Options *options) {
    int fd = -1;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (options->file[0] != '\0') {
        fd = open(options->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && ftruncate(fd, (off_t)MEMORY_BYTES) == 0);
        flags = MAP_SHARED;
    }
    void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
    CHECK(memory != MAP_FAILED);
    if (fd >= 0) close(fd);
    int usage = options->usage != 0 ? options->usage : ALL_USAGES;
    side->memory = memory;
    CHECK_OK(rpma_mr_reg(side->peer, memory, MEMORY_BYTES, usage, &side->mr));
    CHECK_OK(rpma_mr_get_descriptor(side->mr, side->descriptor));
}

static void open_srq(Side *side, const Options *options) {
    struct rpma_srq_cfg *cfg = NULL;
    CHECK_OK(rpma_srq_cfg_new(&cfg));
    if (options->srq_without_rcq) CHECK_OK(rpma_srq_cfg_set_rcq_size(cfg, 0));
    CHECK_OK(rpma_srq_new(side->peer, cfg, &side->srq));
    CHECK_OK(rpma_srq_cfg_delete(&cfg));
}

static void open_cfg(Side *side, const Options *options) {
    CHECK_OK(rpma_conn_cfg_new(&side->cfg));
    if (options->cq_size != 0) CHECK_OK(rpma_conn_cfg_set_cq_size(side->cfg, options->cq_size));
    if (options->rcq_size != 0) CHECK_OK(rpma_conn_cfg_set_rcq_size(side->cfg, options->rcq_size));
    if (options->sq_size != 0) CHECK_OK(rpma_conn_cfg_set_sq_size(side->cfg, options->sq_size));
    if (options->rq_size != 0) CHECK_OK(rpma_conn_cfg_set_rq_size(side->cfg, options->rq_size));
    int timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : (int)LONG_MS;
    CHECK_OK(rpma_conn_cfg_set_timeout(side->cfg, timeout_ms));
    CHECK_OK(rpma_conn_cfg_set_compl_channel(side->cfg, options->shared_channel));
    if (side->srq != NULL) CHECK_OK(rpma_conn_cfg_set_srq(side->cfg, side->srq));
}

static void do_open(Side *side, void *argument) {
    const Opening *opening = argument;
    memcpy(side->port, opening->port, sizeof side->port);
    if (opening->other != NULL) {
        side->peer = opening->other->peer;
        side->memory = opening->other->memory;
        side->mr = opening->other->mr;
        side->srq = opening->other->srq;
        memcpy(side->descriptor, opening->other->descriptor, sizeof side->descriptor);
    } else {
        side->peer = new_peer();
        open_memory(side, &opening->options);
        if (opening->options.srq || opening->options.srq_without_rcq) open_srq(side, &opening->options);
    }
    open_cfg(side, &opening->options);
}

void side_open_beside(Side *side, Side *other, Options options) {
    Opening opening = {other, options, ""};
    memcpy(opening.port, side->port, sizeof opening.port);
    at(side, do_open, &opening, sizeof opening);
}

void side_open(Side *side, Options options) { side_open_beside(side, NULL, options); }

static void do_close(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_conn_delete(&side->conn));
    CHECK_OK(rpma_conn_req_delete(&side->req));
    CHECK_OK(rpma_ep_shutdown(&side->ep));
    CHECK_OK(rpma_conn_cfg_delete(&side->cfg));
    CHECK_OK(rpma_srq_delete(&side->srq));
    CHECK_OK(rpma_mr_remote_delete(&side->target));
    CHECK_OK(rpma_mr_dereg(&side->mr));
    CHECK_OK(rpma_peer_delete(&side->peer));
    CHECK(munmap(side->memory, MEMORY_BYTES) == 0);
}

void side_close(Side *side) { at(side, do_close, NULL, 0); }

/* ---- Pairs ------------------------------------------------------------------------------------------------------- */

void begin_connecting(const Pair *pair) {
    request_to(pair->client, pair->server);
    connect_request(pair->client);
    next_request(pair->server);
    connect_request(pair->server);
}

void pair_connect(const Pair *pair) {
    begin_connecting(pair);
    EXPECT_EVENT(pair->client, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair->server, RPMA_CONN_ESTABLISHED);
    exchange_targets(pair);
}

void pair_hang_up(const Pair *pair) {
    disconnect(pair->client);
    EXPECT_EVENT(pair->server, RPMA_CONN_CLOSED);
    disconnect(pair->server);
    EXPECT_EVENT(pair->client, RPMA_CONN_CLOSED);
}

void pair_close(const Pair *pair) {
    pair_hang_up(pair);
    side_close(pair->client);
    side_close(pair->server);
}

/* ---- Connecting, step by step ------------------------------------------------------------------------------------ */

static void do_listen(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_ep_listen(side->peer, test_address(), side->port, &side->ep));
}

void listen_at(Side *server) { at(server, do_listen, NULL, 0); }

static void do_request(Side *side, void *port) {
    CHECK_OK(rpma_conn_req_new(side->peer, test_address(), port, side->cfg, &side->req));
}

void request_to(Side *client, const Side *server) {
    char port[sizeof server->port];
    memcpy(port, server->port, sizeof port);
    at(client, do_request, port, sizeof port);
}

static void do_next_request(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_ep_next_conn_req(side->ep, side->cfg, &side->req));
}

void next_request(Side *server) { at(server, do_next_request, NULL, 0); }

typedef struct {
    int len;
    uint8_t bytes[MAX_PDATA];
} PrivateData;

static void do_connect(Side *side, void *argument) {
    PrivateData *data = argument;
    struct rpma_conn_private_data pdata = {data->bytes, (uint8_t)data->len};
    CHECK_OK(rpma_conn_req_connect(&side->req, data->len > 0 ? &pdata : NULL, &side->conn));
    CHECK(side->req == NULL && side->conn != NULL);
}

void connect_with(Side *side, const void *data, int len) {
    PrivateData pdata = {.len = len};
    CHECK(len <= MAX_PDATA);
    if (len > 0) memcpy(pdata.bytes, data, (size_t)len);
    at(side, do_connect, &pdata, sizeof pdata);
}

void connect_request(Side *side) { connect_with(side, NULL, 0); }

static void do_set_target(Side *side, void *descriptor) {
    CHECK_OK(rpma_mr_remote_delete(&side->target));
    CHECK_OK(rpma_mr_remote_from_descriptor(descriptor, MR_DESCRIPTOR_BYTES, &side->target));
}

static void set_target(Side *side, const Side *other) {
    uint8_t descriptor[MR_DESCRIPTOR_BYTES];
    memcpy(descriptor, other->descriptor, sizeof descriptor);
    at(side, do_set_target, descriptor, sizeof descriptor);
}

void exchange_targets(const Pair *pair) {
    set_target(pair->client, pair->server);
    set_target(pair->server, pair->client);
}

static void do_disconnect(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_conn_disconnect(side->conn));
}

void disconnect(Side *side) { at(side, do_disconnect, NULL, 0); }

static void do_delete_conn(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_conn_delete(&side->conn));
    CHECK(side->conn == NULL);
}

void delete_conn(Side *side) { at(side, do_delete_conn, NULL, 0); }

static void do_next_event(Side *side, void *event) { CHECK_OK(rpma_conn_next_event(side->conn, event)); }

enum rpma_conn_event next_event(Side *side) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    at(side, do_next_event, &event, sizeof event);
    return event;
}

static void do_look_for_event(Side *side, void *waits) {
    int fd = -1;
    CHECK_OK(rpma_conn_get_event_fd(side->conn, &fd));
    *(bool *)waits = readable(fd, 0);
}

bool event_waits(Side *side) {
    bool waits = false;
    at(side, do_look_for_event, &waits, sizeof waits);
    return waits;
}

void expect_event(const char *file, int line, Side *side, enum rpma_conn_event expected) {
    enum rpma_conn_event event = next_event(side);
    if (event != expected)
        fail(file, line, "\"%s\" comes, not \"%s\"", rpma_utils_conn_event_2str(event),
             rpma_utils_conn_event_2str(expected));
}
