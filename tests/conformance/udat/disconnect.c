/* SPDX-License-Identifier: BSD-3-Clause
 * Ending connections: dat_ep_disconnect. Work that is flushed by it is in flush.c.
 */
#include "scene.h"

static const DAT_CLOSE_FLAGS both_flags[] = {DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG};

static void check_disconnected(Side *side) {
    DAT_EVENT event = EXPECT_EVENT(side, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    if (side->process == NULL) CHECK(event.event_data.connect_event_data.ep_handle == side->ep);
    CHECK_EQ(ep_state(side), DAT_EP_STATE_DISCONNECTED);
}

static void check_both_ends(Pair pair, Side *who, DAT_CLOSE_FLAGS flags) {
    CHECK_OK(disconnect(who, flags));
    check_disconnected(pair.client);
    check_disconnected(pair.server);
    expect_nothing(pair.client);
    expect_nothing(pair.server);
    side_close(pair.server);
    side_close(pair.client);
}

TEST(ep_disconnect__abrupt) {
    const Pair pair = connected_pair((Options){0});
    check_both_ends(pair, pair.client, DAT_CLOSE_ABRUPT_FLAG);
}

TEST(ep_disconnect__graceful) {
    const Pair pair = connected_pair((Options){0});
    check_both_ends(pair, pair.client, DAT_CLOSE_GRACEFUL_FLAG);
}

TEST(ep_disconnect__abrupt_by_the_server) {
    const Pair pair = connected_pair((Options){0});
    check_both_ends(pair, pair.server, DAT_CLOSE_ABRUPT_FLAG);
}

TEST(ep_disconnect__graceful_by_the_server) {
    const Pair pair = connected_pair((Options){0});
    check_both_ends(pair, pair.server, DAT_CLOSE_GRACEFUL_FLAG);
}

TEST(ep_disconnect__abrupt_is_the_default) { CHECK_EQ(DAT_CLOSE_DEFAULT, DAT_CLOSE_ABRUPT_FLAG); }

TEST(ep_disconnect__both_sides_at_once) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    CHECK_OK(disconnect(pair.server, DAT_CLOSE_ABRUPT_FLAG));
    check_disconnected(pair.client);
    check_disconnected(pair.server);
    expect_nothing(pair.client);
    expect_nothing(pair.server);
}

/* "All outstanding and in-progress request DTOs must try to be completed successfully first." */
TEST(ep_disconnect__graceful_completes_requests_first) {
    const Pair pair = connected_pair((Options){0});
    for (DAT_UINT64 i = 0; i < 8; ++i)
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = AREA_BYTES, .cookie = i}));
    for (DAT_UINT64 i = 0; i < 8; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = AREA_BYTES, .cookie = i}));
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_GRACEFUL_FLAG));
    for (DAT_UINT64 i = 0; i < 8; ++i) EXPECT_DONE(pair.client, i);
    for (DAT_UINT64 i = 0; i < 8; ++i) EXPECT_RECEIVED(pair.server, i);
    check_disconnected(pair.client);
    check_disconnected(pair.server);
}

/* A message that nobody receives holds a graceful disconnect up. */
static void hold_up(const Pair *pair) {
    CHECK_OK(post(pair->client, (Work){.operation = SEND, .length = 64, .cookie = 1}));
    CHECK_OK(disconnect(pair->client, DAT_CLOSE_GRACEFUL_FLAG));
    CHECK_EQ(ep_state(pair->client), DAT_EP_STATE_DISCONNECT_PENDING);
}

TEST(ep_disconnect__graceful_waits_for_the_receiver) {
    const Pair pair = connected_pair((Options){0});
    hold_up(&pair);
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 2}));
    EXPECT_RECEIVED(pair.server, 2);
    EXPECT_DONE(pair.client, 1);
    check_disconnected(pair.client);
    check_disconnected(pair.server);
}

/* "Causes the Endpoint to transition into DAT_EP_STATE_DISCONNECTED without waiting." */
TEST(ep_disconnect__abrupt_ends_the_wait_of_graceful) {
    const Pair pair = connected_pair((Options){0});
    hold_up(&pair);
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    check_disconnected(pair.client);
    check_disconnected(pair.server);
    EXPECT_DTO(pair.client, REQUEST, 1, DAT_DTO_ERR_FLUSHED);
}

/* "The graceful call when the local Endpoint is in that state has no effect." */
TEST(ep_disconnect__graceful_twice) {
    const Pair pair = connected_pair((Options){0});
    hold_up(&pair);
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_GRACEFUL_FLAG));
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECT_PENDING);
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    check_disconnected(pair.client);
}

/* Memory may be freed under a posted receive. A message that comes later breaks the connection, but this side has asked
 * for its end by then, and is told of that: programs free their memory and wait for it. */
static Pair meet_freed_memory(void) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 2}));
    hold_up(&pair);
    CHECK_OK(dat_lmr_free(pair.client->lmr));
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 64, .cookie = 3}));
    return pair;
}

