/* SPDX-License-Identifier: BSD-3-Clause
 * Common service points, which DAT 2.0 adds: dat_csp_create, dat_csp_query, dat_csp_free, and dat_ep_common_connect.
 *
 * A point listens at an address and port of a communicator, and an endpoint of that communicator connects there. No
 * page describes them; the headers do.
 */
#include "scene.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#pragma weak dat_csp_create
#pragma weak dat_csp_query
#pragma weak dat_csp_free
#pragma weak dat_ep_common_connect

static DAT_COMM tcp = {AF_INET, SOCK_STREAM, IPPROTO_TCP};

/* The address of the side's IA with a port. */
static struct sockaddr_storage with_port(const Side *side, DAT_CONN_QUAL port) {
    struct sockaddr_storage address = side->address;
    ((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)port);
    return address;
}

static DAT_RETURN create(const Side *side, DAT_CONN_QUAL port, DAT_CSP_HANDLE *csp) {
    struct sockaddr_storage address = with_port(side, port);
    return dat_csp_create(side->ia, &tcp, (DAT_IA_ADDRESS_PTR)&address, side->evds[CR], csp);
}

static DAT_RETURN connect_common(const Side *side, DAT_EP_HANDLE ep, DAT_CONN_QUAL port, DAT_TIMEOUT timeout,
                                 DAT_COUNT size, const void *data) {
    struct sockaddr_storage address = with_port(side, port);
    DAT_EP_PARAM param;
    CHECK_OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
    param.comm = tcp;
    DAT_RETURN rc = dat_ep_modify(ep, DAT_EP_FIELD_COMM, &param);
    if (DAT_GET_TYPE(rc) != DAT_INVALID_STATE) CHECK_OK(rc);
    return dat_ep_common_connect(ep, (DAT_IA_ADDRESS_PTR)&address, timeout, size, (DAT_PVOID)(uintptr_t)data);
}

static Pair open_sides(void) {
    NEED(dat_csp_create);
    return open_pair_here((Options){0});
}

/* ---- Points ------------------------------------------------------------------------------------------------------ */

TEST(csp_create__takes_requests) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL port = unused_qual();
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    CHECK_OK(create(pair.server, port, &csp));
    CHECK_OK(connect_common(pair.server, pair.client->ep, port, long_us(), 0, NULL));
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    DAT_EVENT event = WAIT_ON(pair.server->evds[CR], DAT_CONNECTION_REQUEST_EVENT);
    CHECK(event.event_data.cr_arrival_event_data.sp_handle.csp_handle == csp);
    CHECK_OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair.server->ep, 0, NULL));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    tell(pair.client, pair.server);
    CHECK_OK(dat_csp_free(csp));
}

TEST(csp_create__a_port_in_use) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL port = unused_qual();
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL, second = DAT_HANDLE_NULL;
    CHECK_OK(create(pair.server, port, &csp));
    CHECK_RC(create(pair.server, port, &second), DAT_PORT_IN_USE);
    CHECK_OK(dat_csp_free(csp));
    CHECK_OK(create(pair.server, port, &second));
    CHECK_OK(dat_csp_free(second));
    CHECK_RC(create(pair.server, pair.server->qual, &second), DAT_PORT_IN_USE); /* by a public service point */
}

TEST(csp_create__a_port_in_use_in_another_process) {
    NEED(dat_csp_create);
    const Pair pair = open_pair((Options){0});
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    CHECK_RC(create(pair.client, pair.server->qual, &csp), DAT_PORT_IN_USE);
}

TEST(csp_create__an_unknown_communicator) {
    const Pair pair = open_sides();
    struct sockaddr_storage address = with_port(pair.server, unused_qual());
    DAT_COMM unknown[] = {{AF_UNIX, SOCK_STREAM, 0},
                          {AF_INET, SOCK_DGRAM, 0},
                          {AF_INET, SOCK_STREAM, 77},
                          {AF_INET6, SOCK_STREAM, 0}}; /* and not an address of its family */
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; ++i)
        CHECK_RC(
            dat_csp_create(pair.server->ia, &unknown[i], (DAT_IA_ADDRESS_PTR)&address, pair.server->evds[CR], &csp),
            DAT_COMM_NOT_SUPPORTED);
}

static DAT_RETURN create_at(const Side *side, const char *host) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)unused_qual())};
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    CHECK(inet_pton(AF_INET, host, &address.sin_addr) == 1);
    DAT_RETURN rc = dat_csp_create(side->ia, &tcp, (DAT_IA_ADDRESS_PTR)&address, side->evds[CR], &csp);
    if (rc == DAT_SUCCESS) CHECK_OK(dat_csp_free(csp));
    return rc;
}

