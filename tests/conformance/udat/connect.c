/* SPDX-License-Identifier: BSD-3-Clause
 * Connecting: dat_ep_connect. What the other side does with the request is in cr.c.
 */
#include "scene.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

typedef struct {
    DAT_CONN_QUAL qual;
    DAT_TIMEOUT timeout;
    DAT_COUNT size;
    const void *data;
    DAT_QOS qos;
    DAT_CONNECT_FLAGS flags;
} Request;

static Request usual(const Pair *pair) {
    return (Request){.qual = pair->server->qual,
                     .timeout = DAT_TIMEOUT_INFINITE,
                     .qos = DAT_QOS_BEST_EFFORT,
                     .flags = DAT_CONNECT_DEFAULT_FLAG};
}

static DAT_RETURN connect_at(const struct sockaddr *address, DAT_EP_HANDLE ep, const Request *request) {
    return dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)(uintptr_t)address, request->qual, request->timeout, request->size,
                          (DAT_PVOID)(uintptr_t)request->data, request->qos, request->flags);
}

static DAT_RETURN connect_pair(const Pair *pair, const Request *request) {
    return connect_at((const struct sockaddr *)&pair->server->address, pair->client->ep, request);
}

/* The call fails and leaves the endpoint as it was: it can still be connected. */
static void check_refused(const Pair *pair, const Request *request, DAT_RETURN type, DAT_RETURN subtype) {
    CHECK_SUB(connect_pair(pair, request), type, subtype);
    CHECK_EQ(ep_state(pair->client), DAT_EP_STATE_UNCONNECTED);
}

static void check_invalid(const Pair *pair, const Request *request) {
    CHECK_RC(connect_pair(pair, request), DAT_INVALID_PARAMETER);
    CHECK_EQ(ep_state(pair->client), DAT_EP_STATE_UNCONNECTED);
}

/* ---- Established ------------------------------------------------------------------------------------------------- */

TEST(ep_connect__established) {
    const Pair pair = open_pair((Options){0});
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    take_request(pair.server);
    CHECK_OK(accept_request(pair.server, NULL, 0));
    DAT_EVENT event = EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK(event.event_data.connect_event_data.ep_handle == pair.client->ep);
    CHECK(event.evd_handle == pair.client->evds[CONN]);
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
    CHECK_EQ(ep_state(pair.server), DAT_EP_STATE_CONNECTED);
    pair_close(&pair);
}

TEST(ep_connect__with_a_timeout_that_does_not_end) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    request.timeout = long_us();
    CHECK_OK(connect_pair(&pair, &request));
    take_request(pair.server);
    CHECK_OK(accept_request(pair.server, NULL, 0));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    tell(pair.client, pair.server);
    pair_close(&pair);
}

TEST(ep_connect__work_may_follow_at_once) {
    const Pair pair = open_pair((Options){0});
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 2}));
    begin_connecting(&pair);
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = 3}));
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 64, .cookie = 4}));
    EXPECT_RECEIVED(pair.server, 1);
    EXPECT_RECEIVED(pair.client, 2);
    EXPECT_DONE(pair.client, 3);
    EXPECT_DONE(pair.server, 4);
    pair_close(&pair);
}

TEST(ep_connect__several_at_once) {
    enum { COUNT = 6 };
    const Pair pair = open_pair_here((Options){0});
    const Side *client = pair.client, *server = pair.server;
    bool established[COUNT] = {false};
    DAT_EP_HANDLE eps[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        eps[i] = new_ep(client, (Options){0});
        CHECK_OK(request_to(server, eps[i], server->qual));
    }
    for (int i = 0; i < COUNT; ++i)
        CHECK_OK(dat_cr_accept(request_on(server->evds[CR]), new_ep(server, (Options){0}), 0, NULL));
    for (int i = 0; i < COUNT; ++i) {
        DAT_EVENT event = WAIT_ON(client->evds[CONN], DAT_CONNECTION_EVENT_ESTABLISHED);
        WAIT_ON(server->evds[CONN], DAT_CONNECTION_EVENT_ESTABLISHED);
        for (int j = 0; j < COUNT; ++j) {
            if (event.event_data.connect_event_data.ep_handle == eps[j]) established[j] = true;
        }
    }
    for (int i = 0; i < COUNT; ++i) CHECK(established[i]);
}

