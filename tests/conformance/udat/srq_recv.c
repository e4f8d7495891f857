/* SPDX-License-Identifier: BSD-3-Clause
 * Endpoints with a shared receive queue: dat_ep_create_with_srq, messages, watermarks, dat_ep_recv_query.
 */
#include "scene.h"

enum { CONNECTIONS = 3 };

static void receive(Side *side, DAT_UINT64 cookie, size_t offset) {
    CHECK_OK(post(side, (Work){.operation = SRQ_RECEIVE, .at = RECV_AT + offset, .length = 1000, .cookie = cookie}));
}

static void send_message(Side *side, DAT_UINT64 cookie, DAT_SEG_LENGTH length) {
    CHECK_OK(post(side, (Work){.operation = SEND, .length = length, .cookie = cookie}));
    EXPECT_DONE(side, cookie);
}

/* The client receives by the shared queue. */
static Pair srq_pair(void) { return connected_pair_of((Options){.srq = true}, (Options){0}); }

TEST(srq__messages_into_the_queue) {
    Pair pair = srq_pair();
    for (unsigned i = 0; i < 4; ++i) receive(pair.client, 10 + i, 1000 * i);
    fill(pair.server, SEND_AT, 1000, 4);
    for (unsigned i = 0; i < 4; ++i) send_message(pair.server, i, 250 * (i + 1));
    for (unsigned i = 0; i < 4; ++i) {
        DAT_DTO_COMPLETION_EVENT_DATA data = EXPECT_RECEIVED(pair.client, 10 + i);
        CHECK(data.ep_handle == pair.client->ep);
        CHECK_EQ(data.transfered_length, 250 * (i + 1));
        CHECK_EQ(data.operation, DAT_DTO_RECEIVE);
        CHECK(filled(pair.client, RECV_AT + 1000 * i, 250 * (i + 1), 4));
    }
    pair_close(&pair);
}

TEST(srq__several_segments) {
    Pair pair = srq_pair();
    DAT_LMR_TRIPLET pieces[3] = {piece(pair.client, RECV_AT, 100), piece(pair.client, RECV_AT + 5000, 10),
                                 piece(pair.client, RECV_AT + 110, 500)};
    CHECK_OK(dat_srq_post_recv(pair.client->srq, 3, pieces, (DAT_DTO_COOKIE){.as_64 = 1}));
    fill(pair.server, SEND_AT, 400, 4);
    send_message(pair.server, 2, 400);
    CHECK_EQ(EXPECT_RECEIVED(pair.client, 1).transfered_length, 400);
    memcpy(pair.client->memory + RECV_AT + 100, pair.client->memory + RECV_AT + 5000, 10);
    CHECK(filled(pair.client, RECV_AT, 400, 4));
    pair_close(&pair);
}

/* Memory that cannot be received into is found out when it is posted, or when the message comes. */
static void expect_no_reception(Pair pair, DAT_LMR_TRIPLET triplet, DAT_RETURN_TYPE type) {
    DAT_RETURN rc = dat_srq_post_recv(pair.client->srq, 1, &triplet, (DAT_DTO_COOKIE){.as_64 = 1});
    if (on_loopback()) CHECK_OK(rc);
    if (rc != DAT_SUCCESS) {
        CHECK_RC(rc, type);
        return;
    }
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 64, .cookie = 2}));
    EXPECT_DTO(pair.client, RECV, 1, DAT_DTO_ERR_LOCAL_PROTECTION);
    DAT_EVENT event = next_event(pair.client, CONN);
    CHECK(event.event_number == DAT_CONNECTION_EVENT_BROKEN || event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
}

TEST(srq_post_recv__beyond_the_region) {
    Pair pair = srq_pair();
    expect_no_reception(pair, piece(pair.client, MEMORY_BYTES - 4, 64), DAT_INVALID_PARAMETER);
}

