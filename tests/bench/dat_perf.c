/* SPDX-License-Identifier: BSD-3-Clause */
/* The DAT 2.0 part of dat_perf; see library_perf.c. */
#include <arpa/inet.h>
#include <dat2/udat.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/library_perf.h"
#include "tests/support/ends/dat_calls.h"

enum { is_receive = 1 }; /* the cookie of receives; other requests have 0 */

/* The private data, in which each end describes its incoming memory. */
struct Greeting {
    uint64_t address;
    uint32_t context;
};

static struct {
    DAT_IA_HANDLE adapter;
    DAT_PZ_HANDLE zone;
    DAT_EVD_HANDLE completions, connections, requests;
    DAT_EP_HANDLE endpoint;
    DAT_LMR_CONTEXT outgoing_context, incoming_context;
    DAT_RMR_CONTEXT context_for_peer;
    struct Greeting remote;
} self;

static void check(const char* call, DAT_RETURN result) {
    const char *type = "an unknown error", *subtype = "";
    if (result == DAT_SUCCESS) return;
    dat_strerror(result, &type, &subtype);
    fail(call, type);
}

/* ---- Connecting ------------------------------------------------------------------------------------------------- */

static void register_memory(unsigned char* memory, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_CONTEXT* context,
                            DAT_RMR_CONTEXT* context_for_peer) {
    DAT_LMR_HANDLE handle = DAT_HANDLE_NULL;
    check("dat_lmr_create",
          register_virtual(self.adapter, self.zone, memory, max_size, privileges, &handle, context, context_for_peer));
}

static DAT_EVD_HANDLE create_queue(DAT_EVD_FLAGS events, DAT_COUNT length) {
    DAT_EVD_HANDLE queue = DAT_HANDLE_NULL;
    check("dat_evd_create", dat_evd_create(self.adapter, length, DAT_HANDLE_NULL, events, &queue));
    return queue;
}

static void create_endpoint(void) {
    DAT_EP_ATTR attributes = attributes_for(max_size, queue_size, 1, 0);
    self.completions = create_queue(DAT_EVD_DTO_FLAG, 2 * queue_size);
    self.connections = create_queue(DAT_EVD_CONNECTION_FLAG, 4);
    check("dat_ep_create", dat_ep_create(self.adapter, self.zone, self.completions, self.completions, self.connections,
                                         &attributes, &self.endpoint));
}

static void open_adapter(const char* name) {
    DAT_EVD_HANDLE errors = DAT_HANDLE_NULL;
    DAT_RMR_CONTEXT unused = 0;
    check("dat_ia_open", dat_ia_open((char*)name, 8, &errors, &self.adapter));
    check("dat_pz_create", dat_pz_create(self.adapter, &self.zone));
    register_memory(outgoing, DAT_MEM_PRIV_LOCAL_READ_FLAG, &self.outgoing_context, &unused);
    register_memory(incoming, DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &self.incoming_context,
                    &self.context_for_peer);
    create_endpoint();
}