/* ---- Private data ------------------------------------------------------------------------------------------------ */

/* A transport may pad private data with zeros; loopback does not. */
static void check_private_data(const Side *side, const uint8_t *data, DAT_COUNT size) {
    CHECK(on_loopback() ? side->private_data_size == size : side->private_data_size >= size);
    CHECK(memcmp(side->private_data, data, (size_t)size) == 0);
    for (DAT_COUNT i = size; i < side->private_data_size; ++i) CHECK_EQ(side->private_data[i], 0);
}

static DAT_COUNT private_data(const Side *side, uint8_t data[MAX_PDATA]) {
    DAT_COUNT most = provider_attributes(side->ia).max_private_data_size;
    for (int i = 0; i < MAX_PDATA; ++i) data[i] = (uint8_t)(i * 7 + 1);
    CHECK(most > 0);
    return most < MAX_PDATA ? most : MAX_PDATA;
}

static void check_private_data_of(DAT_COUNT size, const uint8_t *data, const Pair *pair) {
    CHECK_OK(connect_to(pair->client, pair->server, data, size));
    take_request(pair->server);
    check_private_data(pair->server, data, size);
    CHECK_OK(accept_request(pair->server, data, size));
    EXPECT_EVENT(pair->client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    check_private_data(pair->client, data, size);
    EXPECT_EVENT(pair->server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST(ep_connect__private_data) {
    uint8_t data[MAX_PDATA];
    const Pair pair = open_pair((Options){0});
    private_data(pair.client, data);
    check_private_data_of(16, data, &pair);
    pair_close(&pair);
}

TEST(ep_connect__no_private_data) {
    uint8_t data[MAX_PDATA];
    const Pair pair = open_pair((Options){0});
    private_data(pair.client, data);
    check_private_data_of(0, data, &pair);
    pair_close(&pair);
}

TEST(ep_connect__the_most_private_data) {
    uint8_t data[MAX_PDATA];
    const Pair pair = open_pair((Options){0});
    DAT_COUNT most = private_data(pair.client, data);
    check_private_data_of(most, data, &pair);
    pair_close(&pair);
}

TEST(ep_connect__too_much_private_data) {
    uint8_t data[MAX_PDATA + 1] = {0};
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    request.size = private_data(pair.client, data) + 1;
    request.data = data;
    check_invalid(&pair, &request);
}

TEST(ep_connect__negative_private_data) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    request.size = -1;
    request.data = "x";
    check_invalid(&pair, &request);
}

TEST(ep_connect__private_data_nowhere) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    request.size = 4; /* and no data */
    check_invalid(&pair, &request);
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

TEST(ep_connect__no_time) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    request.timeout = 0;
    check_refused(&pair, &request, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
}

TEST(ep_connect__no_address) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    CHECK_SUB(connect_at(NULL, pair.client->ep, &request), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* "If the Provider can locally determine that the address is invalid ... the operation can fail synchronously";
 * otherwise an event tells. Loopback knows all its addresses; over a network the time may end first. */
static void check_no_such_host(const struct sockaddr *address, bool invalid) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    request.timeout = 10 * SHORT_US;
    DAT_RETURN rc = connect_at(address, pair.client->ep, &request);
    if (on_loopback()) CHECK_EQ(DAT_GET_TYPE(rc) != DAT_SUCCESS, invalid);
    if (DAT_GET_TYPE(rc) != DAT_SUCCESS) {
        CHECK_RC(rc, DAT_INVALID_ADDRESS);
        CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_UNCONNECTED);
    } else {
        DAT_EVENT event = next_event(pair.client, CONN);
        if (on_loopback() || event.event_number != DAT_CONNECTION_EVENT_TIMED_OUT)
            CHECK_EQ(event.event_number, DAT_CONNECTION_EVENT_UNREACHABLE);
        CHECK(event.event_data.connect_event_data.ep_handle == pair.client->ep);
        CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECTED);
    }
}