TEST(csp_create__an_address_of_another_host) {
    const Pair pair = open_sides();
    CHECK_SUB(create_at(pair.server, "192.0.2.1"), DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
    CHECK_OK(create_at(pair.server, "0.0.0.0")); /* whatever the IA has */
}

TEST(csp_create__invalid_arguments) {
    const Pair pair = open_sides();
    const Side *server = pair.server;
    struct sockaddr_storage address = with_port(server, unused_qual());
    DAT_IA_ADDRESS_PTR pointer = (DAT_IA_ADDRESS_PTR)&address;
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    CHECK_SUB(dat_csp_create(server->ia, NULL, pointer, server->evds[CR], &csp), DAT_INVALID_PARAMETER,
              DAT_INVALID_ARG2);
    CHECK_SUB(dat_csp_create(server->ia, &tcp, NULL, server->evds[CR], &csp), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_SUB(dat_csp_create(server->ia, &tcp, pointer, server->evds[CR], NULL), DAT_INVALID_PARAMETER,
              DAT_INVALID_ARG5);
    CHECK_SUB(dat_csp_create(server->ia, &tcp, pointer, server->evds[CONN], &csp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_CR);
    CHECK_SUB(dat_csp_create(server->pz, &tcp, pointer, server->evds[CR], &csp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_IA);
}

TEST(csp_create__no_object__invalid_handle) {
    const Pair pair = open_sides();
    const Side *server = pair.server;
    struct sockaddr_storage address = with_port(server, unused_qual());
    DAT_IA_ADDRESS_PTR pointer = (DAT_IA_ADDRESS_PTR)&address;
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    CHECK_BAD_HANDLES(dat_csp_create(bad, &tcp, pointer, server->evds[CR], &csp));
    CHECK_BAD_HANDLES(dat_csp_create(server->ia, &tcp, pointer, bad, &csp));
}

TEST(csp_query__what_it_was_made_with) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL port = unused_qual();
    const struct sockaddr_storage address = with_port(pair.server, port);
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    DAT_CSP_PARAM param;
    CHECK_OK(create(pair.server, port, &csp));
    CHECK_OK(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
    CHECK(param.ia_handle == pair.server->ia);
    CHECK(param.evd_handle == pair.server->evds[CR]);
    CHECK(param.comm != NULL && memcmp(param.comm, &tcp, sizeof tcp) == 0);
    CHECK(param.address_ptr != NULL && memcmp(param.address_ptr, &address, sizeof(struct sockaddr)) == 0);
    for (int mask = 0; mask <= DAT_CSP_FIELD_ALL; ++mask) {
        DAT_CSP_PARAM some;
        memset(&some, 0xa5, sizeof some);
        CHECK_OK(dat_csp_query(csp, (DAT_CSP_PARAM_MASK)mask, &some));
        if ((mask & DAT_CSP_FIELD_IA_HANDLE) != 0) CHECK(some.ia_handle == param.ia_handle);
        if ((mask & DAT_CSP_FIELD_COMM) != 0) CHECK(some.comm == param.comm);
        if ((mask & DAT_CSP_FIELD_IA_ADDRESS) != 0) CHECK(some.address_ptr == param.address_ptr);
        if ((mask & DAT_CSP_FIELD_EVD_HANDLE) != 0) CHECK(some.evd_handle == param.evd_handle);
    }
    CHECK_OK(dat_csp_free(csp));
}

TEST(csp_query__invalid_arguments) {
    const Pair pair = open_sides();
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    DAT_CSP_PARAM param;
    CHECK_OK(create(pair.server, unused_qual(), &csp));
    CHECK_SUB(dat_csp_query(csp, DAT_CSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_SUB(dat_csp_query(csp, (DAT_CSP_PARAM_MASK)0x40, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_csp_query(pair.server->psp, DAT_CSP_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
    CHECK_SUB(dat_csp_free(pair.server->psp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
    CHECK_OK(dat_csp_free(csp));
}

TEST(csp_query__no_object__invalid_handle) {
    DAT_CSP_PARAM param;
    NEED(dat_csp_query);
    CHECK_BAD_HANDLES(dat_csp_query(bad, DAT_CSP_FIELD_ALL, &param));
    CHECK_BAD_HANDLES(dat_csp_free(bad));
}

TEST(csp_free__nobody_listens_then) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL port = unused_qual();
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    CHECK_OK(create(pair.server, port, &csp));
    CHECK_OK(dat_csp_free(csp));
    CHECK_SUB(dat_csp_free(csp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
    CHECK_OK(connect_common(pair.server, pair.client->ep, port, long_us(), 0, NULL));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECTED);
}

/* ---- dat_ep_common_connect --------------------------------------------------------------------------------------- */

TEST(ep_common_connect__rejected) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL port = unused_qual();
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    CHECK_OK(create(pair.server, port, &csp));
    CHECK_OK(connect_common(pair.server, pair.client->ep, port, long_us(), 0, NULL));
    CHECK_OK(dat_cr_reject(request_on(pair.server->evds[CR]), 0, NULL));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECTED);
}

TEST(ep_common_connect__timed_out) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL port = unused_qual();
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    CHECK_OK(create(pair.server, port, &csp));
    const DAT_TIMEOUT start = clock_us();
    CHECK_OK(connect_common(pair.server, pair.client->ep, port, SHORT_US, 0, NULL));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_TIMED_OUT);
    CHECK_TOOK(start, SHORT_US);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECTED);
}

TEST(ep_common_connect__private_data) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL port = unused_qual();
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    DAT_CR_PARAM param;
    CHECK_OK(create(pair.server, port, &csp));
    CHECK_OK(connect_common(pair.server, pair.client->ep, port, long_us(), 6, "hello"));
    CHECK_OK(dat_cr_query(request_on(pair.server->evds[CR]), DAT_CR_FIELD_ALL, &param));
    CHECK(param.private_data_size >= 6);
    CHECK(memcmp(param.private_data, "hello", 6) == 0);
}

TEST(ep_common_connect__invalid_arguments) {
    const Pair pair = open_sides();
    const Side *server = pair.server;
    DAT_EP_HANDLE ep = pair.client->ep;
    const DAT_COUNT most = provider_attributes(server->ia).max_private_data_size;
    uint8_t data[MAX_PDATA + 1] = {0};
    CHECK_SUB(dat_ep_common_connect(ep, NULL, long_us(), 0, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(connect_common(server, ep, 1, 0, 0, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_RC(connect_common(server, ep, 1, long_us(), -1, data), DAT_INVALID_PARAMETER);
    CHECK_RC(connect_common(server, ep, 1, long_us(), most + 1, data), DAT_INVALID_PARAMETER);
    CHECK_RC(connect_common(server, ep, 1, long_us(), 4, NULL), DAT_INVALID_PARAMETER);
    CHECK_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED);
}

static void check_state(DAT_EP_STATE state) {
    NEED(dat_ep_common_connect);
    const Scene scene = scene_in(state);
    CHECK_SUB(connect_common(scene.pair.server, scene.ep, scene.pair.server->qual, long_us(), 0, NULL),
              DAT_INVALID_STATE, subtype_of(state));
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(ep_common_connect__reserved) { check_state(DAT_EP_STATE_RESERVED); }
TEST(ep_common_connect__active_connection_pending) { check_state(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(ep_common_connect__passive_connection_pending) { check_state(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_common_connect__tentative_connection_pending) { check_state(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(ep_common_connect__connected) { check_state(DAT_EP_STATE_CONNECTED); }
TEST(ep_common_connect__disconnect_pending) { check_state(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(ep_common_connect__disconnected) { check_state(DAT_EP_STATE_DISCONNECTED); }

/* Without a zone, or an EVD for connection events. */
static void check_unready(bool zone) {
    const Pair pair = open_sides();
    const Side *client = pair.client;
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_OK(dat_ep_create(client->ia, zone ? client->pz : DAT_HANDLE_NULL, client->evds[RECV], client->evds[REQUEST],
                           zone ? DAT_HANDLE_NULL : client->evds[CONN], &attributes, &ep));
    CHECK_SUB(connect_common(pair.server, ep, pair.server->qual, long_us(), 0, NULL), DAT_INVALID_STATE,
              DAT_INVALID_STATE_EP_NOTREADY);
    CHECK_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED);
}

TEST(ep_common_connect__without_a_zone) { check_unready(false); }
TEST(ep_common_connect__without_an_evd_for_connections) { check_unready(true); }

TEST(ep_common_connect__no_object__invalid_handle) {
    const Pair pair = open_sides();
    struct sockaddr_storage address = with_port(pair.server, 1);
    CHECK_BAD_HANDLES(dat_ep_common_connect(bad, (DAT_IA_ADDRESS_PTR)&address, long_us(), 0, NULL));
    CHECK_SUB(dat_ep_common_connect(pair.client->pz, (DAT_IA_ADDRESS_PTR)&address, long_us(), 0, NULL),
              DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}