TEST(srq_post_recv__memory_that_does_not_exist) {
    Pair pair = srq_pair();
    pair.client->lmr_context ^= 0x5a5a00;
    expect_no_reception(pair, piece(pair.client, RECV_AT, 64), DAT_PRIVILEGES_VIOLATION);
}

TEST(srq_post_recv__memory_of_another_zone) {
    Pair pair = srq_pair();
    Side *client = pair.client;
    new_lmr(client->ia, new_pz(client->ia), client->memory, MEMORY_BYTES, &client->lmr_context);
    expect_no_reception(pair, piece(client, RECV_AT, 64), DAT_PROTECTION_VIOLATION);
}

TEST(srq_post_recv__memory_that_must_not_be_written) {
    Pair pair = connected_pair_of((Options){.srq = true, .privileges = DAT_MEM_PRIV_LOCAL_READ_FLAG}, (Options){0});
    expect_no_reception(pair, piece(pair.client, RECV_AT, 64), DAT_PRIVILEGES_VIOLATION);
}

/* As many endpoints of the client as connections, all with its queue and its EVDs. */
TEST(srq__several_endpoints) {
    DAT_EP_HANDLE client_eps[CONNECTIONS], server_eps[CONNECTIONS];
    Pair pair = open_pair_here((Options){.srq = true});
    Side *client = pair.client, *server = pair.server;
    server->srq = DAT_HANDLE_NULL; /* its endpoints have queues of their own */
    for (int i = 0; i < CONNECTIONS; ++i) {
        client_eps[i] = client->ep = new_ep(client, (Options){0});
        server_eps[i] = server->ep = new_ep(server, (Options){0});
        begin_connecting(&pair);
        EXPECT_EVENT(client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
        EXPECT_EVENT(server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    }
    for (unsigned i = 0; i < CONNECTIONS; ++i) receive(client, i, 1000 * i);
    unsigned seen = 0;
    for (unsigned i = 0; i < CONNECTIONS; ++i) {
        server->ep = server_eps[i];
        send_message(server, 100 + i, 10 + i);
        DAT_EVENT event = EXPECT_EVENT(client, RECV, DAT_DTO_COMPLETION_EVENT);
        const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;
        CHECK_EQ(data->status, DAT_DTO_SUCCESS);
        CHECK(data->ep_handle == client_eps[i]);
        CHECK_EQ(data->transfered_length, 10 + i);
        seen |= 1u << data->user_cookie.as_64;
    }
    CHECK_EQ(seen, (1u << CONNECTIONS) - 1);
    CHECK_OK(dat_ia_close(client->ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Without a receive the sender waits, as with a queue of the endpoint's own. */
TEST(srq__a_receive_posted_late) {
    DAT_EVENT event;
    Pair pair = srq_pair();
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 1}));
    CHECK(!poll_event(pair.client, RECV, &event));
    receive(pair.client, 2, 0);
    EXPECT_RECEIVED(pair.client, 2);
    EXPECT_DONE(pair.server, 1);
    pair_close(&pair);
}

/* Disconnecting one endpoint leaves what it has not taken to the others. */
TEST(srq__receives_survive_a_connection) {
    DAT_EVENT event;
    Pair pair = srq_pair();
    receive(pair.client, 1, 0);
    receive(pair.client, 2, 1000);
    send_message(pair.server, 3, 8);
    EXPECT_RECEIVED(pair.client, 1);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK(!poll_event(pair.client, RECV, &event));
    DAT_SRQ_PARAM param;
    CHECK_OK(dat_srq_query(pair.client->srq, DAT_SRQ_FIELD_ALL, &param));
    CHECK(param.available_dto_count == 1 || param.available_dto_count == DAT_VALUE_UNKNOWN);
    throw_away_events(pair.server);
    side_close(pair.client);
    side_close(pair.server);
}

/* Beyond the pages: what tells that an endpoint takes no receive any more. */
TEST(srq__an_endpoint_has_taken_its_last_receive) {
    Pair pair = srq_pair();
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    DAT_EVENT event = next_event(pair.client, ASYNC);
    CHECK_EQ(event.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
    CHECK(event.event_data.asynch_error_event_data.dat_handle == pair.client->ep);
    throw_away_events(pair.server);
    side_close(pair.client);
    side_close(pair.server);
}

/* The length of the EVD that is asked for is a minimum: each endpoint is told of. */
TEST(srq__more_endpoints_than_the_asynchronous_evd_is_long) {
    enum { ENDPOINTS = 20 };
    DAT_EP_HANDLE eps[ENDPOINTS];
    Pair pair = {new_side(NULL), new_side(NULL)};
    side_open(pair.client, (Options){.srq = true, .evd_qlen = 8});
    side_open(pair.server, (Options){0});
    listen_at(pair.server);
    for (int i = 0; i < ENDPOINTS; ++i) {
        eps[i] = pair.client->ep = new_ep(pair.client, (Options){0});
        pair.server->ep = new_ep(pair.server, (Options){0});
        pair_connect(&pair);
    }
    for (int i = 0; i < ENDPOINTS; ++i) CHECK_OK(dat_ep_disconnect(eps[i], DAT_CLOSE_ABRUPT_FLAG));
    for (int i = 0; i < ENDPOINTS; ++i) {
        DAT_EVENT event = EXPECT_EVENT(pair.client, ASYNC, DAT_ASYNC_ERROR_EP_BROKEN);
        CHECK(event.event_data.asynch_error_event_data.dat_handle == eps[i]);
    }
    CHECK_OK(dat_ia_close(pair.client->ia, DAT_CLOSE_ABRUPT_FLAG));
    CHECK_OK(dat_ia_close(pair.server->ia, DAT_CLOSE_ABRUPT_FLAG));
}

TEST(srq_query__counts_as_messages_come) {
    Pair pair = srq_pair();
    DAT_SRQ_PARAM param;
    for (unsigned i = 0; i < 3; ++i) receive(pair.client, i, 1000 * i);
    send_message(pair.server, 9, 8);
    CHECK_OK(dat_srq_query(pair.client->srq, DAT_SRQ_FIELD_ALL, &param));
    CHECK(param.available_dto_count == 2 || param.available_dto_count == DAT_VALUE_UNKNOWN);
    CHECK(param.outstanding_dto_count == 3 || param.outstanding_dto_count == DAT_VALUE_UNKNOWN);
    EXPECT_RECEIVED(pair.client, 0);
    CHECK_OK(dat_srq_query(pair.client->srq, DAT_SRQ_FIELD_ALL, &param));
    CHECK(param.outstanding_dto_count == 2 || param.outstanding_dto_count == DAT_VALUE_UNKNOWN);
    pair_close(&pair);
}

TEST(ep_create_with_srq__receives_only_by_the_queue) {
    Side *side = new_side(NULL);
    DAT_EP_PARAM param;
    side_open(side, (Options){.srq = true});
    CHECK_OK(dat_ep_query(side->ep, DAT_EP_FIELD_SRQ_HANDLE, &param));
    CHECK(param.srq_handle == side->srq);
    DAT_LMR_TRIPLET triplet = piece(side, RECV_AT, 8);
    DAT_RETURN rc = dat_ep_post_recv(side->ep, 1, &triplet, (DAT_DTO_COOKIE){.as_64 = 1}, DAT_COMPLETION_DEFAULT_FLAG);
    CHECK_EITHER(rc, DAT_INVALID_STATE, DAT_INVALID_PARAMETER);
    side_close(side);
}

/* Connects a client whose endpoint with the shared queue has these attributes. */
static Pair pair_with(DAT_EP_ATTR attributes, bool with_recv_evd) {
    Pair pair = open_pair_here((Options){.srq = true});
    Side *client = pair.client;
    CHECK_OK(dat_ep_free(client->ep));
    CHECK_OK(dat_ep_create_with_srq(client->ia, client->pz, with_recv_evd ? client->evds[RECV] : DAT_HANDLE_NULL,
                                    client->evds[REQUEST], client->evds[CONN], client->srq, &attributes, &client->ep));
    pair_connect(&pair);
    return pair;
}

/* "The Consumer is not interested in events for completions": of as many messages as come. The shared queue may be
 * longer than max_recv_dtos of the endpoint, and may become so. */
TEST(ep_create_with_srq__no_evd_for_receives) {
    DAT_EVENT event;
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    attributes.max_recv_dtos = 1;
    Pair pair = pair_with(attributes, false);
    unsigned sent = 0;
    for (unsigned depth = DTOS; depth <= 4 * DTOS; depth *= 2) {
        if (depth != DTOS) CHECK_OK(dat_srq_resize(pair.client->srq, (DAT_COUNT)depth));
        for (unsigned i = 0; i < depth; ++i) receive(pair.client, i, 0);
        for (unsigned i = 0; i < depth; ++i) send_message(pair.server, ++sent, 8);
    }
    CHECK(!poll_event(pair.client, RECV, &event) && !poll_event(pair.client, ASYNC, &event));
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
    pair_close(&pair);
}

/* The flag permits receives of the endpoint to be unsignalled; those of the queue have no flags. */
TEST(ep_create_with_srq__cookies_where_receives_may_be_unsignalled) {
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    attributes.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
    Pair pair = pair_with(attributes, true);
    for (unsigned i = 0; i < 3; ++i) receive(pair.client, 77 - i, 0);
    for (unsigned i = 0; i < 3; ++i) {
        send_message(pair.server, i, 8);
        EXPECT_RECEIVED(pair.client, 77 - i);
    }
    pair_close(&pair);
}

TEST(ep_create_with_srq__invalid_arguments) {
    Side *side = new_side(NULL);
    DAT_EP_HANDLE ep;
    side_open(side, (Options){.srq = true});
    const DAT_EVD_HANDLE *evds = side->evds;
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    CHECK_RC(dat_ep_create_with_srq(side->ia, side->pz, evds[RECV], evds[REQUEST], evds[CONN], side->srq, NULL, &ep),
             DAT_INVALID_PARAMETER);
    CHECK_RC(
        dat_ep_create_with_srq(side->ia, side->pz, evds[RECV], evds[REQUEST], evds[CONN], side->srq, &attributes, NULL),
        DAT_INVALID_PARAMETER);
    CHECK_RC(
        dat_ep_create_with_srq(side->ia, side->pz, evds[RECV], evds[REQUEST], evds[CONN], side->pz, &attributes, &ep),
        DAT_INVALID_HANDLE);
    CHECK_RC(
        dat_ep_create_with_srq(side->ia, side->srq, evds[RECV], evds[REQUEST], evds[CONN], side->srq, &attributes, &ep),
        DAT_INVALID_HANDLE);
    const DAT_HANDLE valid[] = {side->ia, side->pz, evds[RECV], evds[REQUEST], evds[CONN], side->srq};
    for (int which = 0; which < 6; ++which) {
        DAT_HANDLE h[6];
        memcpy(h, valid, sizeof h);
        for (size_t i = 1; i < bad_handle_count; ++i) { /* some may be DAT_HANDLE_NULL */
            h[which] = bad_handles[i];
            CHECK_RC(dat_ep_create_with_srq(h[0], h[1], h[2], h[3], h[4], h[5], &attributes, &ep), DAT_INVALID_HANDLE);
        }
        h[which] = which == 0 ? side->pz : side->ia;
        CHECK_RC(dat_ep_create_with_srq(h[0], h[1], h[2], h[3], h[4], h[5], &attributes, &ep), DAT_INVALID_HANDLE);
    }
    attributes.max_request_dtos = -1;
    CHECK_RC(
        dat_ep_create_with_srq(side->ia, side->pz, evds[RECV], evds[REQUEST], evds[CONN], side->srq, &attributes, &ep),
        DAT_INVALID_PARAMETER);
    side_close(side);
}

/* Where the provider allows it. */
TEST(ep_create_with_srq__another_zone) {
    Side *side = new_side(NULL);
    DAT_EP_HANDLE ep;
    DAT_EVD_HANDLE evd;
    DAT_PROVIDER_ATTR attributes;
    side_open(side, (Options){.srq = true});
    DAT_PZ_HANDLE other = new_pz(side->ia);
    DAT_EP_ATTR ep_attr = ep_attributes((Options){0});
    CHECK_OK(dat_ia_query(side->ia, &evd, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attributes));
    DAT_RETURN rc = dat_ep_create_with_srq(side->ia, other, side->evds[RECV], side->evds[REQUEST], side->evds[CONN],
                                           side->srq, &ep_attr, &ep);
    if (attributes.srq_ep_pz_difference_supported == DAT_TRUE) {
        CHECK_OK(rc);
        CHECK_OK(dat_ep_free(ep));
    } else {
        CHECK_RC(rc, DAT_INVALID_PARAMETER);
    }
    CHECK_OK(dat_pz_free(other));
    side_close(side);
}

/* One event. No event number is defined for it. */
static void expect_low(Side *side) {
    DAT_EVENT event = next_event(side, ASYNC), more;
    const DAT_ASYNCH_ERROR_EVENT_DATA *data = &event.event_data.asynch_error_event_data;
    if (on_loopback()) CHECK_EQ(event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
    CHECK(data->dat_handle == side->srq);
    CHECK_EQ(data->reason, DAT_SRQ_LOW_WATERMARK_EVENT);
    CHECK(!poll_event(side, ASYNC, &more));
}

TEST(srq_set_lw__an_event_when_receives_become_few) {
    DAT_EVENT event;
    DAT_SRQ_PARAM param;
    Pair pair = srq_pair();
    for (unsigned i = 0; i < 4; ++i) receive(pair.client, i, 1000 * i);
    CHECK_OK(dat_srq_set_lw(pair.client->srq, 3));
    CHECK_OK(dat_srq_query(pair.client->srq, DAT_SRQ_FIELD_LOW_WATERMARK, &param));
    CHECK_EQ(param.low_watermark, 3);
    send_message(pair.server, 9, 8);
    EXPECT_RECEIVED(pair.client, 0);
    CHECK(!poll_event(pair.client, ASYNC, &event)); /* three are not below three */
    send_message(pair.server, 9, 8);
    EXPECT_RECEIVED(pair.client, 1);
    expect_low(pair.client);
    send_message(pair.server, 9, 8);
    EXPECT_RECEIVED(pair.client, 2);
    CHECK(!poll_event(pair.client, ASYNC, &event)); /* once for each setting */
    CHECK_OK(dat_srq_set_lw(pair.client->srq, 1));
    send_message(pair.server, 9, 8);
    EXPECT_RECEIVED(pair.client, 3);
    expect_low(pair.client);
    pair_close(&pair);
}

TEST(srq_set_lw__already_few) {
    Pair pair = srq_pair();
    receive(pair.client, 0, 0);
    CHECK_OK(dat_srq_set_lw(pair.client->srq, 2));
    expect_low(pair.client);
    pair_close(&pair);
}

TEST(srq_set_lw__back_to_none) {
    DAT_EVENT event;
    Pair pair = srq_pair();
    receive(pair.client, 0, 0);
    receive(pair.client, 1, 1000);
    CHECK_OK(dat_srq_set_lw(pair.client->srq, 2));
    CHECK_OK(dat_srq_set_lw(pair.client->srq, DAT_SRQ_LW_DEFAULT));
    send_message(pair.server, 9, 8);
    EXPECT_RECEIVED(pair.client, 0);
    CHECK(!poll_event(pair.client, ASYNC, &event));
    pair_close(&pair);
}

/* Both counts may be unknown; then the operation need not be supported. */
/* "Except max_recv_iov that is ignored". */
TEST(ep_create_with_srq__the_queue_says_how_many_segments) {
    Side *side = new_side(NULL);
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    side_open(side, (Options){.srq = true});
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    const DAT_EVD_HANDLE *evds = side->evds;
    attributes.max_recv_iov = INT32_MAX;
    CHECK_OK(
        dat_ep_create_with_srq(side->ia, side->pz, evds[RECV], evds[REQUEST], evds[CONN], side->srq, &attributes, &ep));
    CHECK_OK(dat_ep_free(ep));
    side_close(side);
}

static void check_recv_query(DAT_EP_HANDLE ep, DAT_COUNT allocated) {
    DAT_COUNT count = 77, span = 77;
    CHECK_OK(dat_ep_recv_query(ep, &count, &span));
    CHECK_EQ(count, allocated);
    CHECK_EQ(span, DAT_VALUE_UNKNOWN);
    count = span = 77;
    CHECK_OK(dat_ep_recv_query(ep, NULL, &span));
    CHECK_OK(dat_ep_recv_query(ep, &count, NULL));
    CHECK(count == allocated && span == DAT_VALUE_UNKNOWN);
    CHECK_OK(dat_ep_recv_query(ep, NULL, NULL));
}

TEST(ep_recv_query__with_a_shared_queue) {
    Pair pair = srq_pair();
    receive(pair.client, 0, 0);
    check_recv_query(pair.client->ep, DAT_VALUE_UNKNOWN); /* the receive is the queue's */
    pair_close(&pair);
}

TEST(ep_recv_query__with_a_queue_of_its_own) {
    Pair pair = connected_pair((Options){0});
    check_recv_query(pair.client->ep, 0);
    for (unsigned i = 0; i < 2; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
    check_recv_query(pair.client->ep, 2);
    send_message(pair.server, 9, 8);
    check_recv_query(pair.client->ep, 1); /* "for which completions have not yet been generated" */
    EXPECT_RECEIVED(pair.client, 0);
    check_recv_query(pair.client->ep, 1);
    pair_close(&pair);
}

/* Marks that are never reached are always possible; others where the provider says so. */
TEST(ep_set_watermark__infinite) {
    Pair pair = srq_pair();
    CHECK_EITHER(dat_ep_set_watermark(pair.client->ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE), DAT_SUCCESS,
                 DAT_MODEL_NOT_SUPPORTED);
    for (unsigned i = 0; i < DTOS; ++i) receive(pair.client, i, 1000 * i);
    for (unsigned i = 0; i < DTOS; ++i) { /* as many as there can be: no mark is reached */
        send_message(pair.server, 9, 8);
        EXPECT_RECEIVED(pair.client, i);
    }
    expect_nothing(pair.client);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
    pair_close(&pair);
}

TEST(ep_set_watermark__invalid) {
    Side *side = new_side(NULL);
    side_open(side, (Options){.srq = true});
    CHECK_EITHER(dat_ep_set_watermark(side->ep, -2, DAT_WATERMARK_INFINITE), DAT_INVALID_PARAMETER,
                 DAT_MODEL_NOT_SUPPORTED);
    CHECK_EITHER(dat_ep_set_watermark(side->ep, DAT_WATERMARK_INFINITE, -2), DAT_INVALID_PARAMETER,
                 DAT_MODEL_NOT_SUPPORTED);
    side_close(side);
}

TEST(ep_set_watermark__soft) {
    Pair pair = connected_pair((Options){0});
    DAT_RETURN rc = dat_ep_set_watermark(pair.client->ep, 1, DAT_WATERMARK_INFINITE);
    if ((provider_attributes(pair.client->ia).srq_watermarks_supported & ~1) == 0) { /* the low one at most */
        CHECK_RC(rc, DAT_MODEL_NOT_SUPPORTED);
        CHECK_RC(dat_ep_set_watermark(pair.client->ep, DAT_WATERMARK_INFINITE, 1), DAT_MODEL_NOT_SUPPORTED);
        CHECK_RC(dat_ep_set_watermark(pair.client->ep, 1, 2), DAT_MODEL_NOT_SUPPORTED);
        CHECK_RC(dat_ep_set_watermark(pair.client->ep, 0, 0), DAT_MODEL_NOT_SUPPORTED);
        pair_close(&pair);
        return;
    }
    CHECK_OK(rc);
    for (unsigned i = 0; i < 2; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
    DAT_EVENT event = next_event(pair.client, ASYNC);
    CHECK(event.event_data.asynch_error_event_data.dat_handle == pair.client->ep);
    CHECK_EQ(event.event_data.asynch_error_event_data.reason, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
    pair_close(&pair);
}

/* The queue of the EVD grows with that of the receives, so that the completions of messages and those of the answers to
 * them have places. */
TEST(srq_resize__completions_have_places) {
    enum { MESSAGES = 200 };
    Pair pair = connected_pair_of((Options){.srq = true, .one_evd = true}, (Options){.request_dtos = MESSAGES});
    unsigned received = 0, answers = 0;
    CHECK_OK(dat_srq_resize(pair.client->srq, MESSAGES));
    for (unsigned i = 0; i < MESSAGES; ++i) receive(pair.client, i, 0);
    for (unsigned i = 0; i < MESSAGES; ++i)
        CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = i}));
    while (received != MESSAGES || answers != 0) {
        DAT_EVENT event = EXPECT_EVENT(pair.client, RECV, DAT_DTO_COMPLETION_EVENT);
        CHECK_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
        if (event.event_data.dto_completion_event_data.user_cookie.as_64 == MESSAGES) {
            --answers;
            continue;
        }
        CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, received++);
        if (answers == DTOS) continue;
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = MESSAGES}));
        ++answers;
    }
    CHECK(!poll_event(pair.client, ASYNC, &(DAT_EVENT){0}));
    pair_close(&pair);
}

