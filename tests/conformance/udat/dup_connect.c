/* SPDX-License-Identifier: BSD-3-Clause
 * Connecting to where another endpoint is connected: dat_ep_dup_connect.
 *
 * The page calls the state after a failure DAT_EP_STATE_UNDISCONNECTED; no such state exists, and dat_ep_connect's
 * page, which has the same sentences, calls it DAT_EP_STATE_DISCONNECTED.
 */
#include "scene.h"

typedef struct {
    DAT_TIMEOUT timeout;
    DAT_COUNT size;
    const void *data;
    DAT_QOS qos;
} Request;

static const Request usual = {DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT};

static DAT_RETURN duplicate_with(DAT_EP_HANDLE ep, DAT_EP_HANDLE original, Request request) {
    return dat_ep_dup_connect(ep, original, request.timeout, request.size, (DAT_PVOID)(uintptr_t)request.data,
                              request.qos);
}

static DAT_RETURN duplicate(DAT_EP_HANDLE ep, DAT_EP_HANDLE original) { return duplicate_with(ep, original, usual); }

/* The request of a duplicate comes to the server's point; another endpoint there accepts it. */
static DAT_EP_HANDLE accept_on(const Side *server) {
    DAT_EP_HANDLE ep = new_ep(server, (Options){0});
    CHECK_OK(dat_cr_accept(request_on(server->evds[CR]), ep, 0, NULL));
    return ep;
}

static void check_event(const Side *side, DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number) {
    DAT_EVENT event = WAIT_ON(side->evds[CONN], number);
    CHECK(event.event_data.connect_event_data.ep_handle == ep);
}

static void check_ended(const Side *side, DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number) {
    check_event(side, ep, number);
    CHECK_EQ(state_of(ep), DAT_EP_STATE_DISCONNECTED);
}

