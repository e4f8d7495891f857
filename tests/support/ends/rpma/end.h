/* SPDX-License-Identifier: BSD-3-Clause
 * An end for librpma: see ends.h.
 */
#ifndef TESTS_SUPPORT_ENDS_RPMA_END_H
#define TESTS_SUPPORT_ENDS_RPMA_END_H

#include <librpma.h>

#include "../ends.h"

#define END_OPENS_ADDRESSES true
#define END_CONFIRMS_SENDS true

/* The descriptor of a region, rpma_mr_get_descriptor(3), on a little-endian host. */
enum { end_address_at = 0, end_size_at = 8, end_key_at = 16, end_usage_at = 20, end_descriptor_bytes = 21 };

typedef struct {
    Setup setup;
    struct rpma_peer* peer;
    struct rpma_mr_local* region;
    struct rpma_mr_remote* there;
    struct rpma_conn_cfg* cfg;
    struct rpma_ep* ep;
    struct rpma_conn_req* req;
    struct rpma_conn* conn;
    struct rpma_cq *sends, *receives;
    bool hung_up;
    struct ibv_wc wc; /* the last completion */
    Greeting peers;
} End;

static inline bool end_check(const char* call, int result) {
    if (result != 0) fail(call, rpma_err_2str(result));
    return result == 0;
}

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

static inline bool end_configure(struct rpma_conn_cfg* cfg, const Setup* setup) {
    const uint32_t depth = (uint32_t)setup->depth;
    return CALL(rpma_conn_cfg_set_sq_size, cfg, depth) && CALL(rpma_conn_cfg_set_rq_size, cfg, depth) &&
           CALL(rpma_conn_cfg_set_cq_size, cfg, setup->one_queue ? 2 * depth : depth) &&
           (setup->one_queue || CALL(rpma_conn_cfg_set_rcq_size, cfg, depth)) &&
           (setup->timeout_ms == 0 || CALL(rpma_conn_cfg_set_timeout, cfg, (int)setup->timeout_ms));
}

static inline bool end_open(End* end, const Setup* setup) {
    const enum rpma_util_ibv_context_type type =
        setup->at_peer ? RPMA_UTIL_IBV_CONTEXT_REMOTE : RPMA_UTIL_IBV_CONTEXT_LOCAL;
    const int own = RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST;
    const int usage = own | (setup->for_peers ? RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC : 0) | setup->rights;
    struct ibv_context* context = NULL;
    *end = (End){.setup = *setup};
    return CALL(rpma_utils_get_ibv_context, setup->at, type, &context) && CALL(rpma_peer_new, context, &end->peer) &&
           CALL(rpma_mr_reg, end->peer, setup->memory, setup->bytes, usage, &end->region) &&
           CALL(rpma_conn_cfg_new, &end->cfg) && end_configure(end->cfg, setup);
}

static inline bool end_prepare(End* end) {
    (void)end;
    return true;
}

static inline void end_part(End* end) {
    if (end->conn != NULL && !end->hung_up) rpma_conn_disconnect(end->conn); /* fails if it is not connected */
    if (end->conn != NULL) CALL(rpma_conn_delete, &end->conn);
    if (end->req != NULL) CALL(rpma_conn_req_delete, &end->req);
    if (end->there != NULL) CALL(rpma_mr_remote_delete, &end->there);
    end->hung_up = false;
}

static inline void end_close(End* end) {
    end_part(end);
    if (end->ep != NULL) CALL(rpma_ep_shutdown, &end->ep);
    CALL(rpma_conn_cfg_delete, &end->cfg);
    CALL(rpma_mr_dereg, &end->region);
    CALL(rpma_peer_delete, &end->peer);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static inline const char* end_host(End* end) { return end->setup.at; }

static inline bool end_listen(End* end, const char* host, const char* port) {
    return CALL(rpma_ep_listen, end->peer, host, port, &end->ep);
}

static inline bool end_take(End* end) {
    struct rpma_conn_private_data data = {NULL, 0};
    end->peers.size = 0;
    const bool taken = CALL(rpma_ep_next_conn_req, end->ep, end->cfg, &end->req) &&
                       CALL(rpma_conn_req_get_private_data, end->req, &data);
    keep_greeting(&end->peers, data.ptr, data.len);
    return taken;
}

static inline bool end_call(End* end, const char* host, const char* port) {
    end->peers.size = 0;
    return CALL(rpma_conn_req_new, end->peer, host, port, end->cfg, &end->req);
}

static inline bool end_connect(End* end, const void* data, size_t size) {
    const struct rpma_conn_private_data greeting = {(void*)(uintptr_t)data, (uint8_t)size};
    return CALL(rpma_conn_req_connect, &end->req, size > 0 ? &greeting : NULL, &end->conn);
}

/* The queues and private data of a new connection. */
static inline const char* end_established(End* end) {
    struct rpma_conn_private_data data = {NULL, 0};
    const bool known = CALL(rpma_conn_get_cq, end->conn, &end->sends) &&
                       CALL(rpma_conn_get_rcq, end->conn, &end->receives) &&
                       CALL(rpma_conn_get_private_data, end->conn, &data);
    if (end->receives == NULL) end->receives = end->sends;
    keep_greeting(&end->peers, data.ptr, data.len);
    return known ? "established" : NULL;
}

static inline const char* end_event(End* end) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    if (!CALL(rpma_conn_next_event, end->conn, &event)) return NULL;
    switch (event) {
        case RPMA_CONN_ESTABLISHED: return end_established(end);
        case RPMA_CONN_CLOSED: return "closed";
        case RPMA_CONN_LOST: return "lost";
        case RPMA_CONN_REJECTED: end->hung_up = true; return "rejected";
        case RPMA_CONN_UNREACHABLE: return "unreachable";
        default: return "undefined";
    }
}

