/* SPDX-License-Identifier: BSD-3-Clause
 * Ending and reusing endpoints: dat_ep_free and dat_ep_reset, in each state.
 */
#include "scene.h"

/* ---- dat_ep_reset ------------------------------------------------------------------------------------------------ */

static void check_reset(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    CHECK_OK(dat_ep_reset(scene.ep));
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_UNCONNECTED);
}

static void check_reset_refused(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    CHECK_SUB(dat_ep_reset(scene.ep), DAT_INVALID_STATE, subtype_of(state));
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(ep_reset__unconnected) { check_reset(DAT_EP_STATE_UNCONNECTED); }
TEST(ep_reset__disconnected) { check_reset(DAT_EP_STATE_DISCONNECTED); }
TEST(ep_reset__reserved) { check_reset_refused(DAT_EP_STATE_RESERVED); }
TEST(ep_reset__passive_connection_pending) { check_reset_refused(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_reset__tentative_connection_pending) { check_reset_refused(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(ep_reset__active_connection_pending) { check_reset_refused(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(ep_reset__connected) { check_reset_refused(DAT_EP_STATE_CONNECTED); }
TEST(ep_reset__disconnect_pending) { check_reset_refused(DAT_EP_STATE_DISCONNECT_PENDING); }

static void do_reset(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(dat_ep_reset(side->ep));
}

TEST(ep_reset__then_connected_again) {
    const Pair pair = open_pair((Options){0});
    for (int round = 0; round < 3; ++round) {
        pair_connect(&pair);
        tell(pair.client, pair.server);
        tell(pair.server, pair.client);
        pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
        throw_away_events(pair.client);
        throw_away_events(pair.server);
        at(pair.client, do_reset, NULL, 0);
        at(pair.server, do_reset, NULL, 0);
    }
    side_close(pair.client);
    side_close(pair.server);
}

/* "The preposted Recvs are not affected by the call." */
TEST(ep_reset__unconnected_keeps_receives) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    CHECK_OK(dat_ep_reset(pair.client->ep));
    pair_connect(&pair);
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 64, .cookie = 2}));
    EXPECT_RECEIVED(pair.client, 1);
    EXPECT_DONE(pair.server, 2);
    pair_close(&pair);
}

/* Nothing of the life before is left: no old receive takes the first message of the new connection. */
TEST(ep_reset__forgets_what_was_posted) {
    const Pair pair = connected_pair_here((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    EXPECT_DTO(pair.client, RECV, 1, DAT_DTO_ERR_FLUSHED);
    CHECK_OK(dat_ep_reset(pair.client->ep));
    CHECK_OK(dat_ep_reset(pair.server->ep));
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 2}));
    pair_connect(&pair);
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 64, .cookie = 3}));
    EXPECT_RECEIVED(pair.client, 2);
    EXPECT_DONE(pair.server, 3);
    pair_close(&pair);
}