TEST(ep_connect__a_family_of_addresses_it_does_not_know) {
    const struct sockaddr address = {.sa_family = AF_UNIX};
    check_no_such_host(&address, true);
}

static void check_ip_address(const char *text, bool invalid) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    CHECK(inet_pton(AF_INET, text, &address.sin_addr) == 1);
    check_no_such_host((const struct sockaddr *)&address, invalid);
}

TEST(ep_connect__an_address_of_many) { check_ip_address("224.0.0.1", true); }

/* An address for documentation only (RFC 5737). */
TEST(ep_connect__unreachable) { check_ip_address("192.0.2.1", false); }

TEST(ep_connect__quality_of_service_that_is_not_there) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    request.qos = unsupported_qos(pair.client->ia);
    check_refused(&pair, &request, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
}

TEST(ep_connect__several_paths) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    if (provider_attributes(pair.client->ia).supports_multipath) skip("the provider has several paths");
    request.flags = DAT_CONNECT_MULTIPATH_REQUIRED_FLAG;
    check_refused(&pair, &request, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
    request.flags = DAT_CONNECT_MULTIPATH_REQUESTED_FLAG;
    check_refused(&pair, &request, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
}

/* The page has no code for it; stock finds a handle missing. */
TEST(ep_connect__without_an_evd_for_connections) {
    const Pair pair = open_pair_here((Options){0});
    Side *client = pair.client;
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_OK(dat_ep_create(client->ia, client->pz, client->evds[RECV], client->evds[REQUEST], DAT_HANDLE_NULL,
                           &attributes, &ep));
    CHECK_EITHER(request_to(client, ep, pair.server->qual), DAT_INVALID_STATE, DAT_INVALID_HANDLE);
    CHECK_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED);
}

