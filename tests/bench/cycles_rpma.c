/* SPDX-License-Identifier: BSD-3-Clause */
/* librpma for cycles.c. */
#include <librpma.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/bench/cycles.h"

enum { first_port = 22000, ports = 40000, descriptor_room = 64 };

static struct End {
    struct rpma_peer* peer;
    struct rpma_conn* connection;
    struct rpma_cq *sends, *receives;
    struct rpma_mr_local* memory;
    struct rpma_mr_remote* peers_memory;
} ends[end_count];
static struct rpma_ep* endpoint; /* of end 1 */

static void check(const char* call, int result) {
    if (result != 0) fail(call, rpma_err_2str(result));
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static void open_end(struct End* end, struct Memory* area, const char* address) {
    struct ibv_context* context = NULL;
    check("rpma_utils_get_ibv_context", rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    check("rpma_peer_new", rpma_peer_new(context, &end->peer));
    check("rpma_mr_reg", rpma_mr_reg(end->peer, area, sizeof *area,
                                     RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_WRITE_SRC |
                                         RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST,
                                     &end->memory));
}

static struct rpma_conn_cfg* configuration(void) {
    struct rpma_conn_cfg* made = NULL;
    check("rpma_conn_cfg_new", rpma_conn_cfg_new(&made));
    check("rpma_conn_cfg_set_sq_size", rpma_conn_cfg_set_sq_size(made, queue_size));
    check("rpma_conn_cfg_set_rq_size", rpma_conn_cfg_set_rq_size(made, queue_size));
    check("rpma_conn_cfg_set_cq_size", rpma_conn_cfg_set_cq_size(made, queue_size));
    check("rpma_conn_cfg_set_rcq_size", rpma_conn_cfg_set_rcq_size(made, queue_size));
    return made;
}

static void connect_end(int end, struct rpma_conn_req* request) {
    for (int i = 0; i < receives_ahead; ++i)
        check("rpma_conn_req_recv",
              rpma_conn_req_recv(request, ends[end].memory, offsetof(struct Memory, incoming), max_size, NULL));
    check("rpma_conn_req_connect", rpma_conn_req_connect(&request, NULL, &ends[end].connection));
}

static void finish_end(int end) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    unsigned char descriptor[descriptor_room];
    size_t size = 0;
    check("rpma_conn_next_event", rpma_conn_next_event(ends[end].connection, &event));
    if (event != RPMA_CONN_ESTABLISHED) fail("connecting", rpma_utils_conn_event_2str(event));
    check("rpma_conn_get_cq", rpma_conn_get_cq(ends[end].connection, &ends[end].sends));
    check("rpma_conn_get_rcq", rpma_conn_get_rcq(ends[end].connection, &ends[end].receives));
    check("rpma_mr_get_descriptor_size", rpma_mr_get_descriptor_size(ends[1 - end].memory, &size));
    if (size > sizeof descriptor) fail("rpma_mr_get_descriptor_size", "a long descriptor");
    check("rpma_mr_get_descriptor", rpma_mr_get_descriptor(ends[1 - end].memory, descriptor));
    check("rpma_mr_remote_from_descriptor", rpma_mr_remote_from_descriptor(descriptor, size, &ends[end].peers_memory));
}

void open_ends(char* const names[end_count]) {
    char port[8];
    struct rpma_conn_cfg* configured = configuration();
    struct rpma_conn_req* request = NULL;
    for (int end = 0; end < end_count; ++end) open_end(&ends[end], &memory[end], names[end]);
    snprintf(port, sizeof port, "%d", first_port + (int)(getpid() % ports));
    check("rpma_ep_listen", rpma_ep_listen(ends[1].peer, names[1], port, &endpoint));
    check("rpma_conn_req_new", rpma_conn_req_new(ends[0].peer, names[1], port, configured, &request));
    connect_end(0, request);
    check("rpma_ep_next_conn_req", rpma_ep_next_conn_req(endpoint, configured, &request));
    connect_end(1, request);
    for (int end = 0; end < end_count; ++end) finish_end(end);
    check("rpma_conn_cfg_delete", rpma_conn_cfg_delete(&configured));
}

void close_ends(void) {
    check("rpma_conn_disconnect", rpma_conn_disconnect(ends[0].connection));
    for (int end = 0; end < end_count; ++end) {
        enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
        check("rpma_conn_next_event", rpma_conn_next_event(ends[end].connection, &event));
        check("rpma_mr_remote_delete", rpma_mr_remote_delete(&ends[end].peers_memory));
    }
    check("rpma_conn_disconnect", rpma_conn_disconnect(ends[1].connection));
    check("rpma_ep_shutdown", rpma_ep_shutdown(&endpoint));
    for (int end = 0; end < end_count; ++end) {
        check("rpma_conn_delete", rpma_conn_delete(&ends[end].connection));
        check("rpma_mr_dereg", rpma_mr_dereg(&ends[end].memory));
        check("rpma_peer_delete", rpma_peer_delete(&ends[end].peer));
    }
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static const size_t outgoing = offsetof(struct Memory, outgoing), incoming = offsetof(struct Memory, incoming);

void post_receive(int end) {
    check("rpma_recv", rpma_recv(ends[end].connection, ends[end].memory, incoming, max_size, NULL));
}

void post_send(int end, size_t size) {
    check("rpma_send",
          rpma_send(ends[end].connection, ends[end].memory, outgoing, size, RPMA_F_COMPLETION_ALWAYS, NULL));
}

void post_write(int end, size_t size) {
    check("rpma_write", rpma_write(ends[end].connection, ends[end].peers_memory, incoming, ends[end].memory, outgoing,
                                   size, RPMA_F_COMPLETION_ALWAYS, NULL));
}

void post_read(int end, size_t size) {
    check("rpma_read", rpma_read(ends[end].connection, ends[end].memory, incoming, ends[end].peers_memory, outgoing,
                                 size, RPMA_F_COMPLETION_ALWAYS, NULL));
}

static inline void take(struct rpma_cq* queue, unsigned* counter) {
    struct ibv_wc taken;
    const int result = rpma_cq_get_wc(queue, 1, &taken, NULL);
    if (result == RPMA_E_NO_COMPLETION) return;
    check("rpma_cq_get_wc", result);
    if (taken.status != IBV_WC_SUCCESS) fail("rpma_cq_get_wc", "a failed completion");
    ++*counter;
}

void poll_sends(int end) { take(ends[end].sends, &sent[end]); }

void poll_receives(int end) { take(ends[end].receives, &received[end]); }
