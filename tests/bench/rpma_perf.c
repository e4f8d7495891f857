/* SPDX-License-Identifier: BSD-3-Clause */
/* The librpma part of rpma_perf; see library_perf.c. */
#include <librpma.h>
#include <stdio.h>

#include "tests/bench/library_perf.h"

enum { descriptor_size = 21 };

static struct {
    struct rpma_peer* peer;
    struct rpma_ep* endpoint; /* of the server */
    struct rpma_conn* connection;
    struct rpma_cq* completions;
    struct rpma_mr_local *outgoing_memory, *incoming_memory;
    struct rpma_mr_remote* remote_memory;
} self;

static void check(const char* call, int result) {
    if (result != 0) fail(call, rpma_err_2str(result));
}

/* ---- Connecting ------------------------------------------------------------------------------------------------- */

static void open_peer(const char* address) {
    struct ibv_context* context = NULL;
    check("rpma_utils_get_ibv_context", rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    check("rpma_peer_new", rpma_peer_new(context, &self.peer));
    check("rpma_mr_reg", rpma_mr_reg(self.peer, outgoing, max_size, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_WRITE_SRC,
                                     &self.outgoing_memory));
    check("rpma_mr_reg", rpma_mr_reg(self.peer, incoming, max_size, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_WRITE_DST,
                                     &self.incoming_memory));
}

static struct rpma_conn_req* request(const char* port, const char* local, const char* server) {
    struct rpma_conn_cfg* configuration = NULL;
    struct rpma_conn_req* made = NULL;
    check("rpma_conn_cfg_new", rpma_conn_cfg_new(&configuration));
    check("rpma_conn_cfg_set_sq_size", rpma_conn_cfg_set_sq_size(configuration, queue_size));
    check("rpma_conn_cfg_set_rq_size", rpma_conn_cfg_set_rq_size(configuration, queue_size));
    check("rpma_conn_cfg_set_cq_size", rpma_conn_cfg_set_cq_size(configuration, 2 * queue_size));
    if (leads) {
        check("rpma_conn_req_new", rpma_conn_req_new(self.peer, server, port, configuration, &made));
    } else {
        check("rpma_ep_listen", rpma_ep_listen(self.peer, local, port, &self.endpoint));
        puts("listening");
        check("rpma_ep_next_conn_req", rpma_ep_next_conn_req(self.endpoint, configuration, &made));
    }
    check("rpma_conn_cfg_delete", rpma_conn_cfg_delete(&configuration));
    return made;
}

/* The private data describe the memory for the peer's writes. */
void open_connection(const char* port, const char* local, const char* server) {
    open_peer(local);
    struct rpma_conn_req* made = request(port, local, server);
    unsigned char descriptor[descriptor_size];
    struct rpma_conn_private_data data = {.ptr = descriptor, .len = descriptor_size};
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    for (int i = 0; i < window; ++i)
        check("rpma_conn_req_recv", rpma_conn_req_recv(made, self.incoming_memory, 0, max_size, self.incoming_memory));
    check("rpma_mr_get_descriptor", rpma_mr_get_descriptor(self.incoming_memory, descriptor));
    check("rpma_conn_req_connect", rpma_conn_req_connect(&made, &data, &self.connection));
    check("rpma_conn_next_event", rpma_conn_next_event(self.connection, &event));
    if (event != RPMA_CONN_ESTABLISHED) fail("connecting", rpma_utils_conn_event_2str(event));
    check("rpma_conn_get_private_data", rpma_conn_get_private_data(self.connection, &data));
    check("rpma_mr_remote_from_descriptor",
          rpma_mr_remote_from_descriptor(data.ptr, descriptor_size, &self.remote_memory));
    check("rpma_conn_get_cq", rpma_conn_get_cq(self.connection, &self.completions));
}

void close_connection(void) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    if (leads) check("rpma_conn_disconnect", rpma_conn_disconnect(self.connection));
    check("rpma_conn_next_event", rpma_conn_next_event(self.connection, &event));
    if (!leads) check("rpma_conn_disconnect", rpma_conn_disconnect(self.connection));
    check("rpma_mr_remote_delete", rpma_mr_remote_delete(&self.remote_memory));
    check("rpma_conn_delete", rpma_conn_delete(&self.connection));
    check("rpma_ep_shutdown", rpma_ep_shutdown(&self.endpoint));
    check("rpma_mr_dereg", rpma_mr_dereg(&self.outgoing_memory));
    check("rpma_mr_dereg", rpma_mr_dereg(&self.incoming_memory));
    check("rpma_peer_delete", rpma_peer_delete(&self.peer));
}

/* ---- Operations ------------------------------------------------------------------------------------------------- */

void send_one(size_t size) {
    check("rpma_send",
          rpma_send(self.connection, self.outgoing_memory, offset(size), size, RPMA_F_COMPLETION_ALWAYS, NULL));
}

void write_one(size_t size) {
    check("rpma_write", rpma_write(self.connection, self.remote_memory, offset(size), self.outgoing_memory,
                                   offset(size), size, RPMA_F_COMPLETION_ALWAYS, NULL));
}

void take_completions(void) {
    struct ibv_wc taken[window];
    int count = 0;
    const int result = rpma_cq_get_wc(self.completions, window, taken, &count);
    if (result == RPMA_E_NO_COMPLETION) return;
    check("rpma_cq_get_wc", result);
    for (int i = 0; i < count; ++i) {
        if (taken[i].status != IBV_WC_SUCCESS) fail("rpma_cq_get_wc", "a failed completion");
        if (taken[i].opcode == IBV_WC_RECV) {
            ++received;
            check("rpma_recv", rpma_recv(self.connection, self.incoming_memory, 0, max_size, self.incoming_memory));
        } else {
            ++sent;
        }
    }
}
