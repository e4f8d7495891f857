/* SPDX-License-Identifier: BSD-3-Clause
 * dat_evd_post_se, queues that are full, and EVDs of several streams.
 */
#include "side.h"

static DAT_RETURN post_event(DAT_EVD_HANDLE evd, uintptr_t number) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    event.event_data.software_event_data.pointer = (DAT_PVOID)number;
    return dat_evd_post_se(evd, &event);
}

static DAT_COUNT length_of(DAT_EVD_HANDLE evd) {
    DAT_EVD_PARAM param;
    CHECK_OK(dat_evd_query(evd, DAT_EVD_FIELD_EVD_QLEN, &param));
    return param.evd_qlen;
}

static DAT_EVD_HANDLE short_evd(DAT_IA_HANDLE ia, DAT_EVD_FLAGS flags) {
    DAT_EVD_HANDLE evd;
    CHECK_OK(dat_evd_create(ia, 2, DAT_HANDLE_NULL, flags, &evd));
    return evd;
}

TEST(evd_post_se__the_event_belongs_to_the_evd) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT}, back;
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    event.evd_handle = DAT_HANDLE_NULL; /* which the provider fills */
    event.event_data.software_event_data.pointer = &event;
    CHECK_OK(dat_evd_post_se(evd, &event));
    CHECK_OK(dat_evd_dequeue(evd, &back));
    CHECK_EQ(back.event_number, DAT_SOFTWARE_EVENT);
    CHECK(back.evd_handle == evd);
    CHECK(back.event_data.software_event_data.pointer == &event);
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(evd_post_se__invalid_event) {
    DAT_EVENT event = {.event_number = DAT_DTO_COMPLETION_EVENT};
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    CHECK_SUB(dat_evd_post_se(evd, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_evd_post_se(evd, &event), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(evd_post_se__to_an_evd_of_other_streams) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_DTO_FLAG);
    CHECK_SUB(post_event(evd, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* A full queue refuses, and that is no overflow. */
TEST(evd_post_se__full) {
    DAT_EVENT event;
    DAT_EVD_HANDLE async_evd;
    DAT_IA_HANDLE ia = open_ia(&async_evd);
    DAT_EVD_HANDLE evd = short_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    uintptr_t length = (uintptr_t)length_of(evd), posted = 0;
    DAT_RETURN rc = DAT_SUCCESS;
    CHECK(length >= 2);
    while ((rc = post_event(evd, posted)) == DAT_SUCCESS && posted <= length) ++posted;
    CHECK_RC(rc, DAT_QUEUE_FULL);
    CHECK_EQ(posted, length);
    CHECK_RC(dat_evd_dequeue(async_evd, &event), DAT_QUEUE_EMPTY);
    for (uintptr_t i = 0; i < posted; ++i) {
        CHECK_OK(dat_evd_dequeue(evd, &event));
        CHECK_EQ((uintptr_t)event.event_data.software_event_data.pointer, i);
    }
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
    CHECK_OK(post_event(evd, 0));
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* Connections of one side, each with an endpoint of its own, that report to one EVD here. */
static void connect_many(const Pair *pair, DAT_EVD_HANDLE conn_evd, DAT_EP_HANDLE *eps, int count) {
    DAT_EVD_HANDLE own = pair->client->evds[CONN];
    DAT_EP_HANDLE first = pair->client->ep, server_ep = pair->server->ep;
    pair->client->evds[CONN] = conn_evd;
    for (int i = 0; i < count; ++i) {
        eps[2 * i] = pair->client->ep = new_ep(pair->client, (Options){0});
        eps[2 * i + 1] = pair->server->ep = new_ep(pair->server, (Options){0});
        begin_connecting(pair);
        next_event(pair->server, CONN);
    }
    pair->client->evds[CONN] = own;
    pair->client->ep = first;
    pair->server->ep = server_ep;
}

/* The length that is asked for is a minimum: no event of a connection is lost, however short the EVD. */
TEST(evd_length__connection_events) {
    enum { CONNECTIONS = 20 };
    DAT_EP_HANDLE eps[2 * CONNECTIONS];
    DAT_EVENT event;
    DAT_COUNT more;
    Pair pair = open_pair_here((Options){0});
    DAT_EVD_HANDLE evd = short_evd(pair.client->ia, DAT_EVD_CONNECTION_FLAG);
    connect_many(&pair, evd, eps, CONNECTIONS);
    for (int i = 0; i < CONNECTIONS; ++i) {
        while (state_of(eps[2 * i]) != DAT_EP_STATE_CONNECTED) continue;
        CHECK_OK(dat_ep_disconnect(eps[2 * i], DAT_CLOSE_ABRUPT_FLAG));
    }
    CHECK(length_of(evd) >= 2);
    CHECK_RC(dat_evd_resize(evd, 3), DAT_INVALID_STATE); /* more wait */
    int established = 0, disconnected = 0;
    while (established < CONNECTIONS || disconnected < CONNECTIONS) {
        CHECK_OK(dat_evd_wait(evd, long_us(), 1, &event, &more));
        established += event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED;
        disconnected += event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED;
    }
    CHECK_EQ(established + disconnected, 2 * CONNECTIONS);
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
    CHECK(!poll_event(pair.client, ASYNC, &event));
    CHECK_OK(dat_ia_close(pair.client->ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Completions that nobody takes: either the EVD has room for them all, or the EVD of the IA is told. */
TEST(evd_overflow__completions) {
    DAT_EVENT event;
    Pair pair = connected_pair_here((Options){.evd_qlen = 2, .request_dtos = 2});
    unsigned posted = 0, length = (unsigned)length_of(pair.client->evds[REQUEST]);
    DAT_RETURN rc = DAT_SUCCESS;
    if (length > 1000) skip("the shortest EVD is too long for this case");
    for (; rc == DAT_SUCCESS && posted < length + 100; posted += rc == DAT_SUCCESS) {
        rc = post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = posted});
    }
    if (rc != DAT_SUCCESS) CHECK_RC(rc, DAT_INSUFFICIENT_RESOURCES);
    if (rc == DAT_SUCCESS && poll_event(pair.client, ASYNC, &event)) {
        CHECK_EQ(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
        CHECK(event.event_data.asynch_error_event_data.dat_handle == pair.client->evds[REQUEST]);
    } else {
        for (unsigned i = 0; i < posted; ++i) EXPECT_DONE(pair.client, i);
    }
    CHECK_OK(dat_ia_close(pair.client->ia, DAT_CLOSE_ABRUPT_FLAG));
}

TEST(evd_streams__several_on_one_evd) {
    DAT_EVENT event;
    DAT_EVD_HANDLE evd;
    DAT_PROVIDER_ATTR attributes;
    Side *probe = new_side(NULL);
    side_open(probe, (Options){0});
    CHECK_OK(dat_ia_query(probe->ia, &evd, 0, NULL, DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED, &attributes));
    side_close(probe);
    if (attributes.evd_stream_merging_supported[1][2] == DAT_FALSE) skip("the provider merges fewer streams");
    Pair pair = connected_pair((Options){.one_evd = true});
    evd = pair.client->evds[RECV];
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 2}));
    EXPECT_DONE(pair.client, 2);
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 3}));
    EXPECT_RECEIVED(pair.client, 1);
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_GRACEFUL_FLAG));
    event = EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    CHECK(event.evd_handle == evd);
    EXPECT_DONE(pair.server, 3);
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    side_close(pair.client);
    side_close(pair.server);
}

