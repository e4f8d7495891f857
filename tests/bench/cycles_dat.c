/* SPDX-License-Identifier: BSD-3-Clause */
/* DAT for cycles.c: 2.0, and 1.2 with DAT_END_DAT1. */
#include <netinet/in.h>
#include <unistd.h>

#include "tests/bench/cycles.h"
#include "tests/support/ends/dat_calls.h"

#ifdef DAT_END_DAT1
#define TARGET target_address
#else
#define TARGET virtual_address
#endif

enum { first_qualifier = 22000, qualifiers = 40000 };

static struct End {
    DAT_IA_HANDLE adapter;
    DAT_PZ_HANDLE zone;
    DAT_EVD_HANDLE sends, receives, connections;
    DAT_EP_HANDLE endpoint;
    DAT_LMR_CONTEXT context;
    DAT_RMR_CONTEXT context_for_peer;
} ends[end_count];

static void check(const char* call, DAT_RETURN result) {
    const char *type = "an unknown error", *subtype = "";
    if (result == DAT_SUCCESS) return;
    dat_strerror(result, &type, &subtype);
    fail(call, type);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static DAT_EVD_HANDLE create_queue(const struct End* end, DAT_EVD_FLAGS events) {
    DAT_EVD_HANDLE queue = DAT_HANDLE_NULL;
    check("dat_evd_create", dat_evd_create(end->adapter, queue_size, DAT_HANDLE_NULL, events, &queue));
    return queue;
}

static void register_memory(struct End* end, struct Memory* area) {
    DAT_LMR_HANDLE handle = DAT_HANDLE_NULL;
    check("dat_lmr_create", register_virtual(end->adapter, end->zone, area, sizeof *area, DAT_MEM_PRIV_ALL_FLAG,
                                             &handle, &end->context, &end->context_for_peer));
}

static void open_end(struct End* end, struct Memory* area, char* adapter) {
    DAT_EVD_HANDLE errors = DAT_HANDLE_NULL;
    const DAT_EP_ATTR attributes = attributes_for(max_size, queue_size, 1, 1);
    check("dat_ia_open", dat_ia_open(adapter, queue_size, &errors, &end->adapter));
    check("dat_pz_create", dat_pz_create(end->adapter, &end->zone));
    register_memory(end, area);
    end->sends = create_queue(end, DAT_EVD_DTO_FLAG);
    end->receives = create_queue(end, DAT_EVD_DTO_FLAG);
    end->connections = create_queue(end, DAT_EVD_CONNECTION_FLAG);
    check("dat_ep_create", dat_ep_create(end->adapter, end->zone, end->receives, end->sends, end->connections,
                                         &attributes, &end->endpoint));
}

static struct sockaddr_in address_of(const struct End* end) {
    DAT_EVD_HANDLE errors = DAT_HANDLE_NULL;
    DAT_IA_ATTR attributes;
    check("dat_ia_query", dat_ia_query(end->adapter, &errors, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, 0, NULL));
    return *(const struct sockaddr_in*)(const void*)attributes.ia_address_ptr;
}

static DAT_EVENT next_event(DAT_EVD_HANDLE queue, DAT_EVENT_NUMBER expected) {
    DAT_EVENT event;
    DAT_COUNT more = 0;
    check("dat_evd_wait", dat_evd_wait(queue, DAT_TIMEOUT_INFINITE, 1, &event, &more));
    if (event.event_number != expected) fail("dat_evd_wait", "an unexpected event");
    return event;
}

void open_ends(char* const names[end_count]) {
    const DAT_CONN_QUAL qualifier = first_qualifier + (DAT_CONN_QUAL)(getpid() % qualifiers);
    DAT_PSP_HANDLE service_point = DAT_HANDLE_NULL;
    for (int end = 0; end < end_count; ++end) {
        open_end(&ends[end], &memory[end], names[end]);
        for (int i = 0; i < receives_ahead; ++i) post_receive(end);
    }
    struct sockaddr_in address = address_of(&ends[1]);
    const DAT_EVD_HANDLE requests = create_queue(&ends[1], DAT_EVD_CR_FLAG);
    check("dat_psp_create",
          dat_psp_create(ends[1].adapter, qualifier, requests, DAT_PSP_CONSUMER_FLAG, &service_point));
    check("dat_ep_connect",
          dat_ep_connect(ends[0].endpoint, (DAT_IA_ADDRESS_PTR)&address, qualifier, DAT_TIMEOUT_INFINITE, 0, NULL,
                         DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
    const DAT_EVENT event = next_event(requests, DAT_CONNECTION_REQUEST_EVENT);
    check("dat_cr_accept", dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ends[1].endpoint, 0, NULL));
    for (int end = 0; end < end_count; ++end) next_event(ends[end].connections, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void close_ends(void) {
    check("dat_ep_disconnect", dat_ep_disconnect(ends[0].endpoint, DAT_CLOSE_GRACEFUL_FLAG));
    for (int end = 0; end < end_count; ++end) {
        next_event(ends[end].connections, DAT_CONNECTION_EVENT_DISCONNECTED);
        check("dat_ia_close", dat_ia_close(ends[end].adapter, DAT_CLOSE_ABRUPT_FLAG));
    }
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static const DAT_DTO_COOKIE cookie = {.as_64 = 0};

static DAT_LMR_TRIPLET piece(int end, const void* start, size_t size) {
    return (DAT_LMR_TRIPLET){.virtual_address = (DAT_VADDR)(uintptr_t)start,
                             .segment_length = (DAT_UINT32)size,
                             .lmr_context = ends[end].context};
}

static DAT_RMR_TRIPLET target(int end, const void* start, size_t size) {
    return (DAT_RMR_TRIPLET){.TARGET = (DAT_VADDR)(uintptr_t)start,
                             .segment_length = (DAT_UINT32)size,
                             .rmr_context = ends[end].context_for_peer};
}

void post_receive(int end) {
    DAT_LMR_TRIPLET local = piece(end, memory[end].incoming, max_size);
    check("dat_ep_post_recv", dat_ep_post_recv(ends[end].endpoint, 1, &local, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

void post_send(int end, size_t size) {
    DAT_LMR_TRIPLET local = piece(end, memory[end].outgoing, size);
    check("dat_ep_post_send", dat_ep_post_send(ends[end].endpoint, 1, &local, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

void post_write(int end, size_t size) {
    DAT_LMR_TRIPLET local = piece(end, memory[end].outgoing, size);
    const DAT_RMR_TRIPLET remote = target(1 - end, memory[1 - end].incoming, size);
    check("dat_ep_post_rdma_write",
          dat_ep_post_rdma_write(ends[end].endpoint, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
}

void post_read(int end, size_t size) {
    DAT_LMR_TRIPLET local = piece(end, memory[end].incoming, size);
    const DAT_RMR_TRIPLET remote = target(1 - end, memory[1 - end].outgoing, size);
    check("dat_ep_post_rdma_read",
          dat_ep_post_rdma_read(ends[end].endpoint, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
}

static inline void take(DAT_EVD_HANDLE queue, unsigned* counter) {
    DAT_EVENT event;
    const DAT_RETURN result = dat_evd_dequeue(queue, &event);
    if (DAT_GET_TYPE(result) == DAT_QUEUE_EMPTY) return;
    check("dat_evd_dequeue", result);
    if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
        fail("dat_evd_dequeue", "a failed completion");
    ++*counter;
}

void poll_sends(int end) { take(ends[end].sends, &sent[end]); }

void poll_receives(int end) { take(ends[end].receives, &received[end]); }