static void post_receive(void) {
    DAT_LMR_TRIPLET whole = {(uintptr_t)incoming, max_size, self.incoming_context};
    const DAT_DTO_COOKIE cookie = {.as_64 = is_receive};
    check("dat_ep_post_recv", dat_ep_post_recv(self.endpoint, 1, &whole, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static DAT_EVENT next_event(DAT_EVD_HANDLE queue, DAT_EVENT_NUMBER expected) {
    DAT_EVENT event;
    check("dat_evd_wait", await_event(queue, DAT_TIMEOUT_INFINITE, &event));
    if (event.event_number != expected) fail("dat_evd_wait", "an unexpected event");
    return event;
}

static void connect_to(const char* server, DAT_CONN_QUAL qualifier, struct Greeting* greeting) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, server, &address.sin_addr) != 1) fail(server, "not an address");
    check("dat_ep_connect", dat_ep_connect(self.endpoint, (DAT_IA_ADDRESS_PTR)&address, qualifier, DAT_TIMEOUT_INFINITE,
                                           sizeof *greeting, greeting, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
    const DAT_EVENT event = next_event(self.connections, DAT_CONNECTION_EVENT_ESTABLISHED);
    memcpy(&self.remote, event.event_data.connect_event_data.private_data, sizeof self.remote);
}

static void accept_one(DAT_CONN_QUAL qualifier, struct Greeting* greeting) {
    DAT_PSP_HANDLE service_point = DAT_HANDLE_NULL;
    DAT_CR_PARAM request;
    self.requests = create_queue(DAT_EVD_CR_FLAG, 4);
    check("dat_psp_create",
          dat_psp_create(self.adapter, qualifier, self.requests, DAT_PSP_CONSUMER_FLAG, &service_point));
    puts("listening");
    const DAT_EVENT event = next_event(self.requests, DAT_CONNECTION_REQUEST_EVENT);
    const DAT_CR_HANDLE handle = event.event_data.cr_arrival_event_data.cr_handle;
    check("dat_cr_query", dat_cr_query(handle, DAT_CR_FIELD_ALL, &request));
    memcpy(&self.remote, request.private_data, sizeof self.remote);
    check("dat_cr_accept", dat_cr_accept(handle, self.endpoint, sizeof *greeting, greeting));
    next_event(self.connections, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void open_connection(const char* port, const char* local, const char* server) {
    const DAT_CONN_QUAL qualifier = strtoul(port, NULL, 10);
    open_adapter(local);
    for (int i = 0; i < window; ++i) post_receive();
    struct Greeting greeting = {.address = (uintptr_t)incoming, .context = self.context_for_peer};
    if (server != NULL)
        connect_to(server, qualifier, &greeting);
    else
        accept_one(qualifier, &greeting);
}

void close_connection(void) {
    if (leads) check("dat_ep_disconnect", dat_ep_disconnect(self.endpoint, DAT_CLOSE_GRACEFUL_FLAG));
    next_event(self.connections, DAT_CONNECTION_EVENT_DISCONNECTED);
    check("dat_ia_close", dat_ia_close(self.adapter, DAT_CLOSE_ABRUPT_FLAG));
}

/* ---- Operations ------------------------------------------------------------------------------------------------- */

static DAT_LMR_TRIPLET message(size_t size) {
    return (DAT_LMR_TRIPLET){(uintptr_t)outgoing + offset(size), (DAT_SEG_LENGTH)size, self.outgoing_context};
}

static const DAT_DTO_COOKIE no_cookie = {.as_64 = 0};

void send_one(size_t size) {
    DAT_LMR_TRIPLET local = message(size);
    check("dat_ep_post_send", dat_ep_post_send(self.endpoint, 1, &local, no_cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

void write_one(size_t size) {
    DAT_LMR_TRIPLET local = message(size);
    const DAT_RMR_TRIPLET remote = {self.remote.address + offset(size), (DAT_SEG_LENGTH)size, self.remote.context};
    check("dat_ep_post_rdma_write",
          dat_ep_post_rdma_write(self.endpoint, 1, &local, no_cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
}

void take_completions(void) {
    DAT_EVENT event;
    for (int i = 0; i < window; ++i) {
        const DAT_RETURN result = dat_evd_dequeue(self.completions, &event);
        if (DAT_GET_TYPE(result) == DAT_QUEUE_EMPTY) return;
        check("dat_evd_dequeue", result);
        const DAT_DTO_COMPLETION_EVENT_DATA* completion = &event.event_data.dto_completion_event_data;
        if (completion->status != DAT_DTO_SUCCESS) fail("dat_evd_dequeue", "a failed completion");
        if (completion->user_cookie.as_64 == is_receive) {
            ++received;
            post_receive();
        } else {
            ++sent;
        }
    }
}