TEST(evd_streams__several_endpoints_on_one_evd) {
    DAT_EP_HANDLE eps[6];
    Pair pair = open_pair_here((Options){0});
    connect_many(&pair, pair.client->evds[CONN], eps, 3);
    unsigned seen = 0;
    for (int i = 0; i < 3; ++i) {
        DAT_EVENT event = EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
        for (int j = 0; j < 3; ++j)
            seen |= (event.event_data.connect_event_data.ep_handle == eps[2 * j] ? 1u : 0u) << j;
    }
    CHECK_EQ(seen, 7);
    for (int i = 0; i < 3; ++i) {
        pair.client->ep = eps[2 * i];
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = (unsigned)i}));
        pair.server->ep = eps[2 * i + 1];
        CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 9}));
        CHECK(EXPECT_RECEIVED(pair.client, (unsigned)i).ep_handle == pair.client->ep);
        CHECK(EXPECT_DONE(pair.server, 9).ep_handle == pair.server->ep);
    }
    CHECK_OK(dat_ia_close(pair.client->ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* ---- The end of one connection among other events -----------------------------------------------------------------
 */

typedef struct {
    Pair pair;
    DAT_EVD_HANDLE evd; /* of the client, for everything */
} Merged;

static Merged merged_pair_with(Options options) {
    Merged merged = {.pair = open_pair_here(options)};
    Side *client = merged.pair.client;
    merged.evd = new_evd(client->ia, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG);
    client->evds[RECV] = client->evds[REQUEST] = client->evds[CONN] = merged.evd;
    client->ep = new_ep(client, options);
    pair_connect(&merged.pair);
    return merged;
}

static Merged merged_pair(void) { return merged_pair_with((Options){0}); }

/* So many completions come, in the order of their cookies, and all before the end. */
static void expect_before_the_end(DAT_EVD_HANDLE evd, DAT_UINT64 expected) {
    DAT_EVENT event;
    DAT_COUNT more;
    DAT_UINT64 completions = 0;
    bool ended = false;
    while (dat_evd_wait(evd, SHORT_US, 1, &event, &more) == DAT_SUCCESS) {
        if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
            CHECK(!ended);
            CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, completions++);
        }
        ended = ended || event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED;
    }
    CHECK(ended);
    CHECK_EQ(completions, expected);
}

