/* SPDX-License-Identifier: BSD-3-Clause
 * Reserved service points: dat_rsp_create, dat_rsp_query, dat_rsp_free.
 */
#include "scene.h"

static Pair open_sides(void) { return open_pair_here((Options){0}); }

static DAT_RETURN create(const Side *side, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep, DAT_RSP_HANDLE *rsp) {
    return dat_rsp_create(side->ia, qual, ep, side->evds[CR], rsp);
}

/* ---- dat_rsp_create ---------------------------------------------------------------------------------------------- */

TEST(rsp_create__reserves_the_endpoint) {
    const Pair pair = open_sides();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    CHECK_OK(create(pair.server, unused_qual(), pair.server->ep, &rsp));
    CHECK(rsp != DAT_HANDLE_NULL);
    CHECK_EQ(ep_state(pair.server), DAT_EP_STATE_RESERVED);
}

/* Reserved, then Passive Connection Pending, then connected with the one endpoint. */
TEST(rsp_create__takes_a_request) {
    const Scene scene = scene_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    const Pair pair = scene.pair;
    DAT_CR_PARAM param;
    CHECK_OK(dat_cr_query(scene.cr, DAT_CR_FIELD_ALL, &param));
    CHECK(param.local_ep_handle == pair.server->ep);
    CHECK_OK(dat_cr_accept(scene.cr, DAT_HANDLE_NULL, 0, NULL));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_EQ(ep_state(pair.server), DAT_EP_STATE_CONNECTED);
    tell(pair.client, pair.server);
    tell(pair.server, pair.client);
}

/* "sp_handle is DAT_HANDLE_NULL because the reserved Service Point is automatically destroyed." */
TEST(rsp_create__what_an_arrival_says) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    CHECK_OK(create(pair.server, qual, pair.server->ep, &rsp));
    CHECK_OK(request_to(pair.server, pair.client->ep, qual));
    DAT_EVENT event = WAIT_ON(pair.server->evds[CR], DAT_CONNECTION_REQUEST_EVENT);
    const DAT_CR_ARRIVAL_EVENT_DATA *arrival = &event.event_data.cr_arrival_event_data;
    CHECK(arrival->sp_handle.rsp_handle == DAT_HANDLE_NULL);
    CHECK_EQ(arrival->conn_qual, qual);
}

/* "Generates, at most, one Connection Request". */
TEST(rsp_create__takes_one_request_only) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    DAT_EP_HANDLE second = new_ep(pair.client, (Options){0});
    CHECK_OK(create(pair.server, qual, pair.server->ep, &rsp));
    CHECK_OK(request_to(pair.server, pair.client->ep, qual));
    request_on(pair.server->evds[CR]);
    CHECK_OK(request_to(pair.server, second, qual));
    DAT_EVENT event = WAIT_ON(pair.client->evds[CONN], DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    CHECK(event.event_data.connect_event_data.ep_handle == second);
}

TEST(rsp_create__rejected_the_endpoint_is_unconnected) {
    const Scene scene = scene_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    CHECK_OK(dat_cr_reject(scene.cr, 0, NULL));
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_UNCONNECTED);
    CHECK_OK(dat_ep_reset(scene.pair.client->ep));
    pair_connect(&scene.pair);
    tell(scene.pair.client, scene.pair.server);
}

TEST(rsp_create__a_qualifier_in_use) {
    const Pair pair = open_sides();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    CHECK_RC(create(pair.server, pair.server->qual, pair.server->ep, &rsp), DAT_CONN_QUAL_IN_USE);
    CHECK_EQ(ep_state(pair.server), DAT_EP_STATE_UNCONNECTED);
}

TEST(rsp_create__a_qualifier_in_use_by_another_process) {
    const Pair pair = open_pair((Options){0});
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    CHECK_RC(create(pair.client, pair.server->qual, pair.client->ep, &rsp), DAT_CONN_QUAL_IN_USE);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_UNCONNECTED);
}

