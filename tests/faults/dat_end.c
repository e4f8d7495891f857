/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a DAT connection.
 */
#include <arpa/inet.h>
#include <dat2/udat.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>

#include "../support/ends/dat_calls.h"
#include "end.h"

enum { qualifier = 7400, queue_length = 8 };

static char memory[memory_size];
static DAT_IA_HANDLE adapter;
static DAT_PZ_HANDLE zone;
static DAT_LMR_HANDLE region;
static DAT_LMR_CONTEXT context;
static DAT_CNO_HANDLE notifier; /* for errors and requests */
static DAT_EVD_HANDLE errors, requests, connections, completions;
static DAT_EP_HANDLE endpoint;
static DAT_PSP_HANDLE service_point;
static DAT_CR_HANDLE request;
static int outstanding;

/* The first failure during a command, which becomes its answer. */
static DAT_RETURN problem;

static bool check(DAT_RETURN result) {
    if (problem == DAT_SUCCESS) problem = result;
    return result == DAT_SUCCESS;
}

static const char* answer(const char* text) {
    const char *type = text, *subtype = NULL;
    if (problem != DAT_SUCCESS) dat_strerror(problem, &type, &subtype);
    problem = DAT_SUCCESS;
    return type;
}

static bool create_queue(DAT_EVD_FLAGS streams, DAT_CNO_HANDLE told, DAT_EVD_HANDLE* queue) {
    return check(dat_evd_create(adapter, queue_length, told, streams, queue));
}

static bool register_memory(void) {
    const DAT_MEM_PRIV_FLAGS local = (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
    DAT_RMR_CONTEXT unused = 0;
    return check(register_virtual(adapter, zone, memory, sizeof memory, local, &region, &context, &unused));
}

const char* open_all(void) {
    char name[32];
    snprintf(name, sizeof name, "viaduct-veth%d", own_host);
    errors = DAT_HANDLE_NULL;
    if (check(dat_ia_open(name, queue_length, &errors, &adapter)) && check(dat_pz_create(adapter, &zone)) &&
        register_memory() && check(dat_cno_create(adapter, DAT_OS_WAIT_PROXY_AGENT_NULL, &notifier)) &&
        check(dat_evd_modify_cno(errors, notifier)) && create_queue(DAT_EVD_CR_FLAG, notifier, &requests) &&
        create_queue(DAT_EVD_CONNECTION_FLAG, DAT_HANDLE_NULL, &connections) &&
        create_queue(DAT_EVD_DTO_FLAG, DAT_HANDLE_NULL, &completions))
        check(dat_ep_create(adapter, zone, completions, completions, connections, NULL, &endpoint));
    if (problem == DAT_SUCCESS && server_host == 0)
        check(dat_psp_create(adapter, qualifier, requests, DAT_PSP_CONSUMER_FLAG, &service_point));
    return answer("ok");
}

const char* take_request(void) {
    DAT_EVD_HANDLE told = DAT_HANDLE_NULL;
    DAT_EVENT event;
    while (check(dat_cno_wait(notifier, DAT_TIMEOUT_INFINITE, &told))) {
        if (dat_evd_dequeue(errors, &event) == DAT_SUCCESS) return "catastrophe";
        if (dat_evd_dequeue(requests, &event) != DAT_SUCCESS) continue;
        request = event.event_data.cr_arrival_event_data.cr_handle;
        return "ok";
    }
    return answer(NULL);
}

const char* next_event(void) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    check(await_event(connections, DAT_TIMEOUT_INFINITE, &event));
    switch (event.event_number) {
        case DAT_CONNECTION_EVENT_ESTABLISHED: return answer("established");
        case DAT_CONNECTION_EVENT_DISCONNECTED: return answer("closed");
        case DAT_CONNECTION_EVENT_BROKEN: return answer("lost");
        case DAT_CONNECTION_EVENT_PEER_REJECTED: return answer("rejected");
        case DAT_CONNECTION_EVENT_NON_PEER_REJECTED: return answer("no match");
        case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR: return answer("not accepted");
        case DAT_CONNECTION_EVENT_TIMED_OUT: return answer("timeout");
        case DAT_CONNECTION_EVENT_UNREACHABLE: return answer("unreachable");
        default: return answer("another event");
    }
}

static DAT_RETURN ask(void) {
    char host[16];
    struct sockaddr_in address = {.sin_family = AF_INET};
    snprintf(host, sizeof host, "10.0.0.%d", server_host);
    inet_pton(AF_INET, host, &address.sin_addr);
    return dat_ep_connect(endpoint, (DAT_IA_ADDRESS_PTR)&address, qualifier, 1000 * connect_timeout_ms, 0, NULL,
                          DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

const char* connect_ends(void) {
    return check(server_host != 0 ? ask() : dat_cr_accept(request, endpoint, 0, NULL)) ? next_event() : answer(NULL);
}

static DAT_LMR_TRIPLET piece(DAT_SEG_LENGTH length) {
    return (DAT_LMR_TRIPLET){.virtual_address = (uintptr_t)memory, .segment_length = length, .lmr_context = context};
}

const char* post_receive(void) {
    DAT_LMR_TRIPLET whole = piece(sizeof memory);
    const DAT_DTO_COOKIE cookie = {.as_64 = 0};
    if (check(dat_ep_post_recv(endpoint, 1, &whole, cookie, DAT_COMPLETION_DEFAULT_FLAG))) ++outstanding;
    return answer("ok");
}

const char* post_send(void) {
    DAT_LMR_TRIPLET message = piece(message_size);
    const DAT_DTO_COOKIE cookie = {.as_64 = 0};
    if (check(dat_ep_post_send(endpoint, 1, &message, cookie, DAT_COMPLETION_DEFAULT_FLAG))) ++outstanding;
    return answer("ok");
}

const char* finish(void) {
    DAT_EVENT event;
    bool succeeded = false;
    while (outstanding > 0 && check(await_event(completions, DAT_TIMEOUT_INFINITE, &event))) {
        --outstanding;
        succeeded = succeeded || event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
    }
    return answer(succeeded ? "done" : "failed");
}

const char* close_all(void) {
    if (service_point != DAT_HANDLE_NULL) check(dat_psp_free(service_point));
    check(dat_ep_free(endpoint));
    check(dat_evd_free(completions));
    check(dat_evd_free(connections));
    check(dat_evd_free(requests));
    check(dat_evd_modify_cno(errors, DAT_HANDLE_NULL));
    check(dat_cno_free(notifier));
    check(dat_lmr_free(region));
    check(dat_pz_free(zone));
    check(dat_ia_close(adapter, DAT_CLOSE_GRACEFUL_FLAG));
    service_point = DAT_HANDLE_NULL;
    outstanding = 0;
    return answer("ok");
}