static inline void end_describe(End* end, Key* key) {
    uint8_t descriptor[end_descriptor_bytes] = {0};
    size_t size = 0;
    CALL(rpma_mr_get_descriptor_size, end->region, &size);
    if (size != sizeof descriptor) fail("rpma_mr_get_descriptor_size", "another size");
    CALL(rpma_mr_get_descriptor, end->region, descriptor);
    memcpy(&key->address, descriptor + end_address_at, sizeof key->address);
    memcpy(&key->size, descriptor + end_size_at, sizeof key->size);
    memcpy(&key->key, descriptor + end_key_at, sizeof key->key);
    key->usage = descriptor[end_usage_at];
}

static inline void end_learn(End* end, const Key* key) {
    const uint64_t size = key->size != 0 ? key->size : UINT32_MAX; /* the peer checks whether it stays within */
    const uint32_t usage = key->usage != 0 ? key->usage : RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST;
    uint8_t descriptor[end_descriptor_bytes] = {[end_usage_at] = (uint8_t)usage};
    memcpy(descriptor + end_address_at, &key->address, sizeof key->address);
    memcpy(descriptor + end_size_at, &size, sizeof size);
    memcpy(descriptor + end_key_at, &key->key, sizeof key->key);
    CALL(rpma_mr_remote_from_descriptor, descriptor, sizeof descriptor, &end->there);
}

static inline const char* end_hang_up(End* end, bool first) {
    if (first) CALL(rpma_conn_disconnect, end->conn);
    const char* const event = end_event(end);
    if (!first) CALL(rpma_conn_disconnect, end->conn);
    end->hung_up = true;
    return event;
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

static inline const void* end_context(uint64_t context) { return (const void*)(uintptr_t)context; }

static inline bool end_post_receive(End* end, size_t at, size_t size, uint64_t context) {
    return CALL(rpma_recv, end->conn, end->region, at, size, end_context(context));
}

static inline bool end_early_receive(End* end, size_t at, size_t size, uint64_t context) {
    return CALL(rpma_conn_req_recv, end->req, end->region, at, size, end_context(context));
}

static inline bool end_post_send(End* end, size_t at, size_t size, uint64_t context) {
    return CALL(rpma_send, end->conn, end->region, at, size, RPMA_F_COMPLETION_ALWAYS, end_context(context));
}

static inline bool end_post_write(End* end, size_t from, size_t to, size_t size, uint64_t context) {
    return CALL(rpma_write, end->conn, end->there, to, end->region, from, size, RPMA_F_COMPLETION_ALWAYS,
                end_context(context));
}

static inline bool end_post_read(End* end, size_t to, size_t from, size_t size, uint64_t context) {
    return CALL(rpma_read, end->conn, end->region, to, end->there, from, size, RPMA_F_COMPLETION_ALWAYS,
                end_context(context));
}

/* ---- Completions ------------------------------------------------------------------------------------------------- */

static inline bool end_await(End* end, struct rpma_cq* queue, Done* done) {
    int result = 0;
    *done = (Done){0};
    while ((result = rpma_cq_get_wc(queue, 1, &end->wc, NULL)) == RPMA_E_NO_COMPLETION)
        if (!CALL(rpma_cq_wait, queue)) return false;
    *done = (Done){end->wc.status == IBV_WC_SUCCESS, end->wc.wr_id, end->wc.byte_len};
    return end_check("rpma_cq_get_wc", result);
}

static inline bool end_await_send(End* end, Done* done) { return end_await(end, end->sends, done); }
static inline bool end_await_receive(End* end, Done* done) { return end_await(end, end->receives, done); }

static inline bool end_poll(struct rpma_cq* queue) {
    struct ibv_wc taken;
    const int result = rpma_cq_get_wc(queue, 1, &taken, NULL);
    if (result == RPMA_E_NO_COMPLETION) return false;
    end_check("rpma_cq_get_wc", result);
    if (taken.status != IBV_WC_SUCCESS) fail("rpma_cq_get_wc", "a failed completion");
    return true;
}

static inline bool end_poll_send(End* end) { return end_poll(end->sends); }
static inline bool end_poll_receive(End* end) { return end_poll(end->receives); }

#endif
