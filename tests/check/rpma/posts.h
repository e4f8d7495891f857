/* SPDX-License-Identifier: BSD-3-Clause
 * Requests that are posted and not waited for, with librpma.
 */
#pragma once
#include <librpma.h>

enum { VISIBLE = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY };
enum Operation { SEND, WRITE, READ };

struct Other {
    char* address;
    struct rpma_mr_local* region;
};

static inline void post(struct End* end, enum Operation operation, size_t from, size_t to, size_t length) {
    const size_t at = offsetof(struct End, out) + from;
    if (operation == SEND)
        TRY(rpma_send(end->conn, end->region, at, length, RPMA_F_COMPLETION_ALWAYS, NULL));
    else if (operation == WRITE)
        TRY(rpma_write(end->conn, theirs, to, end->region, at, length, RPMA_F_COMPLETION_ALWAYS, NULL));
    else
        TRY(rpma_read(end->conn, end->region, at, theirs, to, length, RPMA_F_COMPLETION_ALWAYS, NULL));
}

static inline void take(struct End* end) { wait_completion(end->sends, "post"); }

static inline void register_other(struct Other* other, void* address, size_t length) {
    other->address = address;
    TRY(rpma_mr_reg(peer, address, length, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND, &other->region));
}

static inline void post_receive_other(struct End* end, struct Other* other, void* address, size_t length) {
    TRY(rpma_recv(end->conn, other->region, (size_t)((char*)address - other->address), length, NULL));
}

static inline void deregister_other(struct Other* other) { TRY(rpma_mr_dereg(&other->region)); }

static inline void fill_queue(void) {
    uint32_t depth;
    TRY(rpma_conn_cfg_get_rq_size(configuration, &depth));
    for (uint32_t i = 0; i < depth; ++i) post_receive(&end);
}

/* The second write is announced, although only the first one is persistent. */
static inline void write_and_announce(int visible) {
    rdma_write(&end, 0, 64);
    flush(&end, 0, 64);
    rdma_write(&end, 64, 64);
    if (visible) {
        TRY(rpma_flush(end.conn, theirs, 64, 64, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL));
        take(&end);
    }
    post_receive(&end);
    send_message(&end, 2);
    wait_receive(&end);
}
static inline void unflushed(void) { write_and_announce(0); }
static inline void visible_only(void) { write_and_announce(1); }

#define MISTAKES_OF_API \
    {"queues", fill_queue}, {"unflushed", unflushed}, { "visible", visible_only }
