/* SPDX-License-Identifier: BSD-3-Clause
 * An end for DAT 2.0 or, with DAT_END_DAT1, DAT 1.2: see ends.h.
 */
#ifndef TESTS_SUPPORT_ENDS_DAT_END_H
#define TESTS_SUPPORT_ENDS_DAT_END_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "../dat_calls.h"
#include "../ends.h"

#ifdef DAT_END_DAT1
#define END_TARGET target_address
#else
#define END_TARGET virtual_address
#endif

#define END_OPENS_ADDRESSES false
#define END_CONFIRMS_SENDS true

enum { end_segments = 2, end_reads = 4 };

typedef struct {
    Setup setup;
    DAT_IA_HANDLE ia;
    DAT_PZ_HANDLE pz;
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT context;
    Key own, there;
    DAT_CNO_HANDLE watcher; /* for errors and requests */
    DAT_EVD_HANDLE errors, requests, connections, sends, receives;
    DAT_EP_HANDLE ep;
    DAT_PSP_HANDLE psp;
    DAT_CR_HANDLE cr;
    struct sockaddr_in server;
    DAT_CONN_QUAL qualifier;
    DAT_EVENT event; /* the last one */
    Greeting peers;
} End;

static inline bool end_check(const char* call, DAT_RETURN result) {
    const char *type = "an unknown error", *subtype = "";
    if (result == DAT_SUCCESS) return true;
    dat_strerror(result, &type, &subtype);
    fail(call, type);
    return false;
}

/* ---- Waiting for a client ---------------------------------------------------------------------------------------- */

#ifdef END_WATCHES /* if a program defines it, end_take() fails when the adapter does, too */
static inline bool end_watch(End* end) {
    return CALL(dat_cno_create, end->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &end->watcher) &&
           CALL(dat_evd_modify_cno, end->errors, end->watcher) && CALL(dat_evd_modify_cno, end->requests, end->watcher);
}

static inline void end_unwatch(End* end) {
    CALL(dat_evd_modify_cno, end->errors, DAT_HANDLE_NULL);
    CALL(dat_cno_free, end->watcher);
}

static inline bool end_await_request(End* end) {
    DAT_EVD_HANDLE told = DAT_HANDLE_NULL;
    DAT_EVENT error;
    while (CALL(dat_cno_wait, end->watcher, DAT_TIMEOUT_INFINITE, &told)) {
        if (dat_evd_dequeue(end->errors, &error) == DAT_SUCCESS) break;
        if (dat_evd_dequeue(end->requests, &end->event) == DAT_SUCCESS) return true;
    }
    fail("dat_cno_wait", "catastrophe");
    return false;
}
#else
static inline bool end_watch(End* end) { return end->ia != DAT_HANDLE_NULL; }
static inline void end_unwatch(End* end) { (void)end; }
static inline bool end_await_request(End* end) {
    return CALL(await_event, end->requests, DAT_TIMEOUT_INFINITE, &end->event);
}
#endif

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

static inline bool end_create_queue(End* end, DAT_COUNT length, int events, DAT_EVD_HANDLE* evd) {
    return CALL(dat_evd_create, end->ia, length, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)events, evd);
}

static inline bool end_open(End* end, const Setup* setup) {
    const int rights =
        setup->for_peers ? DAT_MEM_PRIV_ALL_FLAG : DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
    const DAT_COUNT sends = setup->one_queue ? 2 * setup->depth : setup->depth;
    *end = (End){.setup = *setup, .own.address = (uintptr_t)setup->memory};
    return CALL(dat_ia_open, (DAT_NAME_PTR)(uintptr_t)setup->at, setup->depth, &end->errors, &end->ia) &&
           CALL(dat_pz_create, end->ia, &end->pz) &&
           CALL(register_virtual, end->ia, end->pz, setup->memory, setup->bytes,
                (DAT_MEM_PRIV_FLAGS)(rights | setup->rights), &end->lmr, &end->context, &end->own.key) &&
           end_create_queue(end, setup->depth, DAT_EVD_CR_FLAG, &end->requests) &&
           end_create_queue(end, setup->depth, DAT_EVD_CONNECTION_FLAG, &end->connections) &&
           end_create_queue(end, sends, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &end->sends) && end_watch(end);
}

static inline bool end_prepare(End* end) {
    const DAT_EP_ATTR attributes = attributes_for(end->setup.bytes, end->setup.depth, end_segments, end_reads);
    end->receives = end->sends;
    return (end->setup.one_queue || end_create_queue(end, end->setup.depth, DAT_EVD_DTO_FLAG, &end->receives)) &&
           CALL(dat_ep_create, end->ia, end->pz, end->receives, end->sends, end->connections, &attributes, &end->ep);
}

