/* SPDX-License-Identifier: BSD-3-Clause
 * A request is repeated with another queue pair if the other system attributes its number to another request
 * (docs/verbs-wire.md). Requests made with librdmacm alone, which nobody answers, take the numbers of the next queue
 * pairs of a device. Then librpma connects from that device.
 *
 * For the guest of tests/vm, where numbers are assigned in ascending order. The exit status is 77, for "skipped", if
 * there is no RDMA device.
 */
#include <arpa/inet.h>
#include <librpma.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENT "10.0.0.1"
#define SERVER "10.0.0.2"
#define PORT "7240"

enum { NO_DEVICE = 77, TAKEN = 6, PATIENCE_MS = 30000, RESOLUTION_MS = 2000 };

#define OK(call) check((call) == 0, #call)

static const char plea[] = "the one that is answered";

static void check(bool condition, const char* what) {
    if (condition) return;
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

static struct sockaddr_in address_of(const char* host, uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    check(inet_pton(AF_INET, host, &address.sin_addr) == 1, host);
    return address;
}

static void await(struct rdma_event_channel* channel, enum rdma_cm_event_type type) {
    struct rdma_cm_event* event = NULL;
    OK(rdma_get_cm_event(channel, &event));
    check(event->event == type, rdma_event_str(type));
    OK(rdma_ack_cm_event(event));
}

/* Returns an id with a route to the server. */
static struct rdma_cm_id* resolve(struct rdma_event_channel* channel) {
    struct sockaddr_in from = address_of(CLIENT, 0);
    struct sockaddr_in to = address_of(SERVER, (uint16_t)atoi(PORT));
    struct rdma_cm_id* id = NULL;
    OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    OK(rdma_resolve_addr(id, (struct sockaddr*)&from, (struct sockaddr*)&to, RESOLUTION_MS));
    await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    OK(rdma_resolve_route(id, RESOLUTION_MS));
    await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
}

/* Returns the number of the latest queue pair. */
static uint32_t latest_number(struct rdma_event_channel* channel) {
    struct rdma_cm_id* id = resolve(channel);
    struct ibv_qp_init_attr attributes = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}, .qp_type = IBV_QPT_RC};
    OK(rdma_create_qp(id, NULL, &attributes));
    const uint32_t number = id->qp->qp_num;
    rdma_destroy_qp(id);
    OK(rdma_destroy_id(id));
    return number;
}

static struct rpma_peer* open_peer(const char* host) {
    struct ibv_context* device = NULL;
    struct rpma_peer* peer = NULL;
    if (rpma_utils_get_ibv_context(host, RPMA_UTIL_IBV_CONTEXT_LOCAL, &device) != 0) exit(NO_DEVICE);
    OK(rpma_peer_new(device, &peer));
    return peer;
}

static struct rpma_conn_req* next_request(struct rpma_ep* listener) {
    struct rpma_conn_req* request = NULL;
    struct pollfd readable = {.events = POLLIN};
    OK(rpma_ep_get_fd(listener, &readable.fd));
    check(poll(&readable, 1, PATIENCE_MS) == 1, "a request comes");
    OK(rpma_ep_next_conn_req(listener, NULL, &request));
    return request;
}

static void expect(struct rpma_conn* connection, enum rpma_conn_event expected) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    OK(rpma_conn_next_event(connection, &event));
    if (event != expected) fprintf(stderr, "%s\n", rpma_utils_conn_event_2str(event));
    check(event == expected, rpma_utils_conn_event_2str(expected));
}

int main(void) {
    struct rpma_peer* server_peer = open_peer(SERVER);
    struct rpma_peer* client_peer = open_peer(CLIENT);
    struct rpma_ep* listener = NULL;
    OK(rpma_ep_listen(server_peer, SERVER, PORT, &listener));

    struct rdma_event_channel* channel = rdma_create_event_channel();
    check(channel != NULL, "rdma_create_event_channel");
    const uint32_t latest = latest_number(channel);
    struct rdma_cm_id* ids[TAKEN];
    struct rpma_conn_req* requests[TAKEN];
    for (uint32_t i = 0; i < TAKEN; ++i) {
        ids[i] = resolve(channel);
        struct rdma_conn_param parameters = {.retry_count = 7, .rnr_retry_count = 7, .qp_num = latest + 1 + i};
        OK(rdma_connect(ids[i], &parameters));
        requests[i] = next_request(listener);
    }

    struct rpma_conn_req* request = NULL;
    struct rpma_conn* client = NULL;
    struct rpma_conn* server = NULL;
    struct rpma_conn_private_data data = {.ptr = (void*)plea, .len = sizeof plea};
    OK(rpma_conn_req_new(client_peer, SERVER, PORT, NULL, &request));
    OK(rpma_conn_req_connect(&request, &data, &client));
    request = next_request(listener);
    OK(rpma_conn_req_get_private_data(request, &data));
    check(data.len >= sizeof plea && memcmp(data.ptr, plea, sizeof plea) == 0, "it is the request of the client");
    OK(rpma_conn_req_connect(&request, NULL, &server));
    expect(server, RPMA_CONN_ESTABLISHED);
    expect(client, RPMA_CONN_ESTABLISHED);
    check(latest_number(channel) > latest + TAKEN + 1, "the numbers of the client were taken");

    OK(rpma_conn_disconnect(client));
    expect(client, RPMA_CONN_CLOSED);
    expect(server, RPMA_CONN_CLOSED);
    OK(rpma_conn_delete(&client));
    OK(rpma_conn_delete(&server));
    for (uint32_t i = 0; i < TAKEN; ++i) {
        OK(rpma_conn_req_delete(&requests[i]));
        OK(rdma_destroy_id(ids[i]));
    }
    rdma_destroy_event_channel(channel);
    OK(rpma_ep_shutdown(&listener));
    OK(rpma_peer_delete(&client_peer));
    OK(rpma_peer_delete(&server_peer));
    return 0;
}