TEST(ep_connect__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_SUB(request_to(pair.server, pair.client->pz, pair.server->qual), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

TEST(ep_connect__no_object__invalid_handle) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_BAD_HANDLES(request_to(pair.server, bad, pair.server->qual));
}

/* ---- States ------------------------------------------------------------------------------------------------------ */

static void check_state(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    CHECK_SUB(request_to(scene.pair.server, scene.ep, scene.pair.server->qual), DAT_INVALID_STATE, subtype_of(state));
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(ep_connect__reserved) { check_state(DAT_EP_STATE_RESERVED); }
TEST(ep_connect__passive_connection_pending) { check_state(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_connect__active_connection_pending) { check_state(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(ep_connect__connected) { check_state(DAT_EP_STATE_CONNECTED); }
TEST(ep_connect__disconnect_pending) { check_state(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(ep_connect__disconnected) { check_state(DAT_EP_STATE_DISCONNECTED); }

/* It has no zone yet either, and a provider may see that first. */
TEST(ep_connect__tentative_connection_pending) {
    const Scene scene = scene_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    CHECK_EITHER(request_to(scene.pair.server, scene.ep, scene.pair.server->qual), DAT_INVALID_STATE,
                 DAT_INVALID_HANDLE);
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
}

/* ---- Not established --------------------------------------------------------------------------------------------- */

static void check_ended(Side *client, DAT_EVENT_NUMBER number) {
    DAT_EVENT event = EXPECT_EVENT(client, CONN, number);
    CHECK(event.event_data.connect_event_data.ep_handle == client->ep);
    CHECK_EQ(ep_state(client), DAT_EP_STATE_DISCONNECTED);
}

/* After any end the endpoint can be reset and connected. */
static void check_reusable(const Pair *pair) {
    CHECK_OK(dat_ep_reset(pair->client->ep));
    pair_connect(pair);
    tell(pair->client, pair->server);
    pair_close(pair);
}

TEST(ep_connect__nobody_listens) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    request.qual = unused_qual();
    const DAT_TIMEOUT start = clock_us();
    CHECK_OK(connect_pair(&pair, &request));
    check_ended(pair.client, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    if (on_loopback() && getenv("VIADUCT_CONNECT_RETRY_MS") == NULL) CHECK_TOOK(start, 50000);
    check_reusable(&pair);
}

/* A client may be a moment faster than its server: the request waits for a listener, VIADUCT_CONNECT_RETRY_MS at most.
 */
TEST(ep_connect__a_moment_before_the_server_listens) {
    CHECK(setenv("VIADUCT_CONNECT_RETRY_MS", "10000", 1) == 0);
    const Pair pair = open_pair_here((Options){0});
    CHECK_OK(dat_psp_free(pair.server->psp));
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    listen_at(pair.server);
    take_request(pair.server);
    CHECK_OK(accept_request(pair.server, NULL, 0));
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST(ep_connect__nobody_listens_without_grace) {
    CHECK(setenv("VIADUCT_CONNECT_RETRY_MS", "0", 1) == 0);
    const Pair pair = open_pair_here((Options){0});
    CHECK_OK(dat_psp_free(pair.server->psp));
    const DAT_TIMEOUT start = clock_us();
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    check_ended(pair.client, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    CHECK_AT_ONCE(start);
}

TEST(ep_connect__nobody_listens_any_more) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_OK(dat_psp_free(pair.server->psp));
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    check_ended(pair.client, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

TEST(ep_connect__rejected) {
    const Pair pair = open_pair((Options){0});
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    take_request(pair.server);
    CHECK_OK(reject_request(pair.server));
    check_ended(pair.client, DAT_CONNECTION_EVENT_PEER_REJECTED);
    check_reusable(&pair);
}

TEST(ep_connect__timed_out) {
    const Pair pair = open_pair((Options){0});
    Request request = usual(&pair);
    request.timeout = SHORT_US;
    const DAT_TIMEOUT start = clock_us();
    CHECK_OK(connect_pair(&pair, &request));
    check_ended(pair.client, DAT_CONNECTION_EVENT_TIMED_OUT);
    CHECK_TOOK(start, request.timeout);
}

/* The server has the request in hand when the time is up; what it does with it then changes nothing. */
TEST(ep_connect__timed_out_while_the_server_thinks) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    request.timeout = MEDIUM_US;
    const DAT_TIMEOUT start = clock_us();
    CHECK_OK(connect_pair(&pair, &request));
    take_request(pair.server);
    check_ended(pair.client, DAT_CONNECTION_EVENT_TIMED_OUT);
    CHECK_TOOK(start, request.timeout);
    reject_request(pair.server);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECTED);
}

TEST(ep_connect__timed_out_flushes_receives) {
    const Pair pair = open_pair_here((Options){0});
    Request request = usual(&pair);
    request.timeout = SHORT_US;
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    const DAT_TIMEOUT start = clock_us();
    CHECK_OK(connect_pair(&pair, &request));
    check_ended(pair.client, DAT_CONNECTION_EVENT_TIMED_OUT);
    CHECK_TOOK(start, request.timeout);
    EXPECT_DTO(pair.client, RECV, 1, DAT_DTO_ERR_FLUSHED);
}

TEST(ep_connect__a_server_that_is_stopped) {
    const Pair pair = open_pair((Options){0});
    Request request = usual(&pair);
    request.timeout = 2 * SHORT_US;
    peer_stop(pair.server->process);
    const DAT_TIMEOUT start = clock_us();
    CHECK_OK(connect_pair(&pair, &request));
    check_ended(pair.client, DAT_CONNECTION_EVENT_TIMED_OUT);
    CHECK_TOOK(start, request.timeout);
    peer_continue(pair.server->process);
}

/* "Backlog of the requested Service Point is full": its length is that of the EVD. More requests than that are refused,
 * or wait where a listener has room for them; none is lost. */
TEST(ep_connect__more_requests_than_the_backlog) {
    enum { REQUESTS = 24 };
    const Pair pair = open_pair_here((Options){.evd_qlen = 8});
    const Side *client = pair.client, *server = pair.server;
    DAT_EVD_HANDLE evd = new_evd(client->ia, DAT_EVD_CONNECTION_FLAG);
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    for (int i = 0; i < REQUESTS; ++i) {
        DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
        CHECK_OK(
            dat_ep_create(client->ia, client->pz, client->evds[RECV], client->evds[REQUEST], evd, &attributes, &ep));
        CHECK_OK(request_to(server, ep, server->qual));
    }
    int established = 0, refused = 0;
    if (on_loopback()) { /* which refuses at once what the EVD does not hold */
        DAT_EVD_PARAM param;
        CHECK_OK(dat_evd_query(server->evds[CR], DAT_EVD_FIELD_EVD_QLEN, &param));
        CHECK(param.evd_qlen < REQUESTS);
        for (; refused < REQUESTS - param.evd_qlen; ++refused) WAIT_ON(evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    }
    const int refused_at_once = refused;
    while (established + refused < REQUESTS) {
        DAT_EVENT event;
        while (DAT_GET_TYPE(dat_evd_dequeue(server->evds[CR], &event)) == DAT_SUCCESS) {
            DAT_EP_HANDLE ep = new_ep(client, (Options){0});
            CHECK_OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
        }
        if (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_SUCCESS) continue;
        if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) ++established;
        if (event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
            (event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED && !on_loopback()))
            ++refused;
    }
    CHECK(established >= 8);
    if (on_loopback()) CHECK_EQ(refused, refused_at_once);
}

/* A call of the client tells that its attempt, for which a receive is posted, has failed. Returns the client. */
static Side *expect_flushed_when_seen(int (*sees_failure)(DAT_EP_HANDLE ep)) {
    Pair pair = open_pair_here((Options){0});
    Side *client = pair.client;
    CHECK_OK(dat_psp_free(pair.server->psp));
    pair.server->psp = DAT_HANDLE_NULL;
    CHECK_OK(post(client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    CHECK_OK(connect_to(client, pair.server, NULL, 0));
    while (!sees_failure(client->ep)) continue;
    EXPECT_DTO(client, RECV, 1, DAT_DTO_ERR_FLUSHED);
    return client;
}

static int is_disconnected_by_status(DAT_EP_HANDLE ep) {
    DAT_EP_STATE state;
    CHECK_OK(dat_ep_get_status(ep, &state, NULL, NULL));
    return state == DAT_EP_STATE_DISCONNECTED;
}

/* "In the Disconnected state, the posted Recv is immediately flushed" (dat_ep_post_recv), also if nobody has taken the
 * event that says why there is no connection. */
TEST(ep_connect__receives_are_flushed_when_it_fails) {
    Side *client = expect_flushed_when_seen(is_disconnected_by_status);
    DAT_BOOLEAN idle = DAT_FALSE;
    CHECK_OK(dat_ep_get_status(client->ep, NULL, &idle, NULL));
    CHECK_EQ(idle, DAT_TRUE);
    CHECK_OK(post(client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 2}));
    EXPECT_DTO(client, RECV, 2, DAT_DTO_ERR_FLUSHED);
}

static int is_disconnected_by_query(DAT_EP_HANDLE ep) {
    DAT_EP_PARAM param;
    CHECK_OK(dat_ep_query(ep, DAT_EP_FIELD_EP_STATE, &param));
    return param.ep_state == DAT_EP_STATE_DISCONNECTED;
}

static int has_no_receives(DAT_EP_HANDLE ep) {
    DAT_COUNT receives = 0;
    DAT_COUNT span = 0;
    CHECK_OK(dat_ep_recv_query(ep, &receives, &span));
    return receives == 0;
}

TEST(ep_connect__receives_are_flushed_when_a_query_tells_of_the_failure) {
    (void)expect_flushed_when_seen(is_disconnected_by_query);
}

TEST(ep_connect__receives_are_flushed_when_a_query_for_receives_sees_the_failure) {
    (void)expect_flushed_when_seen(has_no_receives);
}
