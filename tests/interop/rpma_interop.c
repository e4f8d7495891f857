/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a librpma connection; uses only librpma.h.
 */
#include <arpa/inet.h>
#include <librpma.h>
#include <stdio.h>
#include <string.h>

#include "interop.h"

enum { DESCRIPTOR_BYTES = 21, PEER_CFG_BYTES = 1 };

const char* const library = "librpma.so.0";

/* ---- An end ------------------------------------------------------------------------------------------------------ */

/* The private data of the request and the answer. */
typedef struct {
    uint8_t memory[DESCRIPTOR_BYTES];
    uint8_t peer_cfg[PEER_CFG_BYTES];
    char greeting[16];
} Introduction;

struct End {
    const char *address, *port;
    struct rpma_peer* peer;
    struct rpma_conn_cfg* cfg;
    struct rpma_ep* ep; /* server only */
    struct rpma_conn* conn;
    struct rpma_cq *cq, *rcq;
    struct rpma_mr_local* mr;
    struct rpma_mr_remote* remote;
    Introduction own;
};

static void register_memory(End* end) {
    const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
                      RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
                      RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    size_t size = 0;
    OK(rpma_mr_reg(end->peer, memory, MEMORY_BYTES, usage, &end->mr));
    OK(rpma_mr_get_descriptor_size(end->mr, &size));
    CHECK_EQ(size, DESCRIPTOR_BYTES);
    OK(rpma_mr_get_descriptor(end->mr, end->own.memory));
}

/* Announces that its memory may be flushed to persistence. */
static void open_peer_cfg(End* end) {
    struct rpma_peer_cfg* cfg = NULL;
    size_t size = 0;
    OK(rpma_peer_cfg_new(&cfg));
    OK(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true));
    OK(rpma_peer_cfg_get_descriptor_size(cfg, &size));
    CHECK_EQ(size, PEER_CFG_BYTES);
    OK(rpma_peer_cfg_get_descriptor(cfg, end->own.peer_cfg));
    OK(rpma_peer_cfg_delete(&cfg));
}

End* open_end(const char* address, const char* port) {
    static End only;
    End* const end = &only;
    struct ibv_context* device = NULL;
    const bool here = strcmp(role, "server") == 0;
    const enum rpma_util_ibv_context_type type = here ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE;
    end->address = address;
    end->port = port;
    OK(rpma_utils_get_ibv_context(end->address, type, &device));
    OK(rpma_peer_new(device, &end->peer));
    OK(rpma_conn_cfg_new(&end->cfg));
    OK(rpma_conn_cfg_set_rcq_size(end->cfg, 10));
    register_memory(end);
    open_peer_cfg(end);
    snprintf(end->own.greeting, sizeof end->own.greeting, "I am the %s", role);
    return end;
}

void listen_at(End* end) { OK(rpma_ep_listen(end->peer, end->address, end->port, &end->ep)); }

void close_end(End* end) {
    OK(rpma_ep_shutdown(&end->ep));
    OK(rpma_conn_cfg_delete(&end->cfg));
    OK(rpma_mr_dereg(&end->mr));
    OK(rpma_peer_delete(&end->peer));
}

/* ---- Connecting and disconnecting -------------------------------------------------------------------------------- */

#define EXPECT_EVENT(end, expected) CHECK_EQ(next_event(end), expected)

static enum rpma_conn_event next_event(End* end) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    OK(rpma_conn_next_event(end->conn, &event));
    return event;
}

/* Returns the number of an inbox as the context of its receive. */
static const void* name_of(size_t slot) { return (const void*)(uintptr_t)(slot + 1); }

static void start(End* end, struct rpma_conn_req* req) {
    struct rpma_conn_private_data pdata = {&end->own, sizeof end->own};
    for (size_t slot = 0; slot < RECEIVES; ++slot)
        OK(rpma_conn_req_recv(req, end->mr, inbox(slot), MESSAGE_BYTES, name_of(slot)));
    OK(rpma_conn_req_connect(&req, &pdata, &end->conn));
    OK(rpma_conn_get_cq(end->conn, &end->cq));
    OK(rpma_conn_get_rcq(end->conn, &end->rcq));
    EXPECT_EVENT(end, RPMA_CONN_ESTABLISHED);
}

