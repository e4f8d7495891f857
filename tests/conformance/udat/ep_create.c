/* SPDX-License-Identifier: BSD-3-Clause
 * Making endpoints: dat_ep_create.
 */
#include "scene.h"

#include <limits.h>

static Side *open_side(void) {
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    return side;
}

static DAT_RETURN create(const Side *side, const DAT_EP_ATTR *attributes, DAT_EP_HANDLE *ep) {
    return dat_ep_create(side->ia, side->pz, side->evds[RECV], side->evds[REQUEST], side->evds[CONN], attributes, ep);
}

static void check_invalid(const Side *side, DAT_EP_ATTR attributes) {
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_SUB(create(side, &attributes, &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
}

static DAT_EP_PARAM query(DAT_EP_HANDLE ep) {
    DAT_EP_PARAM param;
    CHECK_OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
    return param;
}

/* ---- What is made ------------------------------------------------------------------------------------------------ */

TEST(ep_create__begins_unconnected) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_OK(create(side, &attributes, &ep));
    CHECK_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED);
    CHECK_OK(dat_ep_free(ep));
    side_close(side);
}

TEST(ep_create__takes_the_attributes) {
    Side *side = open_side();
    DAT_EP_ATTR wanted = ep_attributes((Options){.recv_dtos = 5, .request_dtos = 7, .iov_segments = 2});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    wanted.max_message_size = 4096;
    wanted.max_rdma_size = 8192;
    CHECK_OK(create(side, &wanted, &ep));
    DAT_EP_ATTR got = query(ep).ep_attr;
    CHECK_EQ(got.service_type, DAT_SERVICE_TYPE_RC);
    CHECK_EQ(got.max_message_size, 4096);
    CHECK_EQ(got.max_rdma_size, 8192);
    CHECK_EQ(got.max_recv_dtos, 5);
    CHECK_EQ(got.max_request_dtos, 7);
    CHECK_EQ(got.max_recv_iov, 2);
    CHECK_EQ(got.max_request_iov, 2);
    CHECK_EQ(got.max_rdma_read_in, wanted.max_rdma_read_in);
    CHECK_EQ(got.max_rdma_read_out, wanted.max_rdma_read_out);
    CHECK_EQ(got.recv_completion_flags, wanted.recv_completion_flags);
    CHECK_EQ(got.request_completion_flags, wanted.request_completion_flags);
    CHECK_OK(dat_ep_free(ep));
    side_close(side);
}

TEST(ep_create__without_attributes_the_provider_chooses) {
    Side *side = open_side();
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_OK(create(side, NULL, &ep));
    const DAT_IA_ATTR limits = ia_attributes(side->ia);
    const DAT_EP_ATTR chosen = query(ep).ep_attr;
    CHECK_EQ(chosen.service_type, DAT_SERVICE_TYPE_RC);
    CHECK(chosen.max_recv_dtos > 0 && chosen.max_recv_dtos <= limits.max_dto_per_ep);
    CHECK(chosen.max_request_dtos > 0 && chosen.max_request_dtos <= limits.max_dto_per_ep);
    CHECK(chosen.max_recv_iov > 0 && chosen.max_recv_iov <= limits.max_iov_segments_per_dto);
    CHECK(chosen.max_request_iov > 0 && chosen.max_request_iov <= limits.max_iov_segments_per_dto);
    CHECK(chosen.max_message_size > 0 && chosen.max_message_size <= limits.max_message_size);
    CHECK(chosen.max_rdma_size > 0 && chosen.max_rdma_size <= limits.max_rdma_size);
    CHECK_OK(dat_ep_free(ep));
    side_close(side);
}

/* "The Consumer is not interested in events for completions": of receives, requests, connections "for now". */
TEST(ep_create__without_evds) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    attributes.max_recv_dtos = attributes.max_request_dtos = 0;
    attributes.max_recv_iov = attributes.max_request_iov = 0;
    attributes.max_rdma_read_iov = attributes.max_rdma_write_iov = 0;
    CHECK_OK(dat_ep_create(side->ia, side->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attributes, &ep));
    const DAT_EP_PARAM param = query(ep);
    CHECK(param.recv_evd_handle == DAT_HANDLE_NULL);
    CHECK(param.request_evd_handle == DAT_HANDLE_NULL);
    CHECK(param.connect_evd_handle == DAT_HANDLE_NULL);
    CHECK_OK(dat_ep_free(ep));
    side_close(side);
}