/* What was completed before the end is told before it, whatever else has come. */
TEST(evd_streams__completions_before_the_end) {
    Merged merged = merged_pair();
    for (unsigned i = 0; i < 3; ++i)
        CHECK_OK(post(merged.pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
    CHECK_OK(disconnect(merged.pair.client, DAT_CLOSE_ABRUPT_FLAG));
    CHECK_OK(post_event(merged.evd, 0));
    expect_before_the_end(merged.evd, 3);
}

/* Completions that were counted for an EVD that is short stay before those that were not. */
TEST(evd_streams__completions_in_order_before_the_end) {
    if (!on_loopback()) skip("completions are not there at once");
    Merged merged = merged_pair();
    Side *client = merged.pair.client, *server = merged.pair.server;
    DAT_EP_HANDLE ended = client->ep;
    client->ep = new_ep(client, (Options){0});
    server->ep = new_ep(server, (Options){0});
    pair_connect(&merged.pair);
    const DAT_EP_HANDLE other = client->ep;
    client->ep = ended;
    CHECK_OK(post(client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 3}));
    CHECK_OK(post(client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 0}));
    client->ep = other;
    for (DAT_UINT64 i = 1; i < 3; ++i)
        CHECK_OK(post(client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = i}));
    CHECK_OK(dat_ep_disconnect(ended, DAT_CLOSE_ABRUPT_FLAG));
    CHECK_OK(dat_evd_resize(merged.evd, 2));
    expect_before_the_end(merged.evd, 4);
}

/* A completion does not overtake the beginning of its connection, although it may the end of another one. */
static void check_beginning(Options options) {
    Merged merged = merged_pair_with(options);
    Side *client = merged.pair.client, *server = merged.pair.server;
    CHECK_OK(post_event(merged.evd, 0));
    CHECK_OK(disconnect(client, DAT_CLOSE_ABRUPT_FLAG));
    client->ep = new_ep(client, options);
    server->ep = new_ep(server, options);
    CHECK_OK(connect_to(client, server, NULL, 0));
    take_request(server);
    CHECK_OK(accept_request(server, NULL, 0));
    while (state_of(client->ep) != DAT_EP_STATE_CONNECTED) continue;
    CHECK_OK(post(client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 1}));
    WAIT_ON(merged.evd, DAT_SOFTWARE_EVENT);
    WAIT_ON(merged.evd, DAT_CONNECTION_EVENT_DISCONNECTED);
    WAIT_ON(merged.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
    WAIT_ON(merged.evd, DAT_DTO_COMPLETION_EVENT);
}

TEST(evd_streams__a_completion_behind_its_beginning) { check_beginning((Options){0}); }
TEST(evd_streams__a_completion_of_shared_receives_behind_its_beginning) { check_beginning((Options){.srq = true}); }