static void meet(End* end, const char* greeting) {
    struct rpma_conn_private_data pdata = {NULL, 0};
    struct rpma_peer_cfg* cfg = NULL;
    Introduction other;
    OK(rpma_conn_get_private_data(end->conn, &pdata));
    CHECK(pdata.len >= sizeof other);
    memcpy(&other, pdata.ptr, sizeof other);
    CHECK_EQ(strncmp(other.greeting, greeting, sizeof other.greeting), 0);
    OK(rpma_mr_remote_from_descriptor(other.memory, sizeof other.memory, &end->remote));
    OK(rpma_peer_cfg_from_descriptor(other.peer_cfg, sizeof other.peer_cfg, &cfg));
    OK(rpma_conn_apply_remote_peer_cfg(end->conn, cfg));
    OK(rpma_peer_cfg_delete(&cfg));
}

void call_in_vain(End* end) {
    struct rpma_conn_private_data plea = {"reject me", 9};
    struct rpma_conn_req* req = NULL;
    OK(rpma_conn_req_new(end->peer, end->address, end->port, end->cfg, &req));
    OK(rpma_conn_req_connect(&req, &plea, &end->conn));
    EXPECT_EVENT(end, RPMA_CONN_REJECTED);
    OK(rpma_conn_delete(&end->conn));
}

void reject(End* end) {
    struct rpma_conn_private_data pdata = {NULL, 0};
    struct rpma_conn_req* req = NULL;
    OK(rpma_ep_next_conn_req(end->ep, end->cfg, &req));
    OK(rpma_conn_req_get_private_data(req, &pdata));
    check_data(pdata.ptr, pdata.len, "reject me");
    OK(rpma_conn_req_delete(&req));
}

void call(End* end) {
    struct rpma_conn_req* req = NULL;
    OK(rpma_conn_req_new(end->peer, end->address, end->port, end->cfg, &req));
    start(end, req);
    meet(end, "I am the server");
}

void answer(End* end) {
    struct rpma_conn_req* req = NULL;
    OK(rpma_ep_next_conn_req(end->ep, end->cfg, &req));
    start(end, req);
    meet(end, "I am the client");
}

static void part(End* end) {
    OK(rpma_mr_remote_delete(&end->remote));
    OK(rpma_conn_delete(&end->conn));
    memset(memory, 0, MEMORY_BYTES);
}

void hang_up(End* end) {
    OK(rpma_conn_disconnect(end->conn));
    EXPECT_EVENT(end, RPMA_CONN_CLOSED);
    part(end);
}

