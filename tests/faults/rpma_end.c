/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a librpma connection.
 */
#include <librpma.h>
#include <stdio.h>

#include "end.h"

static char memory[memory_size];
static struct rpma_peer* peer;
static struct rpma_mr_local* region;
static struct rpma_ep* endpoint;
static struct rpma_conn_cfg* configuration;
static struct rpma_conn_req* request;
static struct rpma_conn* connection;
static int outstanding;

/* The first failure during a command, which becomes its answer. */
static const char* problem;

static bool check(int result) {
    if (result != 0 && problem == NULL) problem = rpma_err_2str(result);
    return result == 0;
}

static const char* answer(const char* text) {
    const char* const said = problem != NULL ? problem : text;
    problem = NULL;
    return said;
}

static const char* address_of(int host) {
    static char text[16];
    snprintf(text, sizeof text, "10.0.0.%d", host);
    return text;
}

const char* open_all(void) {
    struct ibv_context* context = NULL;
    const int usage = RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;
    if (check(rpma_utils_get_ibv_context(address_of(own_host), RPMA_UTIL_IBV_CONTEXT_LOCAL, &context)) &&
        check(rpma_peer_new(context, &peer)) && check(rpma_mr_reg(peer, memory, sizeof memory, usage, &region)) &&
        check(rpma_conn_cfg_new(&configuration)))
        check(rpma_conn_cfg_set_timeout(configuration, connect_timeout_ms));
    if (problem == NULL && server_host == 0) check(rpma_ep_listen(peer, address_of(own_host), "7400", &endpoint));
    return answer("ok");
}

const char* take_request(void) {
    check(rpma_ep_next_conn_req(endpoint, configuration, &request));
    return answer("ok");
}

const char* next_event(void) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    check(rpma_conn_next_event(connection, &event));
    switch (event) {
        case RPMA_CONN_ESTABLISHED: return answer("established");
        case RPMA_CONN_CLOSED: return answer("closed");
        case RPMA_CONN_LOST: return answer("lost");
        case RPMA_CONN_REJECTED: return answer("rejected");
        case RPMA_CONN_UNREACHABLE: return answer("unreachable");
        default: return answer("undefined");
    }
}

const char* connect_ends(void) {
    if (server_host != 0 && !check(rpma_conn_req_new(peer, address_of(server_host), "7400", configuration, &request)))
        return answer(NULL);
    return check(rpma_conn_req_connect(&request, NULL, &connection)) ? next_event() : answer(NULL);
}

const char* post_receive(void) {
    if (check(rpma_recv(connection, region, 0, sizeof memory, NULL))) ++outstanding;
    return answer("ok");
}

const char* post_send(void) {
    if (check(rpma_send(connection, region, 0, message_size, RPMA_F_COMPLETION_ALWAYS, NULL))) ++outstanding;
    return answer("ok");
}

const char* finish(void) {
    struct rpma_cq* queue = NULL;
    struct ibv_wc completion;
    bool succeeded = false;
    check(rpma_conn_get_cq(connection, &queue));
    while (problem == NULL && outstanding > 0) {
        const int result = rpma_cq_get_wc(queue, 1, &completion, NULL);
        if (result == RPMA_E_NO_COMPLETION) {
            check(rpma_cq_wait(queue));
        } else if (check(result)) {
            --outstanding;
            succeeded = succeeded || completion.status == IBV_WC_SUCCESS;
        }
    }
    return answer(succeeded ? "done" : "failed");
}

const char* close_all(void) {
    if (connection != NULL) {
        rpma_conn_disconnect(connection); /* returns an error if it is not connected */
        check(rpma_conn_delete(&connection));
    }
    if (request != NULL) check(rpma_conn_req_delete(&request));
    if (endpoint != NULL) check(rpma_ep_shutdown(&endpoint));
    check(rpma_conn_cfg_delete(&configuration));
    check(rpma_mr_dereg(&region));
    check(rpma_peer_delete(&peer));
    outstanding = 0;
    return answer("ok");
}