/* The message of one endpoint comes to the other. */
static void check_joined(const Pair *pair, DAT_EP_HANDLE from, DAT_EP_HANDLE to) {
    DAT_LMR_TRIPLET iov = piece(pair->client, SEND_AT, 64), space = piece(pair->server, RECV_AT, 64);
    fill(pair->client, SEND_AT, 64, 5);
    CHECK_OK(dat_ep_post_recv(to, 1, &space, (DAT_DTO_COOKIE){.as_64 = 1}, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_OK(dat_ep_post_send(from, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 2}, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK(EXPECT_RECEIVED(pair->server, 1).ep_handle == to);
    CHECK(EXPECT_DONE(pair->client, 2).ep_handle == from);
    CHECK(filled(pair->server, RECV_AT, 64, 5));
}

/* ---- Established ------------------------------------------------------------------------------------------------- */

TEST(ep_dup_connect__established) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    CHECK_OK(duplicate(ep, pair.client->ep));
    CHECK_EQ(state_of(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    DAT_EP_HANDLE other = accept_on(pair.server);
    check_event(pair.client, ep, DAT_CONNECTION_EVENT_ESTABLISHED);
    check_event(pair.server, other, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_EQ(state_of(ep), DAT_EP_STATE_CONNECTED);
    CHECK_EQ(state_of(other), DAT_EP_STATE_CONNECTED);
    check_joined(&pair, ep, other);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
}

/* "The remote end shall be the same as the remote end of the dup_ep_handle". */
TEST(ep_dup_connect__same_address_and_qualifier) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    DAT_EP_PARAM original, copy;
    CHECK_OK(duplicate(ep, pair.client->ep));
    DAT_EVENT event = WAIT_ON(pair.server->evds[CR], DAT_CONNECTION_REQUEST_EVENT);
    const DAT_CR_ARRIVAL_EVENT_DATA *arrival = &event.event_data.cr_arrival_event_data;
    CHECK(arrival->sp_handle.psp_handle == pair.server->psp);
    CHECK_EQ(arrival->conn_qual, pair.server->qual);
    CHECK_OK(dat_cr_accept(arrival->cr_handle, new_ep(pair.server, (Options){0}), 0, NULL));
    check_event(pair.client, ep, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_OK(dat_ep_query(pair.client->ep, DAT_EP_FIELD_ALL, &original));
    CHECK_OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &copy));
    CHECK_EQ(copy.remote_port_qual, original.remote_port_qual);
    CHECK(memcmp(copy.remote_ia_address_ptr, original.remote_ia_address_ptr, sizeof(struct sockaddr)) == 0);
}

TEST(ep_dup_connect__to_another_process) {
    const Pair pair = connected_pair((Options){0});
    Side *server = new_side(pair.server->process);
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    side_open_beside(server, pair.server, (Options){0});
    CHECK_OK(duplicate(ep, pair.client->ep));
    take_request(pair.server);
    pair.server->ep = server->ep; /* what accept_request takes */
    CHECK_OK(reject_request(pair.server));
    check_ended(pair.client, ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
}

TEST(ep_dup_connect__a_duplicate_of_a_duplicate) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE first = new_ep(pair.client, (Options){0}), second = new_ep(pair.client, (Options){0});
    CHECK_OK(duplicate(first, pair.client->ep));
    check_event(pair.server, accept_on(pair.server), DAT_CONNECTION_EVENT_ESTABLISHED);
    check_event(pair.client, first, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_OK(duplicate(second, first));
    DAT_EP_HANDLE other = accept_on(pair.server);
    check_event(pair.client, second, DAT_CONNECTION_EVENT_ESTABLISHED);
    check_event(pair.server, other, DAT_CONNECTION_EVENT_ESTABLISHED);
    check_joined(&pair, second, other);
}

/* The original is only a description: its end does not touch the copy. */
TEST(ep_dup_connect__outlives_the_original) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    CHECK_OK(duplicate(ep, pair.client->ep));
    DAT_EP_HANDLE other = accept_on(pair.server);
    check_event(pair.client, ep, DAT_CONNECTION_EVENT_ESTABLISHED);
    check_event(pair.server, other, DAT_CONNECTION_EVENT_ESTABLISHED);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(dat_ep_free(pair.client->ep));
    check_joined(&pair, ep, other);
}

/* An end of the original while the copy is connecting does not matter either. */
TEST(ep_dup_connect__the_original_ends_meanwhile) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    CHECK_OK(duplicate(ep, pair.client->ep));
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    DAT_EP_HANDLE other = accept_on(pair.server);
    check_event(pair.client, ep, DAT_CONNECTION_EVENT_ESTABLISHED);
    check_event(pair.server, other, DAT_CONNECTION_EVENT_ESTABLISHED);
    check_joined(&pair, ep, other);
}

/* The copy has EVDs and attributes of its own. */
TEST(ep_dup_connect__events_come_to_its_own_evd) {
    const Pair pair = connected_pair_here((Options){0});
    Side *beside = new_side(NULL);
    side_open_beside(beside, pair.client, (Options){0});
    CHECK_OK(duplicate(beside->ep, pair.client->ep));
    check_event(pair.server, accept_on(pair.server), DAT_CONNECTION_EVENT_ESTABLISHED);
    check_event(beside, beside->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect_nothing(pair.client);
}

/* "Following the same redirections": the first request was handed over to another service point. */
TEST(ep_dup_connect__follows_a_redirection) {
    const Pair pair = open_pair_here((Options){0});
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_EVD_HANDLE evd = new_evd(pair.server->ia, DAT_EVD_CR_FLAG);
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_EVENT event;
    DAT_EP_PARAM param;
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    if (!on_loopback()) skip("the wire of stock does not tell of redirections");
    CHECK_OK(dat_psp_create(pair.server->ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    CHECK_OK(dat_cr_handoff(request_on(pair.server->evds[CR]), qual));
    CHECK_OK(dat_cr_accept(request_on(evd), pair.server->ep, 0, NULL));
    check_event(pair.client, pair.client->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_OK(dat_ep_query(pair.client->ep, DAT_EP_FIELD_ALL, &param));
    CHECK_EQ(param.remote_port_qual, qual);
    CHECK_OK(duplicate(ep, pair.client->ep));
    DAT_CR_HANDLE cr = request_on(evd);
    CHECK_RC(dat_evd_dequeue(pair.server->evds[CR], &event), DAT_QUEUE_EMPTY);
    CHECK_OK(dat_cr_accept(cr, new_ep(pair.server, (Options){0}), 0, NULL));
    check_event(pair.client, ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* ---- Private data ------------------------------------------------------------------------------------------------ */

static DAT_CR_PARAM check_private_data(DAT_COUNT size, const uint8_t *data, const Pair *pair) {
    DAT_EP_HANDLE ep = new_ep(pair->client, (Options){0});
    DAT_CR_PARAM param;
    Request request = usual;
    request.size = size;
    request.data = data;
    CHECK_OK(duplicate_with(ep, pair->client->ep, request));
    DAT_CR_HANDLE cr = request_on(pair->server->evds[CR]);
    CHECK_OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
    CHECK(on_loopback() ? param.private_data_size == size : param.private_data_size >= size);
    CHECK(size == 0 || memcmp(param.private_data, data, (size_t)size) == 0);
    return param;
}

static void make_data(uint8_t data[MAX_PDATA]) {
    for (int i = 0; i < MAX_PDATA; ++i) data[i] = (uint8_t)(i * 3 + 1);
}

TEST(ep_dup_connect__private_data) {
    uint8_t data[MAX_PDATA];
    const Pair pair = connected_pair_here((Options){0});
    make_data(data);
    check_private_data(16, data, &pair);
}

TEST(ep_dup_connect__no_private_data) {
    const Pair pair = connected_pair_here((Options){0});
    check_private_data(0, NULL, &pair);
}

/* The remote end is that of the duplicated endpoint; what is told to it is not. */
TEST(ep_dup_connect__without_the_private_data_of_the_other) {
    uint8_t data[MAX_PDATA];
    const Pair pair = open_pair_here((Options){0});
    make_data(data);
    CHECK_OK(connect_to(pair.client, pair.server, data, 16));
    take_request(pair.server);
    CHECK_OK(accept_request(pair.server, NULL, 0));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    const DAT_CR_PARAM param = check_private_data(0, NULL, &pair);
    for (DAT_COUNT i = 0; i < param.private_data_size; ++i) CHECK_EQ(((uint8_t *)param.private_data)[i], 0);
}

TEST(ep_dup_connect__the_most_private_data) {
    uint8_t data[MAX_PDATA];
    const Pair pair = connected_pair_here((Options){0});
    DAT_COUNT most = provider_attributes(pair.client->ia).max_private_data_size;
    make_data(data);
    check_private_data(most < MAX_PDATA ? most : MAX_PDATA, data, &pair);
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

static void check_refused(const Pair *pair, Request request, DAT_RETURN type) {
    DAT_EP_HANDLE ep = new_ep(pair->client, (Options){0});
    CHECK_RC(duplicate_with(ep, pair->client->ep, request), type);
    CHECK_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED);
    CHECK_OK(dat_ep_free(ep));
}

TEST(ep_dup_connect__too_much_private_data) {
    uint8_t data[MAX_PDATA + 1] = {0};
    const Pair pair = connected_pair_here((Options){0});
    Request request = usual;
    request.data = data;
    request.size = provider_attributes(pair.client->ia).max_private_data_size + 1;
    check_refused(&pair, request, DAT_INVALID_PARAMETER);
}

TEST(ep_dup_connect__negative_private_data) {
    const Pair pair = connected_pair_here((Options){0});
    Request request = usual;
    request.data = "x";
    request.size = -1;
    check_refused(&pair, request, DAT_INVALID_PARAMETER);
}

TEST(ep_dup_connect__private_data_nowhere) {
    const Pair pair = connected_pair_here((Options){0});
    Request request = usual;
    request.size = 4; /* and no data */
    check_refused(&pair, request, DAT_INVALID_PARAMETER);
}

/* "Values must be positive." */
TEST(ep_dup_connect__no_time) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    Request request = usual;
    request.timeout = 0;
    CHECK_SUB(duplicate_with(ep, pair.client->ep, request), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(ep_dup_connect__quality_of_service_that_is_not_there) {
    const Pair pair = connected_pair_here((Options){0});
    Request request = usual;
    request.qos = unsupported_qos(pair.client->ia);
    check_refused(&pair, request, DAT_MODEL_NOT_SUPPORTED);
}

TEST(ep_dup_connect__without_an_evd_for_connections) {
    const Pair pair = connected_pair_here((Options){0});
    const Side *client = pair.client;
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_OK(dat_ep_create(client->ia, client->pz, client->evds[RECV], client->evds[REQUEST], DAT_HANDLE_NULL,
                           &attributes, &ep));
    CHECK_EITHER(duplicate(ep, client->ep), DAT_INVALID_STATE, DAT_INVALID_HANDLE);
}

TEST(ep_dup_connect__other_kinds_of_objects) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    CHECK_SUB(duplicate(pair.client->pz, pair.client->ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    CHECK_SUB(duplicate(ep, pair.client->pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    CHECK_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED);
}

TEST(ep_dup_connect__no_object__invalid_handle) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    CHECK_BAD_HANDLES(duplicate(bad, pair.client->ep));
    CHECK_BAD_HANDLES(duplicate(ep, bad));
}

/* ---- States ------------------------------------------------------------------------------------------------------ */

/* An original that is not connected names no remote end. */
static void check_original(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    DAT_EP_HANDLE ep = new_ep(scene.pair.client, (Options){0});
    CHECK_SUB(duplicate(ep, scene.ep), DAT_INVALID_STATE, subtype_of(state));
    CHECK_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED);
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(ep_dup_connect__original_unconnected) { check_original(DAT_EP_STATE_UNCONNECTED); }
TEST(ep_dup_connect__original_reserved) { check_original(DAT_EP_STATE_RESERVED); }
TEST(ep_dup_connect__original_passive_pending) { check_original(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_dup_connect__original_tentative_pending) { check_original(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(ep_dup_connect__original_active_pending) { check_original(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(ep_dup_connect__original_disconnect_pending) { check_original(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(ep_dup_connect__original_disconnected) { check_original(DAT_EP_STATE_DISCONNECTED); }

/* The endpoint itself has to be unconnected. The original is connected in every scene: a second pair's. */
static void check_copy(DAT_EP_STATE state) {
    const Pair pair = connected_pair_here((Options){0});
    const Scene scene = scene_beside(pair.client, state);
    CHECK_SUB(duplicate(scene.ep, pair.client->ep), DAT_INVALID_STATE, subtype_of(state));
    CHECK_EQ(state_of(scene.ep), state);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
}

TEST(ep_dup_connect__reserved) { check_copy(DAT_EP_STATE_RESERVED); }
TEST(ep_dup_connect__passive_pending) { check_copy(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_dup_connect__tentative_pending) { check_copy(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(ep_dup_connect__active_pending) { check_copy(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(ep_dup_connect__connected) { check_copy(DAT_EP_STATE_CONNECTED); }
TEST(ep_dup_connect__disconnect_pending) { check_copy(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(ep_dup_connect__disconnected) { check_copy(DAT_EP_STATE_DISCONNECTED); }

TEST(ep_dup_connect__of_itself) {
    const Pair pair = connected_pair_here((Options){0});
    CHECK_SUB(duplicate(pair.client->ep, pair.client->ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
    tell(pair.client, pair.server);
    pair_close(&pair);
}

/* ---- Not established --------------------------------------------------------------------------------------------- */

/* After any end the endpoint can be reset, and duplicate again. */
static void check_reusable(const Pair *pair, DAT_EP_HANDLE ep) {
    CHECK_OK(dat_ep_reset(ep));
    CHECK_OK(duplicate(ep, pair->client->ep));
    DAT_EP_HANDLE other = accept_on(pair->server);
    check_event(pair->client, ep, DAT_CONNECTION_EVENT_ESTABLISHED);
    check_event(pair->server, other, DAT_CONNECTION_EVENT_ESTABLISHED);
    check_joined(pair, ep, other);
}

TEST(ep_dup_connect__rejected) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    CHECK_OK(duplicate(ep, pair.client->ep));
    CHECK_OK(dat_cr_reject(request_on(pair.server->evds[CR]), 0, NULL));
    check_ended(pair.client, ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
    check_reusable(&pair, ep);
}

/* "Remote Consumer is not listening on the requested Connection Qualifier", any more. */
TEST(ep_dup_connect__nobody_listens) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    CHECK_OK(dat_psp_free(pair.server->psp));
    CHECK_OK(duplicate(ep, pair.client->ep));
    check_ended(pair.client, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
}

TEST(ep_dup_connect__timed_out) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    Request request = usual;
    request.timeout = MEDIUM_US;
    const DAT_TIMEOUT start = clock_us();
    CHECK_OK(duplicate_with(ep, pair.client->ep, request));
    check_ended(pair.client, ep, DAT_CONNECTION_EVENT_TIMED_OUT);
    CHECK_TOOK(start, request.timeout);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
    CHECK_OK(dat_cr_reject(request_on(pair.server->evds[CR]), 0, NULL));
    check_reusable(&pair, ep);
}

/* "The remote host does not respond": the process is stopped. */
TEST(ep_dup_connect__a_server_that_is_stopped) {
    const Pair pair = connected_pair((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    Request request = usual;
    request.timeout = 2 * SHORT_US;
    peer_stop(pair.server->process);
    const DAT_TIMEOUT start = clock_us();
    CHECK_OK(duplicate_with(ep, pair.client->ep, request));
    check_ended(pair.client, ep, DAT_CONNECTION_EVENT_TIMED_OUT);
    CHECK_TOOK(start, request.timeout);
    peer_continue(pair.server->process);
}

/* The passive side's remote end is an endpoint that nobody listens at: it asked, it was not asked. */
TEST(ep_dup_connect__of_the_passive_side) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.server, (Options){0});
    DAT_RETURN rc = duplicate(ep, pair.server->ep);
    if (on_loopback()) CHECK_OK(rc);
    if (DAT_GET_TYPE(rc) != DAT_SUCCESS) {
        CHECK_RC(rc, DAT_INVALID_PARAMETER);
        CHECK_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED);
    } else {
        check_ended(pair.server, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    }
}

/* "Backlog of the requested Service Point is full": what its EVD has no room for is refused. */
TEST(ep_dup_connect__more_requests_than_the_backlog) {
    const Pair pair = connected_pair_here((Options){0});
    Side *busy = new_side(NULL);
    side_open_beside(busy, pair.server, (Options){.evd_qlen = 2});
    listen_at(busy);
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    CHECK_OK(dat_ep_reset(pair.client->ep));
    CHECK_OK(request_to(busy, pair.client->ep, busy->qual));
    CHECK_OK(dat_cr_accept(request_on(busy->evds[CR]), busy->ep, 0, NULL));
    check_event(pair.client, pair.client->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
    for (int i = 0; i < 2; ++i) CHECK_OK(duplicate(new_ep(pair.client, (Options){0}), pair.client->ep));
    DAT_EP_HANDLE refused = new_ep(pair.client, (Options){0});
    CHECK_OK(duplicate(refused, pair.client->ep));
    DAT_EVENT event;
    CHECK_OK(dat_evd_wait(pair.client->evds[CONN], long_us(), 1, &event, &(DAT_COUNT){0}));
    /* Connection managers of devices do not tell why a request is refused. */
    CHECK(event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
          (event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED && !on_loopback()));
    CHECK(event.event_data.connect_event_data.ep_handle == refused);
    CHECK_EQ(state_of(refused), DAT_EP_STATE_DISCONNECTED);
}