TEST(ep_reset__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_SUB(dat_ep_reset(pair.client->pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

TEST(ep_reset__no_object__invalid_handle) { CHECK_BAD_HANDLES(dat_ep_reset(bad)); }

/* ---- dat_ep_free ------------------------------------------------------------------------------------------------- */

static void check_free(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    CHECK_OK(dat_ep_free(scene.ep));
}

static void check_free_refused(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    CHECK_SUB(dat_ep_free(scene.ep), DAT_INVALID_STATE, subtype_of(state));
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(ep_free__unconnected) { check_free(DAT_EP_STATE_UNCONNECTED); }
TEST(ep_free__disconnected) { check_free(DAT_EP_STATE_DISCONNECTED); }
TEST(ep_free__active_connection_pending) { check_free(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(ep_free__connected) { check_free(DAT_EP_STATE_CONNECTED); }
TEST(ep_free__disconnect_pending) { check_free(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(ep_free__reserved) { check_free_refused(DAT_EP_STATE_RESERVED); }
TEST(ep_free__passive_connection_pending) { check_free_refused(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_free__tentative_connection_pending) { check_free_refused(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }

TEST(ep_free__the_other_end_is_disconnected) {
    const Pair pair = connected_pair_here((Options){0});
    CHECK_OK(dat_ep_free(pair.client->ep));
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    CHECK_EQ(state_of(pair.server->ep), DAT_EP_STATE_DISCONNECTED);
}

/* "The destruction of the Endpoint during connection setup aborts connection establishment." */
TEST(ep_free__aborts_connecting) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    const Side *server = scene.pair.server;
    CHECK_OK(dat_ep_free(scene.ep));
    const DAT_RETURN rc = dat_cr_accept(scene.cr, server->ep, 0, NULL);
    if (on_loopback()) CHECK_OK(rc);
    if (rc == DAT_SUCCESS) WAIT_ON(server->evds[CONN], DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
    CHECK(state_of(server->ep) != DAT_EP_STATE_CONNECTED);
    if (on_loopback()) CHECK_EQ(state_of(server->ep), DAT_EP_STATE_DISCONNECTED);
}

TEST(ep_free__with_work_outstanding) {
    const Pair pair = connected_pair_here((Options){0});
    for (DAT_UINT64 i = 0; i < 4; ++i) {
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = i}));
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = i}));
    }
    CHECK_OK(dat_ep_free(pair.client->ep));
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* What it used is free again. */
TEST(ep_free__releases_zone_and_evds) {
    const Pair pair = open_pair_here((Options){0});
    const Side *client = pair.client;
    DAT_EVD_HANDLE dtos = new_evd(client->ia, DAT_EVD_DTO_FLAG);
    DAT_EVD_HANDLE conn = new_evd(client->ia, DAT_EVD_CONNECTION_FLAG);
    DAT_PZ_HANDLE pz = new_pz(client->ia);
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_OK(dat_ep_create(client->ia, pz, dtos, dtos, conn, &attributes, &ep));
    CHECK_OK(request_to(client, ep, client->qual)); /* nobody listens there */
    WAIT_ON(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    CHECK_OK(dat_ep_free(ep));
    CHECK_OK(dat_evd_free(dtos));
    CHECK_OK(dat_evd_free(conn));
    CHECK_OK(dat_pz_free(pz));
}

/* After the point is gone, or the request rejected, the endpoint may go. */
TEST(ep_free__after_its_service_point) {
    const Scene scene = scene_in(DAT_EP_STATE_RESERVED);
    CHECK_OK(dat_rsp_free(scene.rsp));
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_UNCONNECTED);
    CHECK_OK(dat_ep_free(scene.ep));
}

TEST(ep_free__after_its_request) {
    const Scene scene = scene_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    CHECK_OK(dat_cr_reject(scene.cr, 0, NULL));
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_UNCONNECTED);
    CHECK_OK(dat_ep_free(scene.ep));
}

TEST(ep_free__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_SUB(dat_ep_free(pair.client->pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

TEST(ep_free__no_object__invalid_handle) { CHECK_BAD_HANDLES(dat_ep_free(bad)); }

/* "Use of the handle of the destroyed Endpoint in any subsequent operation fails." */
TEST(ep_free__what_is_gone__invalid_handle) {
    const Pair pair = open_pair_here((Options){0});
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    DAT_EP_PARAM param;
    CHECK_OK(dat_ep_free(ep));
    CHECK_SUB(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    CHECK_SUB(dat_ep_reset(ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    CHECK_SUB(dat_ep_free(ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

/* "The Consumer must be ready for all completions that are not dequeued yet either still being on the Endpoint
 * recv_evd_handle and request_evd_handle or not being there": those that are there are theirs. */
TEST(ep_free__completions_that_are_left) {
    Pair pair = connected_pair_here(
        (Options){.recv_flags = DAT_COMPLETION_UNSIGNALLED_FLAG, .request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    DAT_EVENT event;
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 77}));
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 78}));
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(dat_ep_free(pair.client->ep));
    while (poll_event(pair.client, RECV, &event))
        CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 77);
    while (poll_event(pair.client, REQUEST, &event))
        CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 78);
}
