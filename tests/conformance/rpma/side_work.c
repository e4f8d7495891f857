/* SPDX-License-Identifier: BSD-3-Clause
 * Sides for the conformance programs: work and completions.
 */
#include "side.h"

/* ---- Work -------------------------------------------------------------------------------------------------------- */

typedef struct {
    Work work;
    int rc;
} Posting;

static int post_here(Side *side, const Work *work) {
    int flags = work->on_error ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS;
    struct rpma_mr_local *mr = work->no_region ? NULL : side->mr;
    struct rpma_mr_remote *target = work->no_region ? NULL : side->target;
    const void *context = (const void *)(uintptr_t)work->context;
    size_t offset = work->at, to = work->to, length = work->length;
    switch (work->operation) {
        case SEND: return rpma_send(side->conn, mr, offset, length, flags, context);
        case SEND_WITH_IMM: return rpma_send_with_imm(side->conn, mr, offset, length, flags, work->imm, context);
        case RECV: return rpma_recv(side->conn, mr, offset, length, context);
        case REQ_RECV: return rpma_conn_req_recv(side->req, mr, offset, length, context);
        case SRQ_RECV: return rpma_srq_recv(side->srq, mr, offset, length, context);
        case READ: return rpma_read(side->conn, mr, offset, target, to, length, flags, context);
        case WRITE: return rpma_write(side->conn, target, to, mr, offset, length, flags, context);
        case WRITE_WITH_IMM:
            return rpma_write_with_imm(side->conn, target, to, mr, offset, length, flags, work->imm, context);
        case ATOMIC_WRITE: return rpma_atomic_write(side->conn, target, to, work->value, flags, context);
        case FLUSH_VISIBILITY:
            return rpma_flush(side->conn, target, to, length, RPMA_FLUSH_TYPE_VISIBILITY, flags, context);
        case FLUSH_PERSISTENT:
            return rpma_flush(side->conn, target, to, length, RPMA_FLUSH_TYPE_PERSISTENT, flags, context);
    }
    fail(__FILE__, __LINE__, "no operation %d", (int)work->operation);
}

static void do_post(Side *side, void *argument) {
    Posting *posting = argument;
    posting->rc = post_here(side, &posting->work);
}

int post(Side *side, Work work) {
    Posting posting = {work, 0};
    at(side, do_post, &posting, sizeof posting);
    return posting.rc;
}

/* ---- Completions ------------------------------------------------------------------------------------------------- */

struct rpma_cq *queue_of(const Side *side, Queue queue) {
    struct rpma_cq *cq = NULL;
    if (queue == RECV_CQ && side->srq != NULL) CHECK_OK(rpma_srq_get_rcq(side->srq, &cq));
    if (queue == RECV_CQ && cq == NULL) CHECK_OK(rpma_conn_get_rcq(side->conn, &cq));
    if (cq == NULL) CHECK_OK(rpma_conn_get_cq(side->conn, &cq));
    CHECK(cq != NULL);
    return cq;
}

typedef struct {
    Queue queue;
    bool found;
    struct ibv_wc wc;
} Poll;

static void do_poll(Side *side, void *argument) {
    Poll *poll = argument;
    int rc = rpma_cq_get_wc(queue_of(side, poll->queue), 1, &poll->wc, NULL);
    poll->found = rc == 0;
    if (rc != 0) CHECK_RC(rc, RPMA_E_NO_COMPLETION);
}

bool poll_wc(Side *side, Queue queue, struct ibv_wc *wc) {
    Poll poll = {.queue = queue};
    at(side, do_poll, &poll, sizeof poll);
    if (poll.found) *wc = poll.wc;
    return poll.found;
}

/* On a shared channel the event may be that of the other queue. */
static void wait_for_event(Side *side, struct rpma_cq *cq) {
    int rc = rpma_cq_wait(cq);
    if (rc == RPMA_E_SHARED_CHANNEL) rc = rpma_conn_wait(side->conn, 0, &cq, NULL);
    CHECK_OK(rc);
}

static void do_next_wc(Side *side, void *argument) {
    Poll *poll = argument;
    for (do_poll(side, poll); !poll->found; do_poll(side, poll)) wait_for_event(side, queue_of(side, poll->queue));
}

struct ibv_wc next_wc(Side *side, Queue queue) {
    Poll poll = {.queue = queue};
    at(side, do_next_wc, &poll, sizeof poll);
    return poll.wc;
}

struct ibv_wc expect_wc(const char *file, int line, Side *side, Queue queue, uint64_t context,
                        enum ibv_wc_status status) {
    struct ibv_wc wc = next_wc(side, queue);
    check_equal(file, line, "wr_id", wc.wr_id, context);
    check_equal(file, line, "status", wc.status, status);
    return wc;
}

void expect_failed(const char *file, int line, Side *side, Queue queue, uint64_t context, enum ibv_wc_status status) {
    struct ibv_wc wc = next_wc(side, queue);
    check_equal(file, line, "wr_id", wc.wr_id, context);
    if (wc.status == IBV_WC_SUCCESS || on_loopback()) check_equal(file, line, "status", wc.status, status);
}

unsigned fill_queue(Side *side, Work work, unsigned size) {
    unsigned posted = 0;
    int rc = 0;
    for (; rc == 0 && posted < 4 * size + 100; posted += rc == 0) rc = post(side, work);
    CHECK_RC(rc, RPMA_E_PROVIDER);
    CHECK(on_loopback() ? posted == size : posted >= size);
    return posted;
}

static void do_get_qp_num(Side *side, void *number) { CHECK_OK(rpma_conn_get_qp_num(side->conn, number)); }

uint32_t qp_num_of(Side *side) {
    uint32_t number = 0;
    at(side, do_get_qp_num, &number, sizeof number);
    return number;
}

void expect_no_wc(Side *side) {
    struct ibv_wc wc;
    CHECK(!poll_wc(side, MAIN_CQ, &wc));
    CHECK(!poll_wc(side, RECV_CQ, &wc));
}

void tell(Side *from, Side *to) {
    const uint64_t context = 0x7e11;
    CHECK_OK(post(to, (Work){.operation = RECV, .no_region = true, .context = context}));
    CHECK_OK(post(from, (Work){.operation = SEND, .no_region = true, .context = context}));
    EXPECT_RECEIVED(to, context);
    EXPECT_DONE(from, context);
}

Pair pair_with_full_queue(void) {
    Pair pair = connected_pair((Options){.sq_size = 2});
    fill_queue(pair.client, (Work){.operation = SEND, .length = 8}, 2);
    return pair;
}

Pair closed_pair(void) {
    Pair pair = connected_pair((Options){0});
    pair_hang_up(&pair);
    return pair;
}