/* The same if a poll for completions finds that beginning, too. */
TEST(evd_streams__a_completion_that_comes_with_its_beginning) {
    Merged merged = merged_pair();
    Side *client = merged.pair.client, *server = merged.pair.server;
    DAT_EVENT event;
    client->ep = new_ep(client, (Options){0});
    server->ep = new_ep(server, (Options){0});
    CHECK_OK(post(client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    CHECK_OK(connect_to(client, server, NULL, 0));
    take_request(server);
    CHECK_OK(accept_request(server, NULL, 0));
    CHECK_OK(post(server, (Work){.operation = SEND, .length = 8, .cookie = 2}));
    while (dat_evd_dequeue(merged.evd, &event) != DAT_SUCCESS) continue;
    CHECK_EQ(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
    while (dat_evd_dequeue(merged.evd, &event) != DAT_SUCCESS) continue;
    CHECK_EQ(event.event_number, DAT_DTO_COMPLETION_EVENT);
}

/* Receives are flushed before the end is told, also if the poll that finds them ends the connection. */
TEST(evd_streams__flushed_receives_before_the_end) {
    Pair pair = open_pair_here((Options){0});
    Side *client = pair.client;
    const DAT_EVD_HANDLE evd = new_evd(client->ia, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
    client->evds[RECV] = client->evds[CONN] = evd;
    client->ep = new_ep(client, (Options){0});
    pair_connect(&pair);
    for (unsigned i = 0; i < 3; ++i)
        CHECK_OK(post(client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
    CHECK_OK(post(client, (Work){.operation = READ, .at = RECV_AT, .to = SEND_AT, .length = 8, .cookie = 9}));
    CHECK_OK(disconnect(client, DAT_CLOSE_GRACEFUL_FLAG));
    expect_before_the_end(evd, 3);
}

/* The end of a connection is told although another one never rests. */
static void check_end_beside_work(Options options, bool waits) {
    enum { ROUNDS = 100000 };
    Merged merged = merged_pair_with(options);
    Side *client = merged.pair.client, *server = merged.pair.server;
    DAT_EP_HANDLE ended = client->ep, peer = server->ep;
    DAT_EVENT event;
    DAT_COUNT more;
    client->ep = new_ep(client, (Options){0});
    server->ep = new_ep(server, (Options){0});
    pair_connect(&merged.pair);
    CHECK_OK(post(client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 1}));
    CHECK_OK(dat_ep_disconnect(peer, DAT_CLOSE_ABRUPT_FLAG));
    while (state_of(ended) != DAT_EP_STATE_DISCONNECTED) continue;
    for (int i = 0; i < ROUNDS; ++i) {
        CHECK_OK(post(client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 1}));
        CHECK_OK(waits ? dat_evd_wait(merged.evd, long_us(), 1, &event, &more) : dat_evd_dequeue(merged.evd, &event));
        if (event.event_number == DAT_DTO_COMPLETION_EVENT) continue;
        CHECK_EQ(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
        CHECK(event.event_data.connect_event_data.ep_handle == ended);
        return;
    }
    fail(__FILE__, __LINE__, "DAT_CONNECTION_EVENT_DISCONNECTED does not come");
}

TEST(evd_streams__an_end_beside_work) {
    if (!on_loopback()) skip("completions are not there at once");
    check_end_beside_work((Options){0}, false);
}
TEST(evd_streams__an_end_beside_work_waited_for) {
    if (!on_loopback()) skip("completions are not there at once");
    check_end_beside_work((Options){0}, true);
}

/* Completions that nobody takes, of endpoints with more work than their EVDs have room for: there is room for them all,
 * or the EVD of the IA is told. */
static void expect_all(const Pair *pair, Stream stream, unsigned count, DAT_DTO_COMPLETION_STATUS status) {
    DAT_EVENT event;
    if (poll_event(pair->client, ASYNC, &event)) {
        CHECK_EQ(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
        CHECK(!on_loopback());
    } else {
        for (unsigned i = 0; i < count; ++i) EXPECT_DTO(pair->client, stream, i, status);
    }
    CHECK_OK(dat_ia_close(pair->client->ia, DAT_CLOSE_ABRUPT_FLAG));
}

enum { MUCH = 200 };

static void post_receives(const Pair *pair) {
    for (unsigned i = 0; i < MUCH; ++i)
        CHECK_OK(post(pair->client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
}

TEST(evd_overflow__flushed_receives) {
    Pair pair = connected_pair_here((Options){.evd_qlen = 2, .recv_dtos = MUCH});
    post_receives(&pair);
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    expect_all(&pair, RECV, MUCH, DAT_DTO_ERR_FLUSHED);
}

TEST(evd_overflow__flushed_receives_of_a_resized_evd) {
    Pair pair = connected_pair_here((Options){.recv_dtos = MUCH});
    post_receives(&pair);
    CHECK_OK(dat_evd_resize(pair.client->evds[RECV], 2));
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    expect_all(&pair, RECV, MUCH, DAT_DTO_ERR_FLUSHED);
}

TEST(evd_overflow__requests) {
    Pair pair = connected_pair_here((Options){.evd_qlen = 2, .request_dtos = MUCH});
    for (unsigned i = 0; i < MUCH; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = i}));
    expect_all(&pair, REQUEST, MUCH, DAT_DTO_SUCCESS);
}
TEST(evd_streams__an_end_of_shared_receives_beside_work) {
    if (!on_loopback()) skip("completions are not there at once");
    check_end_beside_work((Options){.srq = true}, false);
}
TEST(evd_streams__an_end_of_shared_receives_beside_work_waited_for) {
    if (!on_loopback()) skip("completions are not there at once");
    check_end_beside_work((Options){.srq = true}, true);
}