TEST(ep_disconnect__graceful_meets_a_message_without_memory) {
    const Pair pair = meet_freed_memory();
    const DAT_EVENT received = next_event(pair.client, RECV);
    CHECK(received.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS);
    check_disconnected(pair.client);
}

TEST(ep_disconnect__abrupt_meets_a_message_without_memory) {
    const Pair pair = meet_freed_memory();
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    check_disconnected(pair.client);
}

/* "No new Send, RDMA Read, and RDMA Write DTOs, or RMR Binds can be posted." */
TEST(ep_disconnect__no_requests_meanwhile) {
    const Pair pair = connected_pair((Options){0});
    hold_up(&pair);
    CHECK_RC(post(pair.client, (Work){.operation = SEND, .length = 8}), DAT_INVALID_STATE);
    CHECK_RC(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8}), DAT_INVALID_STATE);
    CHECK_RC(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .length = 8}), DAT_INVALID_STATE);
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    check_disconnected(pair.client);
}

/* "If the same EVD is used, all successful Completion events of in-progress DTOs precede the Disconnect event." */
TEST(ep_disconnect__comes_after_completions_on_one_evd) {
    Side *probe = new_side(NULL);
    probe->ia = open_ia(NULL);
    if (!provider_attributes(probe->ia).evd_stream_merging_supported[2][3]) skip("DTO and connection events apart");
    const Pair pair = connected_pair_here((Options){.one_evd = true});
    for (DAT_UINT64 i = 0; i < 4; ++i) {
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = i}));
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = i}));
    }
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_GRACEFUL_FLAG));
    for (DAT_UINT64 i = 0; i < 4; ++i) EXPECT_DONE(pair.client, i);
    check_disconnected(pair.client);
    for (DAT_UINT64 i = 0; i < 4; ++i) EXPECT_RECEIVED(pair.server, i);
    check_disconnected(pair.server);
}

/* ---- States ------------------------------------------------------------------------------------------------------ */

static void check_refused(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    for (int i = 0; i < 2; ++i) {
        CHECK_SUB(dat_ep_disconnect(scene.ep, both_flags[i]), DAT_INVALID_STATE, subtype_of(state));
        CHECK_EQ(state_of(scene.ep), state);
    }
}

TEST(ep_disconnect__unconnected) { check_refused(DAT_EP_STATE_UNCONNECTED); }
TEST(ep_disconnect__reserved) { check_refused(DAT_EP_STATE_RESERVED); }
TEST(ep_disconnect__passive_connection_pending) { check_refused(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_disconnect__tentative_connection_pending) { check_refused(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }

/* "Disconnecting a Disconnected Endpoint is no-op." */
TEST(ep_disconnect__disconnected) {
    const Scene scene = scene_in(DAT_EP_STATE_DISCONNECTED);
    for (int i = 0; i < 2; ++i) CHECK_OK(dat_ep_disconnect(scene.ep, both_flags[i]));
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_DISCONNECTED);
    expect_nothing(scene.pair.client);
}

/* It "aborts the connection establishment", and the event tells. */
static void check_abort(DAT_CLOSE_FLAGS flags) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    CHECK_OK(disconnect(pair.client, flags));
    check_disconnected(pair.client);
    EXPECT_DTO(pair.client, RECV, 1, DAT_DTO_ERR_FLUSHED);
}

TEST(ep_disconnect__active_connection_pending_abrupt) { check_abort(DAT_CLOSE_ABRUPT_FLAG); }
TEST(ep_disconnect__active_connection_pending_graceful) { check_abort(DAT_CLOSE_GRACEFUL_FLAG); }

/* The server may still have accepted it; it learns that nothing came of it. */
TEST(ep_disconnect__after_the_server_took_the_request) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    Side *server = scene.pair.server;
    CHECK_OK(disconnect(scene.pair.client, DAT_CLOSE_ABRUPT_FLAG));
    check_disconnected(scene.pair.client);
    const DAT_RETURN rc = dat_cr_accept(scene.cr, server->ep, 0, NULL);
    if (on_loopback()) CHECK_OK(rc);
    if (rc == DAT_SUCCESS) {
        EXPECT_EVENT(server, CONN, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
        CHECK_EQ(ep_state(server), DAT_EP_STATE_DISCONNECTED);
    }
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

TEST(ep_disconnect__unknown_flags) {
    const Pair pair = connected_pair_here((Options){0});
    CHECK_SUB(disconnect(pair.client, (DAT_CLOSE_FLAGS)7), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
    pair_close(&pair);
}

TEST(ep_disconnect__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_SUB(dat_ep_disconnect(pair.client->pz, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

TEST(ep_disconnect__no_object__invalid_handle) { CHECK_BAD_HANDLES(dat_ep_disconnect(bad, DAT_CLOSE_ABRUPT_FLAG)); }