/* It can be configured later, as one that the provider makes for a request. */
TEST(ep_create__without_a_zone) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_OK(dat_ep_create(side->ia, DAT_HANDLE_NULL, side->evds[RECV], side->evds[REQUEST], side->evds[CONN],
                           &attributes, &ep));
    CHECK(query(ep).pz_handle == DAT_HANDLE_NULL);
    CHECK_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED); /* and not unconfigured */
    CHECK_SUB(request_to(side, ep, side->qual), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
    CHECK_OK(dat_ep_free(ep));
    side_close(side);
}

TEST(ep_create__endpoints_share_evds) {
    Side *side = open_side();
    DAT_EP_HANDLE eps[8];
    for (int i = 0; i < 8; ++i) eps[i] = new_ep(side, (Options){0});
    for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < i; ++j) CHECK(eps[i] != eps[j]);
    }
    for (int i = 0; i < 8; ++i) CHECK_OK(dat_ep_free(eps[i]));
    side_close(side);
}

TEST(ep_create__holds_zone_and_evds) {
    Side *side = open_side();
    DAT_EVD_HANDLE dtos = new_evd(side->ia, DAT_EVD_DTO_FLAG), conn = new_evd(side->ia, DAT_EVD_CONNECTION_FLAG);
    DAT_PZ_HANDLE pz = new_pz(side->ia);
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_OK(dat_ep_create(side->ia, pz, dtos, dtos, conn, &attributes, &ep));
    CHECK_SUB(dat_evd_free(dtos), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    CHECK_SUB(dat_evd_free(conn), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    CHECK_SUB(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
    CHECK_OK(dat_ep_free(ep));
    CHECK_OK(dat_evd_free(dtos));
    CHECK_OK(dat_evd_free(conn));
    CHECK_OK(dat_pz_free(pz));
    side_close(side);
}

/* ---- Handles ----------------------------------------------------------------------------------------------------- */

TEST(ep_create__an_ia_that_is_none__invalid_handle) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_BAD_HANDLES(
        dat_ep_create(bad, side->pz, side->evds[RECV], side->evds[REQUEST], side->evds[CONN], &attributes, &ep));
    CHECK_SUB(
        dat_ep_create(side->pz, side->pz, side->evds[RECV], side->evds[REQUEST], side->evds[CONN], &attributes, &ep),
        DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    side_close(side);
}

TEST(ep_create__objects_of_another_kind) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE recv = side->evds[RECV], request = side->evds[REQUEST], conn = side->evds[CONN];
    CHECK_SUB(dat_ep_create(side->ia, recv, recv, request, conn, &attributes, &ep), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_PZ);
    CHECK_SUB(dat_ep_create(side->ia, side->pz, side->pz, request, conn, &attributes, &ep), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_RECV);
    CHECK_SUB(dat_ep_create(side->ia, side->pz, recv, side->pz, conn, &attributes, &ep), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_REQUEST);
    CHECK_SUB(dat_ep_create(side->ia, side->pz, recv, request, side->pz, &attributes, &ep), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_CONN);
    side_close(side);
}

TEST(ep_create__evds_without_the_stream) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE conn = side->evds[CONN], recv = side->evds[RECV], request = side->evds[REQUEST];
    DAT_EVD_HANDLE requests_only = new_evd(side->ia, DAT_EVD_CR_FLAG);
    CHECK_SUB(dat_ep_create(side->ia, side->pz, requests_only, request, conn, &attributes, &ep), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_RECV);
    CHECK_SUB(dat_ep_create(side->ia, side->pz, recv, requests_only, conn, &attributes, &ep), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_REQUEST);
    CHECK_SUB(dat_ep_create(side->ia, side->pz, recv, request, requests_only, &attributes, &ep), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_CONN);
    CHECK_OK(dat_evd_free(requests_only));
    side_close(side);
}

/* ---- An EVD of another IA ---------------------------------------------------------------------------------------- */

/* Beyond the page: events of connections may go to an EVD of another IA, as dapltest has it. */
typedef struct {
    Side *owner; /* of the EVD */
    Pair pair;
    DAT_EP_HANDLE ep;
} Abroad;

static Abroad connected_abroad(void) {
    Abroad abroad = {.owner = open_side(), .pair = open_pair_here((Options){0})};
    Side *client = abroad.pair.client;
    DAT_EVD_HANDLE own = client->evds[CONN];
    CHECK_OK(dat_ep_free(client->ep));
    client->evds[CONN] = abroad.owner->evds[CONN];
    abroad.ep = client->ep = new_ep(client, (Options){0});
    pair_connect(&abroad.pair);
    client->evds[CONN] = own;
    return abroad;
}

TEST(ep_create__a_connection_evd_of_another_ia) {
    const Abroad abroad = connected_abroad();
    DAT_EVD_HANDLE evd = abroad.owner->evds[CONN];
    DAT_EP_PARAM param;
    CHECK_OK(dat_ep_query(abroad.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
    CHECK(param.connect_evd_handle == evd);
    CHECK_SUB(dat_evd_free(evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    CHECK_OK(dat_ep_disconnect(abroad.ep, DAT_CLOSE_ABRUPT_FLAG));
    DAT_EVENT event = WAIT_ON(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
    CHECK(event.event_data.connect_event_data.ep_handle == abroad.ep);
    EXPECT_EVENT(abroad.pair.server, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    side_close(abroad.pair.server);
    side_close(abroad.pair.client);
    side_close(abroad.owner);
}

/* The EVD ends with its IA. The endpoint stays, and its events are lost. */
TEST(ep_create__a_connection_evd_of_another_ia_that_is_closed) {
    const Abroad abroad = connected_abroad();
    const Pair *pair = &abroad.pair;
    DAT_EP_PARAM param;
    CHECK_OK(dat_ia_close(abroad.owner->ia, DAT_CLOSE_ABRUPT_FLAG));
    CHECK_OK(dat_ep_query(abroad.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
    CHECK(param.connect_evd_handle == DAT_HANDLE_NULL);
    tell(pair->client, pair->server);
    CHECK_OK(dat_ep_disconnect(abroad.ep, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_EVENT(pair->server, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    throw_away_events(pair->client);
    throw_away_events(pair->server);
    side_close(pair->server);
    side_close(pair->client);
}

/* Nor does the endpoint take another EVD for its own that has got the same handle since. */
TEST(ep_create__a_connection_evd_of_another_ia_whose_handle_is_reused) {
    const Abroad abroad = connected_abroad();
    const Pair *pair = &abroad.pair;
    const DAT_EVD_HANDLE old = abroad.owner->evds[CONN];
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_EP_PARAM param;
    DAT_EVENT event;
    CHECK_OK(dat_ia_close(abroad.owner->ia, DAT_CLOSE_ABRUPT_FLAG));
    for (int i = 0; evd != old; ++i) {
        if (i == 20000) skip("the library does not reuse the handle");
        if (evd != DAT_HANDLE_NULL) CHECK_OK(dat_evd_free(evd));
        evd = new_evd(pair->client->ia, DAT_EVD_SOFTWARE_FLAG);
    }
    CHECK_OK(dat_ep_query(abroad.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
    CHECK(param.connect_evd_handle == DAT_HANDLE_NULL);
    CHECK_OK(dat_ep_disconnect(abroad.ep, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_EVENT(pair->server, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
    throw_away_events(pair->client);
    throw_away_events(pair->server);
    side_close(pair->server);
    CHECK_OK(dat_ep_free(pair->client->ep));
    pair->client->ep = DAT_HANDLE_NULL;
    CHECK_OK(dat_evd_free(evd));
    side_close(pair->client);
}

/* Others, and the zone, are of the IA of the endpoint. */
TEST(ep_create__a_zone_of_another_ia) {
    Side *side = open_side(), *other = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    const DAT_EVD_HANDLE *evds = side->evds;
    CHECK_SUB(dat_ep_create(side->ia, other->pz, evds[RECV], evds[REQUEST], evds[CONN], &attributes, &ep),
              DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
    side_close(side);
    side_close(other);
}

TEST(ep_create__completion_evds_of_another_ia) {
    Side *side = open_side(), *other = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    const DAT_EVD_HANDLE *evds = side->evds;
    CHECK_SUB(dat_ep_create(side->ia, side->pz, other->evds[RECV], evds[REQUEST], evds[CONN], &attributes, &ep),
              DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
    CHECK_SUB(dat_ep_create(side->ia, side->pz, evds[RECV], other->evds[REQUEST], evds[CONN], &attributes, &ep),
              DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
    side_close(side);
    side_close(other);
}

TEST(ep_create__nowhere_to_put_the_handle) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    CHECK_SUB(create(side, &attributes, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
    side_close(side);
}

/* ---- Depths ------------------------------------------------------------------------------------------------------ */

/* Programs ask for 20,000 requests and more. On loopback queues are up to 65,535 deep, and nothing of them is lost. */
TEST(ep_create__deep_queues) {
    enum { DEPTH = 65535 };
    if (!on_loopback()) skip("the depth is the device's");
    const Pair pair = connected_pair((Options){.evd_qlen = 8, .recv_dtos = DEPTH, .request_dtos = DEPTH});
    Side *client = pair.client;
    CHECK(ia_attributes(client->ia).max_dto_per_ep >= DEPTH);
    for (DAT_UINT64 i = 0; i < DEPTH; ++i) {
        CHECK_OK(post(client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
        CHECK_OK(post(client, (Work){.operation = SEND, .length = 8, .cookie = i}));
    }
    CHECK_RC(post(client, (Work){.operation = SEND, .length = 8}), DAT_INSUFFICIENT_RESOURCES);
    CHECK_OK(disconnect(client, DAT_CLOSE_ABRUPT_FLAG));
    for (DAT_UINT64 i = 0; i < DEPTH; ++i) EXPECT_DTO(client, RECV, i, DAT_DTO_ERR_FLUSHED);
    for (DAT_UINT64 i = 0; i < DEPTH; ++i) EXPECT_DTO(client, REQUEST, i, DAT_DTO_ERR_FLUSHED);
    DAT_EVENT event;
    CHECK(!poll_event(client, ASYNC, &event));
    EXPECT_EVENT(client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    side_close(client);
}

/* An EVD has room for all that may complete there. */
TEST(ep_create__deep_queues_of_several_endpoints) {
    enum { DEPTH = 65535, ENDPOINTS = 3 };
    if (!on_loopback()) skip("the depth is the device's");
    Side *side = new_side(NULL);
    DAT_EP_HANDLE eps[ENDPOINTS];
    DAT_EVENT event;
    side_open(side, (Options){.evd_qlen = 8});
    for (int i = 0; i < ENDPOINTS; ++i) {
        side->ep = eps[i] = new_ep(side, (Options){.recv_dtos = DEPTH});
        for (DAT_UINT64 j = 0; j < DEPTH; ++j)
            CHECK_OK(post(side, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = j}));
    }
    for (int i = 0; i < ENDPOINTS; ++i) { /* an attempt that fails flushes the receives */
        CHECK_OK(request_to(side, eps[i], unused_qual()));
        WAIT_ON(side->evds[CONN], DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    }
    for (int i = 0; i < ENDPOINTS * DEPTH; ++i) CHECK_OK(dat_evd_dequeue(side->evds[RECV], &event));
    CHECK_RC(dat_evd_dequeue(side->evds[RECV], &event), DAT_QUEUE_EMPTY);
    CHECK(!poll_event(side, ASYNC, &event));
    CHECK_OK(dat_ia_close(side->ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* ---- Attributes -------------------------------------------------------------------------------------------------- */

TEST(ep_create__sizes_above_those_of_the_ia) {
    Side *side = open_side();
    const DAT_IA_ATTR limits = ia_attributes(side->ia);
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    if (limits.max_message_size < UINT32_MAX) {
        attributes.max_message_size = limits.max_message_size + 1;
        check_invalid(side, attributes);
    }
    attributes = ep_attributes((Options){0});
    if (limits.max_rdma_size < UINT32_MAX) {
        attributes.max_rdma_size = limits.max_rdma_size + 1;
        check_invalid(side, attributes);
    }
    side_close(side);
}

/* The counts among the attributes, and the limits of the IA to them. */
enum { COUNTS = 8 };
static DAT_COUNT *count_in(DAT_EP_ATTR *attributes, int which) {
    DAT_COUNT *const counts[COUNTS] = {&attributes->max_recv_dtos,     &attributes->max_request_dtos,
                                       &attributes->max_recv_iov,      &attributes->max_request_iov,
                                       &attributes->max_rdma_read_in,  &attributes->max_rdma_read_out,
                                       &attributes->max_rdma_read_iov, &attributes->max_rdma_write_iov};
    return counts[which];
}

static DAT_COUNT limit_of(const DAT_IA_ATTR *limits, int which) {
    const DAT_COUNT counts[COUNTS] = {limits->max_dto_per_ep,
                                      limits->max_dto_per_ep,
                                      limits->max_iov_segments_per_dto,
                                      limits->max_iov_segments_per_dto,
                                      limits->max_rdma_read_per_ep_in,
                                      limits->max_rdma_read_per_ep_out,
                                      limits->max_iov_segments_per_rdma_read,
                                      limits->max_iov_segments_per_rdma_write};
    return counts[which];
}

static void check_above_limit(int first, int last) {
    Side *side = open_side();
    const DAT_IA_ATTR limits = ia_attributes(side->ia);
    for (int which = first; which <= last; ++which) {
        DAT_EP_ATTR attributes = ep_attributes((Options){0});
        if (limit_of(&limits, which) == INT_MAX) continue;
        *count_in(&attributes, which) = limit_of(&limits, which) + 1;
        check_invalid(side, attributes);
    }
    side_close(side);
}

TEST(ep_create__counts_above_those_of_the_ia) { check_above_limit(0, 5); }
TEST(ep_create__rdma_segments_above_those_of_the_ia) { check_above_limit(6, 7); }

TEST(ep_create__negative_counts) {
    Side *side = open_side();
    for (int which = 0; which < COUNTS; ++which) {
        DAT_EP_ATTR attributes = ep_attributes((Options){0});
        *count_in(&attributes, which) = -1;
        check_invalid(side, attributes);
    }
    side_close(side);
}

/* "Not interested in events for completions": the work is done all the same. */
TEST(ep_create__work_that_nobody_is_told_of) {
    const Pair pair = open_pair_here((Options){0});
    Side *client = pair.client;
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_LMR_TRIPLET data = piece(client, SEND_AT, 64);
    CHECK_OK(dat_ep_free(client->ep));
    CHECK_OK(dat_ep_create(client->ia, client->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, client->evds[CONN], &attributes,
                           &client->ep));
    pair_connect(&pair);
    for (DAT_UINT64 i = 0; i < 3 * DTOS; ++i) {
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = i}));
        CHECK_OK(dat_ep_post_send(client->ep, 1, &data, (DAT_DTO_COOKIE){.as_64 = i}, DAT_COMPLETION_DEFAULT_FLAG));
        EXPECT_RECEIVED(pair.server, i);
    }
    expect_nothing(client);
}

TEST(ep_create__flags_that_receives_do_not_have) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    attributes.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
    check_invalid(side, attributes);
    side_close(side);
}

TEST(ep_create__receives_have_no_fence) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    attributes.recv_completion_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
    check_invalid(side, attributes);
    side_close(side);
}

TEST(ep_create__flags_that_nobody_knows) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    attributes.recv_completion_flags = (DAT_COMPLETION_FLAGS)0x4000;
    check_invalid(side, attributes);
    attributes = ep_attributes((Options){0});
    attributes.request_completion_flags = (DAT_COMPLETION_FLAGS)0x4000;
    check_invalid(side, attributes);
    side_close(side);
}

TEST(ep_create__unknown_service) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    attributes.service_type = (DAT_SERVICE_TYPE)77;
    check_invalid(side, attributes);
    side_close(side);
}

TEST(ep_create__quality_of_service_that_is_not_there) {
    Side *side = open_side();
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    attributes.qos = unsupported_qos(side->ia);
    check_invalid(side, attributes);
    side_close(side);
}