TEST(rsp_create__a_qualifier_of_a_reserved_point) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL, second = DAT_HANDLE_NULL;
    CHECK_OK(create(pair.server, qual, pair.server->ep, &rsp));
    CHECK_RC(create(pair.client, qual, pair.client->ep, &second), DAT_CONN_QUAL_IN_USE);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_UNCONNECTED);
}

/* "DAT_HANDLE_NULL requests the Provider to associate a Provider-created Endpoint", where it makes any. */
TEST(rsp_create__with_an_endpoint_of_the_provider) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    DAT_CR_PARAM param;
    CHECK_OK(create(pair.server, qual, DAT_HANDLE_NULL, &rsp));
    CHECK_OK(request_to(pair.server, pair.client->ep, qual));
    CHECK_OK(dat_cr_query(request_on(pair.server->evds[CR]), DAT_CR_FIELD_ALL, &param));
    CHECK(param.local_ep_handle != DAT_HANDLE_NULL);
}

/* From its first connection on, an endpoint that the provider has made is the program's: "If rejected, the Local
 * Endpoint point transitions into Unconnected state." */
TEST(rsp_create__an_endpoint_that_the_provider_made) {
    const Scene scene = scene_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    Side *client = scene.pair.client, *server = scene.pair.server;
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    DAT_EP_PARAM param;
    CHECK_OK(dat_ep_query(server->ep, DAT_EP_FIELD_ALL, &param));
    CHECK_OK(dat_ep_modify(scene.ep,
                           DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
                               DAT_EP_FIELD_CONNECT_EVD_HANDLE,
                           &param));
    CHECK_OK(dat_cr_accept(scene.cr, DAT_HANDLE_NULL, 0, NULL));
    EXPECT_EVENT(client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    pair_hang_up(&scene.pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(dat_ep_reset(client->ep));
    CHECK_OK(dat_ep_reset(scene.ep));
    CHECK_OK(create(server, qual, scene.ep, &rsp));
    CHECK_OK(request_to(server, client->ep, qual));
    DAT_CR_HANDLE cr = request_on(server->evds[CR]);
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    CHECK_OK(dat_cr_reject(cr, 0, NULL));
    EXPECT_EVENT(client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_UNCONNECTED);
    CHECK_OK(dat_ep_free(scene.ep));
}

static void check_state(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    CHECK_SUB(create(scene.pair.server, unused_qual(), scene.ep, &rsp), DAT_INVALID_STATE, subtype_of(state));
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(rsp_create__reserved) { check_state(DAT_EP_STATE_RESERVED); }
TEST(rsp_create__passive_connection_pending) { check_state(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(rsp_create__tentative_connection_pending) { check_state(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(rsp_create__active_connection_pending) { check_state(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(rsp_create__connected) { check_state(DAT_EP_STATE_CONNECTED); }
TEST(rsp_create__disconnect_pending) { check_state(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(rsp_create__disconnected) { check_state(DAT_EP_STATE_DISCONNECTED); }

TEST(rsp_create__nowhere_to_put_the_handle) {
    const Pair pair = open_sides();
    CHECK_SUB(create(pair.server, unused_qual(), pair.server->ep, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    CHECK_EQ(ep_state(pair.server), DAT_EP_STATE_UNCONNECTED);
}

TEST(rsp_create__objects_of_another_kind) {
    const Pair pair = open_sides();
    const Side *server = pair.server;
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    CHECK_SUB(dat_rsp_create(server->pz, qual, server->ep, server->evds[CR], &rsp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_IA);
    CHECK_SUB(dat_rsp_create(server->ia, qual, server->pz, server->evds[CR], &rsp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EP);
    CHECK_SUB(dat_rsp_create(server->ia, qual, server->ep, server->pz, &rsp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_CR);
    CHECK_SUB(dat_rsp_create(server->ia, qual, server->ep, server->evds[CONN], &rsp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_CR);
    CHECK_EQ(state_of(server->ep), DAT_EP_STATE_UNCONNECTED);
}

TEST(rsp_create__objects_of_another_ia) {
    const Pair pair = open_sides();
    const Side *server = pair.server;
    Side *other = new_side(NULL);
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    side_open(other, (Options){0});
    CHECK_SUB(dat_rsp_create(server->ia, qual, other->ep, server->evds[CR], &rsp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EP);
    CHECK_SUB(dat_rsp_create(server->ia, qual, server->ep, other->evds[CR], &rsp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_CR);
    CHECK_EQ(state_of(server->ep), DAT_EP_STATE_UNCONNECTED);
    CHECK_EQ(state_of(other->ep), DAT_EP_STATE_UNCONNECTED);
}

TEST(rsp_create__no_object__invalid_handle) {
    const Pair pair = open_sides();
    const Side *server = pair.server;
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    CHECK_BAD_HANDLES(dat_rsp_create(bad, qual, server->ep, server->evds[CR], &rsp));
    CHECK_BAD_HANDLES(dat_rsp_create(server->ia, qual, server->ep, bad, &rsp));
}

/* A request of which nobody hears does not use up the point, and the EVD of the IA hears of the overflow once. */
TEST(rsp_create__stays_while_its_evd_is_full) {
    const Pair pair = open_sides();
    const Side *server = pair.server;
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    DAT_EVD_HANDLE evd = new_evd(server->ia, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG);
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    CHECK_OK(dat_rsp_create(server->ia, qual, server->ep, evd, &rsp));
    while (dat_evd_post_se(evd, &event) == DAT_SUCCESS) continue;
    for (int i = 0; i < 4; ++i) {
        CHECK_OK(request_to(server, pair.client->ep, qual));
        event = next_event(pair.client, CONN);
        if (on_loopback() || event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
            CHECK_EQ(event.event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
        CHECK_OK(dat_ep_reset(pair.client->ep));
        CHECK_EQ(state_of(server->ep), DAT_EP_STATE_RESERVED);
        if (i % 2 == 0) continue;
        event = EXPECT_EVENT(pair.server, ASYNC, DAT_ASYNC_ERROR_EVD_OVERFLOW);
        CHECK(event.event_data.asynch_error_event_data.dat_handle == evd);
        CHECK(!poll_event(pair.server, ASYNC, &event));
    }
    while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) CHECK_EQ(event.event_number, DAT_SOFTWARE_EVENT);
    CHECK_OK(request_to(server, pair.client->ep, qual));
    CHECK_OK(dat_cr_accept(request_on(evd), DAT_HANDLE_NULL, 0, NULL));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* ---- dat_rsp_query ----------------------------------------------------------------------------------------------- */

TEST(rsp_query__what_it_was_made_with) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    DAT_RSP_PARAM param;
    CHECK_OK(create(pair.server, qual, pair.server->ep, &rsp));
    CHECK_OK(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
    CHECK(param.ia_handle == pair.server->ia);
    CHECK_EQ(param.conn_qual, qual);
    CHECK(param.evd_handle == pair.server->evds[CR]);
    CHECK(param.ep_handle == pair.server->ep);
    for (int mask = 0; mask <= DAT_RSP_FIELD_ALL; ++mask) {
        DAT_RSP_PARAM some;
        memset(&some, 0xa5, sizeof some);
        CHECK_OK(dat_rsp_query(rsp, (DAT_RSP_PARAM_MASK)mask, &some));
        if ((mask & DAT_RSP_FIELD_IA_HANDLE) != 0) CHECK(some.ia_handle == param.ia_handle);
        if ((mask & DAT_RSP_FIELD_CONN_QUAL) != 0) CHECK_EQ(some.conn_qual, param.conn_qual);
        if ((mask & DAT_RSP_FIELD_EVD_HANDLE) != 0) CHECK(some.evd_handle == param.evd_handle);
        if ((mask & DAT_RSP_FIELD_EP_HANDLE) != 0) CHECK(some.ep_handle == param.ep_handle);
    }
}

TEST(rsp_query__nowhere_to_put_it) {
    const Scene scene = scene_in(DAT_EP_STATE_RESERVED);
    CHECK_SUB(dat_rsp_query(scene.rsp, DAT_RSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(rsp_query__unknown_fields) {
    const Scene scene = scene_in(DAT_EP_STATE_RESERVED);
    DAT_RSP_PARAM param;
    CHECK_SUB(dat_rsp_query(scene.rsp, (DAT_RSP_PARAM_MASK)0x40, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

TEST(rsp_query__another_kind_of_object) {
    const Pair pair = open_sides();
    DAT_RSP_PARAM param;
    CHECK_SUB(dat_rsp_query(pair.server->psp, DAT_RSP_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
}

TEST(rsp_query__no_object__invalid_handle) {
    DAT_RSP_PARAM param;
    CHECK_BAD_HANDLES(dat_rsp_query(bad, DAT_RSP_FIELD_ALL, &param));
}

/* ---- dat_rsp_free ------------------------------------------------------------------------------------------------ */

TEST(rsp_free__gives_the_endpoint_back) {
    const Scene scene = scene_in(DAT_EP_STATE_RESERVED);
    CHECK_OK(dat_rsp_free(scene.rsp));
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_UNCONNECTED);
    pair_connect(&scene.pair);
    tell(scene.pair.client, scene.pair.server);
}

TEST(rsp_free__nobody_listens_then) {
    const Pair pair = open_sides();
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    CHECK_OK(create(pair.server, qual, pair.server->ep, &rsp));
    CHECK_OK(dat_rsp_free(rsp));
    CHECK_OK(request_to(pair.server, pair.client->ep, qual));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    CHECK_OK(create(pair.server, qual, pair.server->ep, &rsp));
    CHECK_OK(dat_rsp_free(rsp));
}

/* The point goes with the request that it generates, and the request stays. The stock library keeps the point, too. */
TEST(rsp_free__keeps_the_request_that_came) {
    const Scene scene = scene_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    CHECK_EITHER(dat_rsp_free(scene.rsp), DAT_INVALID_HANDLE, DAT_SUCCESS);
    CHECK_OK(dat_cr_accept(scene.cr, DAT_HANDLE_NULL, 0, NULL));
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(scene.pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST(rsp_free__another_kind_of_object) {
    const Pair pair = open_sides();
    CHECK_SUB(dat_rsp_free(pair.server->psp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
}

TEST(rsp_free__no_object__invalid_handle) { CHECK_BAD_HANDLES(dat_rsp_free(bad)); }

TEST(rsp_free__twice__invalid_handle) {
    const Scene scene = scene_in(DAT_EP_STATE_RESERVED);
    CHECK_OK(dat_rsp_free(scene.rsp));
    CHECK_SUB(dat_rsp_free(scene.rsp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
}

/* The point is destroyed with its request: whoever sees the request may reserve the qualifier anew, and free the EVD.
 */
TEST(rsp_create__again_once_the_request_came) {
    const Pair pair = open_sides();
    const Side *server = pair.server;
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_EVENT event;
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    CHECK_OK(create(server, qual, DAT_HANDLE_NULL, &rsp));
    for (int i = 0; i < (on_loopback() ? 200 : 10); ++i) {
        CHECK_OK(request_to(server, pair.client->ep, qual));
        while (dat_evd_dequeue(server->evds[CR], &event) != DAT_SUCCESS) continue;
        CHECK_OK(create(server, qual, DAT_HANDLE_NULL, &rsp));
        CHECK_OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
        EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
        CHECK_OK(dat_ep_reset(pair.client->ep));
    }
}

TEST(rsp_create__its_evd_is_free_once_the_request_came) {
    const Pair pair = open_sides();
    const Side *server = pair.server;
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_EVENT event;
    for (int i = 0; i < (on_loopback() ? 200 : 10); ++i) {
        DAT_EVD_HANDLE evd = new_evd(server->ia, DAT_EVD_CR_FLAG);
        DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
        CHECK_OK(dat_rsp_create(server->ia, qual, server->ep, evd, &rsp));
        CHECK_OK(request_to(server, pair.client->ep, qual));
        while (dat_evd_dequeue(evd, &event) != DAT_SUCCESS) continue;
        CHECK_OK(dat_evd_free(evd));
        CHECK_OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
        EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
        CHECK_OK(dat_ep_reset(pair.client->ep));
    }
}
