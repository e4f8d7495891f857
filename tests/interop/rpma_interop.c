/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a librpma connection; uses only librpma.h.
 */
#include "interop.h"

#include <arpa/inet.h>

const char* const library = "librpma.so.0";
const int rights = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
const char* const refusal = ""; /* librpma has no private data there */

/* Whether the memory of this end and of the other one is registered for flushes to persistence. Where the device
 * flushes by itself, the stock library 1.3 cannot register volatile memory for that, nor flush it at the other end. */
static bool persistent, peer_persistent;

/* Announces that its memory may be flushed to persistence, if it may. */
void prepare(End* end, Introduction* own) {
    const int usage = RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
                      RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | rights | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    struct rpma_mr_local* region = NULL;
    struct rpma_peer_cfg* cfg = NULL;
    size_t size = 0;
    persistent = rpma_mr_reg(end->peer, memory, MEMORY_BYTES, usage, &region) == 0;
    if (persistent) {
        OK(rpma_mr_dereg(&end->region));
        end->region = region;
    }
    OK(rpma_peer_cfg_new(&cfg));
    OK(rpma_peer_cfg_set_direct_write_to_pmem(cfg, persistent));
    OK(rpma_peer_cfg_get_descriptor_size(cfg, &size));
    CHECK_EQ(size, sizeof own->abilities);
    OK(rpma_peer_cfg_get_descriptor(cfg, &own->abilities));
    OK(rpma_peer_cfg_delete(&cfg));
}

void reject(End* end) { OK(rpma_conn_req_delete(&end->req)); }

void meet(End* end, const Introduction* other) {
    struct rpma_peer_cfg* cfg = NULL;
    OK(rpma_peer_cfg_from_descriptor(&other->abilities, sizeof other->abilities, &cfg));
    OK(rpma_peer_cfg_get_direct_write_to_pmem(cfg, &peer_persistent));
    OK(rpma_conn_apply_remote_peer_cfg(end->conn, cfg));
    OK(rpma_peer_cfg_delete(&cfg));
}

void part(End* end) { (void)end; }

void check_request(const End* end, Kind kind, size_t length) {
    static const enum ibv_wc_opcode opcodes[] = {
        [SEND] = IBV_WC_SEND, [WRITE] = IBV_WC_RDMA_WRITE, [READ] = IBV_WC_RDMA_READ};
    (void)length;
    CHECK_EQ(end->wc.opcode, opcodes[kind]);
}

void check_message(const End* end) {
    CHECK_EQ(end->wc.opcode, IBV_WC_RECV);
    CHECK_EQ(end->wc.wc_flags & IBV_WC_WITH_IMM, 0);
}

void write_pattern(End* end, size_t to, size_t length, unsigned seed) {
    fill(SOURCE, length, seed);
    end_post_write(end, SOURCE, to, length, CONTEXT);
    await_request(end, WRITE, length);
}

/* ---- The operations of this API ---------------------------------------------------------------------------------- */

static void receive_immediate(End* end, enum ibv_wc_opcode opcode, size_t length, unsigned seed, uint32_t immediate) {
    const Done done = await_receive(end);
    CHECK_EQ(end->wc.opcode, opcode);
    CHECK_EQ(end->wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
    CHECK(ntohl(end->wc.imm_data) == immediate);
    if (opcode == IBV_WC_RECV) {
        CHECK_EQ(done.length, length);
        check_and_clear(inbox(done.context), length, seed);
    }
    post_inbox(end, done.context);
}

static void begin_send_with_imm(End* end) {
    fill(OUTBOX, 100, 10);
    OK(rpma_send_with_imm(end->conn, end->region, OUTBOX, 100, RPMA_F_COMPLETION_ALWAYS, IMMEDIATE,
                          end_context(CONTEXT)));
    await_request(end, SEND, 0);
    OK(rpma_send_with_imm(end->conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, UINT32_MAX, end_context(CONTEXT)));
    await_request(end, SEND, 0);
    hear_done(end);
}

static void end_send_with_imm(End* end) {
    receive_immediate(end, IBV_WC_RECV, 100, 10, IMMEDIATE);
    receive_immediate(end, IBV_WC_RECV, 0, 0, UINT32_MAX);
    say_done(end);
}

static void begin_write_with_imm(End* end) {
    fill(SOURCE, 3000, 20);
    OK(rpma_write_with_imm(end->conn, end->there, TARGET + 5000, end->region, SOURCE, 3000, RPMA_F_COMPLETION_ALWAYS,
                           IMMEDIATE, end_context(CONTEXT)));
    await_request(end, WRITE, 0);
    hear_done(end);
}

static void end_write_with_imm(End* end) {
    receive_immediate(end, IBV_WC_RECV_RDMA_WITH_IMM, 0, 0, IMMEDIATE);
    check_and_clear(TARGET + 5000, 3000, 20);
    say_done(end);
}

/* What the device does by itself where it can: IBV_WC_FLUSH and IBV_WC_ATOMIC_WRITE of later versions of rdma-core. */
enum { FLUSHED_BY_DEVICE = 8, WRITTEN_BY_DEVICE = 9 };

/* Waits for a request that has one of two opcodes, depending on the device. */
static void await_either(End* end, int usual, int by_device) {
    Done done;
    end_await_send(end, &done);
    CHECK(done.succeeded && done.context == CONTEXT);
    CHECK((int)end->wc.opcode == usual || (int)end->wc.opcode == by_device);
}

static void begin_atomic_write(End* end) {
    char value[RPMA_ATOMIC_WRITE_ALIGNMENT];
    for (size_t i = 0; i < sizeof value; ++i) value[i] = (char)pattern(40, i);
    OK(rpma_atomic_write(end->conn, end->there, TARGET + 8192, value, RPMA_F_COMPLETION_ALWAYS, end_context(CONTEXT)));
    await_either(end, IBV_WC_RDMA_WRITE, WRITTEN_BY_DEVICE);
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
    fill(SOURCE, 70000, 50);
    OK(rpma_write(end->conn, end->there, TARGET + 12345, end->region, SOURCE, 70000, RPMA_F_COMPLETION_ON_ERROR,
                  end_context(CONTEXT)));
    OK(rpma_flush(end->conn, end->there, TARGET + 12345, length, type, RPMA_F_COMPLETION_ALWAYS, end_context(CONTEXT)));
    await_either(end, IBV_WC_RDMA_READ, FLUSHED_BY_DEVICE);
    say_done(end);
    hear_done(end);
}

static void begin_flush(End* end) {
    flush_to(end, RPMA_FLUSH_TYPE_VISIBILITY, 70000);
    if (persistent && peer_persistent) /* exceeds the region; the stock library accepts that, too */
        flush_to(end, RPMA_FLUSH_TYPE_PERSISTENT, MEMORY_BYTES);
    if (!peer_persistent)
        CHECK_EQ(
            rpma_flush(end->conn, end->there, TARGET, 1, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, NULL),
            RPMA_E_NOSUPP);
}

static void end_flush(End* end) {
    for (int i = 0; i < (persistent && peer_persistent ? 2 : 1); ++i) {
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