/* "Once a buffer has been allocated to an EP, it will be completed to the EP recv_evd": also if the queue is filled
 * again before the completions of earlier receives are dequeued, unless it takes no more. Requests lose no place. */
TEST(srq__filled_again_before_completions_are_dequeued) {
    enum { MESSAGES = 10 * DTOS, REQUESTS = MESSAGES };
    Pair pair = connected_pair_of((Options){.srq = true, .one_evd = true}, (Options){0});
    unsigned sent = 0, received = 0, completed = 0;
    for (; sent < MESSAGES; ++sent) {
        DAT_RETURN rc = post(pair.client, (Work){.operation = SRQ_RECEIVE, .at = RECV_AT, .length = 8, .cookie = sent});
        if (rc != DAT_SUCCESS) {
            CHECK_RC(rc, DAT_INSUFFICIENT_RESOURCES);
            break;
        }
        send_message(pair.server, 9, 8);
    }
    CHECK(sent >= DTOS);
    for (unsigned i = 0; i < DTOS; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = REQUESTS + i}));
    while (received < sent || completed < DTOS) {
        DAT_EVENT event = EXPECT_EVENT(pair.client, RECV, DAT_DTO_COMPLETION_EVENT);
        const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;
        CHECK_EQ(data->status, DAT_DTO_SUCCESS);
        CHECK_EQ(data->user_cookie.as_64, data->operation == DAT_DTO_RECEIVE ? received++ : REQUESTS + completed++);
    }
    CHECK(!poll_event(pair.client, ASYNC, &(DAT_EVENT){0}));
    pair_close(&pair);
}