/* Frees the dispatcher of receives, too. If a receive is flushed late, the stock library would access its endpoint when
 * the completion is taken, and crash. */
static inline void end_part(End* end) {
    if (end->ep == DAT_HANDLE_NULL) return;
    CALL(dat_ep_free, end->ep);
    if (!end->setup.one_queue) CALL(dat_evd_free, end->receives);
    end->ep = DAT_HANDLE_NULL;
}

static inline void end_close(End* end) {
    if (end->psp != DAT_HANDLE_NULL) CALL(dat_psp_free, end->psp);
    end_part(end);
    CALL(dat_evd_free, end->sends);
    CALL(dat_evd_free, end->connections);
    CALL(dat_evd_free, end->requests);
    end_unwatch(end);
    CALL(dat_lmr_free, end->lmr);
    CALL(dat_pz_free, end->pz);
    const bool was_empty = CALL(dat_ia_close, end->ia, DAT_CLOSE_GRACEFUL_FLAG);
    if (!was_empty) dat_ia_close(end->ia, DAT_CLOSE_ABRUPT_FLAG); /* with what failed calls have left */
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

/* The address of the adapter, as a string. */
static inline const char* end_host(End* end) {
    DAT_EVD_HANDLE errors = DAT_HANDLE_NULL;
    DAT_IA_ATTR attributes;
    if (!CALL(dat_ia_query, end->ia, &errors, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, 0, NULL)) return NULL;
    return inet_ntoa(((const struct sockaddr_in*)(const void*)attributes.ia_address_ptr)->sin_addr);
}

static inline bool end_listen(End* end, const char* host, const char* port) {
    (void)host;
    end->qualifier = strtoul(port, NULL, 10);
    return CALL(dat_psp_create, end->ia, end->qualifier, end->requests, DAT_PSP_CONSUMER_FLAG, &end->psp);
}

static inline bool end_take(End* end) {
    const DAT_CR_ARRIVAL_EVENT_DATA* arrival = &end->event.event_data.cr_arrival_event_data;
    DAT_CR_PARAM param;
    if (!end_await_request(end)) return false;
    if (end->event.event_number != DAT_CONNECTION_REQUEST_EVENT || arrival->sp_handle.psp_handle != end->psp ||
        arrival->conn_qual != end->qualifier)
        fail("dat_evd_wait", "an unexpected event");
    end->cr = arrival->cr_handle;
    end->peers.size = 0;
    if (!CALL(dat_cr_query, end->cr, DAT_CR_FIELD_ALL, &param)) return false;
    keep_greeting(&end->peers, param.private_data, (size_t)param.private_data_size);
    return true;
}

static inline bool end_call(End* end, const char* host, const char* port) {
    end->peers.size = 0;
    end->server = (struct sockaddr_in){.sin_family = AF_INET};
    end->qualifier = strtoul(port, NULL, 10);
    const bool known = inet_pton(AF_INET, host, &end->server.sin_addr) == 1;
    if (!known) fail(host, "not an address");
    return known;
}

static inline bool end_connect(End* end, const void* data, size_t size) {
    const DAT_CR_HANDLE cr = end->cr;
    const DAT_PVOID greeting = (DAT_PVOID)(uintptr_t)data;
    const DAT_TIMEOUT timeout = end->setup.timeout_ms != 0 ? 1000 * end->setup.timeout_ms : DAT_TIMEOUT_INFINITE;
    end->cr = DAT_HANDLE_NULL;
    return cr != DAT_HANDLE_NULL
               ? CALL(dat_cr_accept, cr, end->ep, (DAT_COUNT)size, greeting)
               : CALL(dat_ep_connect, end->ep, (DAT_IA_ADDRESS_PTR)&end->server, end->qualifier, timeout,
                      (DAT_COUNT)size, greeting, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static inline const char* end_event(End* end) {
    const DAT_CONNECTION_EVENT_DATA* data = &end->event.event_data.connect_event_data;
    if (!CALL(await_event, end->connections, DAT_TIMEOUT_INFINITE, &end->event)) return NULL;
    if (data->ep_handle != end->ep) fail("dat_evd_wait", "an event of another endpoint");
    keep_greeting(&end->peers, data->private_data, (size_t)data->private_data_size);
    switch (end->event.event_number) {
        case DAT_CONNECTION_EVENT_ESTABLISHED: return "established";
        case DAT_CONNECTION_EVENT_DISCONNECTED: return "closed";
        case DAT_CONNECTION_EVENT_BROKEN: return "lost";
        case DAT_CONNECTION_EVENT_PEER_REJECTED: return "rejected";
        case DAT_CONNECTION_EVENT_NON_PEER_REJECTED: return "no match";
        case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR: return "not accepted";
        case DAT_CONNECTION_EVENT_TIMED_OUT: return "timeout";
        case DAT_CONNECTION_EVENT_UNREACHABLE: return "unreachable";
        default: return "another event";
    }
}

static inline void end_describe(End* end, Key* key) { *key = end->own; }
static inline void end_learn(End* end, const Key* key) { end->there = *key; }

/* Servers disconnect abruptly. */
static inline const char* end_hang_up(End* end, bool first) {
    if (first)
        CALL(dat_ep_disconnect, end->ep, end->psp != DAT_HANDLE_NULL ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG);
    return end_event(end);
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

static inline DAT_LMR_TRIPLET end_piece(const End* end, size_t at, size_t size) {
    return (DAT_LMR_TRIPLET){
        .virtual_address = end->own.address + at, .segment_length = (DAT_UINT32)size, .lmr_context = end->context};
}

static inline DAT_RMR_TRIPLET end_piece_there(const End* end, size_t at, size_t size) {
    return (DAT_RMR_TRIPLET){
        .END_TARGET = end->there.address + at, .segment_length = (DAT_UINT32)size, .rmr_context = end->there.key};
}

static inline DAT_DTO_COOKIE end_cookie(uint64_t context) { return (DAT_DTO_COOKIE){.as_64 = context}; }

static inline bool end_post_receive(End* end, size_t at, size_t size, uint64_t context) {
    DAT_LMR_TRIPLET local = end_piece(end, at, size);
    return CALL(dat_ep_post_recv, end->ep, 1, &local, end_cookie(context), DAT_COMPLETION_DEFAULT_FLAG);
}

#define end_early_receive end_post_receive

static inline bool end_post_send(End* end, size_t at, size_t size, uint64_t context) {
    DAT_LMR_TRIPLET local = end_piece(end, at, size);
    return CALL(dat_ep_post_send, end->ep, 1, &local, end_cookie(context), DAT_COMPLETION_DEFAULT_FLAG);
}

static inline bool end_post_write(End* end, size_t from, size_t to, size_t size, uint64_t context) {
    DAT_LMR_TRIPLET local = end_piece(end, from, size);
    const DAT_RMR_TRIPLET there = end_piece_there(end, to, size);
    return CALL(dat_ep_post_rdma_write, end->ep, 1, &local, end_cookie(context), &there, DAT_COMPLETION_DEFAULT_FLAG);
}

static inline bool end_post_read(End* end, size_t to, size_t from, size_t size, uint64_t context) {
    DAT_LMR_TRIPLET local = end_piece(end, to, size);
    const DAT_RMR_TRIPLET there = end_piece_there(end, from, size);
    return CALL(dat_ep_post_rdma_read, end->ep, 1, &local, end_cookie(context), &there, DAT_COMPLETION_DEFAULT_FLAG);
}

/* ---- Completions ------------------------------------------------------------------------------------------------- */

static inline bool end_await(End* end, DAT_EVD_HANDLE queue, int expected, Done* done) {
    const DAT_DTO_COMPLETION_EVENT_DATA* data = &end->event.event_data.dto_completion_event_data;
    *done = (Done){0};
    if (!CALL(await_event, queue, DAT_TIMEOUT_INFINITE, &end->event)) return false;
    if ((int)end->event.event_number != expected || data->ep_handle != end->ep)
        fail("dat_evd_wait", "an unexpected event");
    *done = (Done){data->status == DAT_DTO_SUCCESS, data->user_cookie.as_64, data->transfered_length};
    return true;
}

static inline bool end_await_send(End* end, Done* done) {
    return end_await(end, end->sends, DAT_DTO_COMPLETION_EVENT, done);
}

static inline bool end_await_receive(End* end, Done* done) {
    return end_await(end, end->receives, DAT_DTO_COMPLETION_EVENT, done);
}

static inline bool end_poll(DAT_EVD_HANDLE queue, DAT_EVENT* event) {
    const DAT_RETURN result = dat_evd_dequeue(queue, event);
    if (DAT_GET_TYPE(result) == DAT_QUEUE_EMPTY) return false;
    end_check("dat_evd_dequeue", result);
    if (event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
        fail("dat_evd_dequeue", "a failed completion");
    return true;
}

static inline bool end_poll_send(End* end) {
    DAT_EVENT event;
    return end_poll(end->sends, &event);
}

static inline bool end_poll_receive(End* end) {
    DAT_EVENT event;
    return end_poll(end->receives, &event);
}

#endif