void hang_up_after_the_other(End* end) {
    EXPECT_EVENT(end, RPMA_CONN_CLOSED);
    OK(rpma_conn_disconnect(end->conn));
    part(end);
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

static struct ibv_wc await(struct rpma_cq* cq) {
    struct ibv_wc wc;
    int rc;
    while ((rc = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION) OK(rpma_cq_wait(cq));
    OK(rc);
    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    return wc;
}

/* The context of all posted operations. */
static const char operation_context;

static void await_done(End* end, enum ibv_wc_opcode opcode) {
    struct ibv_wc wc = await(end->cq);
    CHECK_EQ(wc.opcode, opcode);
    CHECK(wc.wr_id == (uintptr_t)&operation_context);
}

void send_pattern(End* end, size_t length, unsigned seed) {
    fill(OUTBOX, length, seed);
    OK(rpma_send(end->conn, end->mr, OUTBOX, length, RPMA_F_COMPLETION_ALWAYS, &operation_context));
    await_done(end, IBV_WC_SEND);
}

/* Posts the inbox of the completed receive again. */
static struct ibv_wc receive(End* end, size_t length, unsigned seed) {
    struct ibv_wc wc = await(end->rcq);
    size_t slot = (size_t)wc.wr_id - 1;
    CHECK(slot < RECEIVES);
    if (wc.opcode == IBV_WC_RECV) {
        CHECK_EQ(wc.byte_len, length);
        check_and_clear(inbox(slot), length, seed);
    }
    OK(rpma_recv(end->conn, end->mr, inbox(slot), MESSAGE_BYTES, name_of(slot)));
    return wc;
}

void receive_pattern(End* end, size_t length, unsigned seed) {
    CHECK_EQ(receive(end, length, seed).wc_flags & IBV_WC_WITH_IMM, 0);
}

static void post_write(End* end, size_t to, size_t length, unsigned seed, int flags) {
    fill(SOURCE, length, seed);
    OK(rpma_write(end->conn, end->remote, to, end->mr, SOURCE, length, flags, &operation_context));
}

void write_pattern(End* end, size_t to, size_t length, unsigned seed) {
    post_write(end, to, length, seed, RPMA_F_COMPLETION_ALWAYS);
    await_done(end, IBV_WC_RDMA_WRITE);
}

void read_from(End* end, size_t from, size_t to, size_t length) {
    OK(rpma_read(end->conn, end->mr, to, end->remote, from, length, RPMA_F_COMPLETION_ALWAYS, &operation_context));
    await_done(end, IBV_WC_RDMA_READ);
}

/* ---- The operations of this API ---------------------------------------------------------------------------------- */

static void check_immediate(struct ibv_wc wc, enum ibv_wc_opcode opcode, uint32_t immediate) {
    CHECK_EQ(wc.opcode, opcode);
    CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
    CHECK(ntohl(wc.imm_data) == immediate);
}

static void begin_send_with_imm(End* end) {
    fill(OUTBOX, 100, 10);
    OK(rpma_send_with_imm(end->conn, end->mr, OUTBOX, 100, RPMA_F_COMPLETION_ALWAYS, IMMEDIATE, &operation_context));
    await_done(end, IBV_WC_SEND);
    OK(rpma_send_with_imm(end->conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, UINT32_MAX, &operation_context));
    await_done(end, IBV_WC_SEND);
    hear_done(end);
}

static void end_send_with_imm(End* end) {
    check_immediate(receive(end, 100, 10), IBV_WC_RECV, IMMEDIATE);
    check_immediate(receive(end, 0, 0), IBV_WC_RECV, UINT32_MAX);
    say_done(end);
}

static void begin_write_with_imm(End* end) {
    fill(SOURCE, 3000, 20);
    OK(rpma_write_with_imm(end->conn, end->remote, TARGET + 5000, end->mr, SOURCE, 3000, RPMA_F_COMPLETION_ALWAYS,
                           IMMEDIATE, &operation_context));
    await_done(end, IBV_WC_RDMA_WRITE);
    hear_done(end);
}

static void end_write_with_imm(End* end) {
    check_immediate(receive(end, 0, 0), IBV_WC_RECV_RDMA_WITH_IMM, IMMEDIATE);
    check_and_clear(TARGET + 5000, 3000, 20);
    say_done(end);
}

static void begin_atomic_write(End* end) {
    char value[RPMA_ATOMIC_WRITE_ALIGNMENT];
    for (size_t i = 0; i < sizeof value; ++i) value[i] = (char)pattern(40, i);
    OK(rpma_atomic_write(end->conn, end->remote, TARGET + 8192, value, RPMA_F_COMPLETION_ALWAYS, &operation_context));
    await_done(end, IBV_WC_RDMA_WRITE);
    say_done(end);
    hear_done(end);
}

static void end_atomic_write(End* end) {
    hear_done(end);
    check_and_clear(TARGET + 8192, RPMA_ATOMIC_WRITE_ALIGNMENT, 40);
    say_done(end);
}

/* The write has no completion. It is complete when the flush is. */
static void flush_to(End* end, enum rpma_flush_type type, size_t length) {
    post_write(end, TARGET + 12345, 70000, 50, RPMA_F_COMPLETION_ON_ERROR);
    OK(rpma_flush(end->conn, end->remote, TARGET + 12345, length, type, RPMA_F_COMPLETION_ALWAYS, &operation_context));
    await_done(end, IBV_WC_RDMA_READ);
    say_done(end);
    hear_done(end);
}

static void begin_flush(End* end) {
    flush_to(end, RPMA_FLUSH_TYPE_VISIBILITY, 70000);
    flush_to(end, RPMA_FLUSH_TYPE_PERSISTENT, MEMORY_BYTES); /* exceeds the region; the stock library accepts that,
                                                                too */
}

static void end_flush(End* end) {
    for (int i = 0; i < 2; ++i) {
        hear_done(end);
        check_and_clear(TARGET + 12345, 70000, 50);
        say_done(end);
    }
}

const Operation operations[] = {{"send with immediate", begin_send_with_imm, end_send_with_imm},
                                {"write with immediate", begin_write_with_imm, end_write_with_imm},
                                {"atomic write", begin_atomic_write, end_atomic_write},
                                {"flush", begin_flush, end_flush},
                                {NULL, NULL, NULL}};
