/* SPDX-License-Identifier: BSD-3-Clause
 * What the survivor sees when the process at the other end dies.
 */
#include "scene.h"

/* The system hangs up for the dead, or the provider notices: either way there is one event, and the end. */
static void expect_end(Side *side) {
    DAT_EVENT event = next_event(side, CONN);
    if (on_loopback() || event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
        CHECK_EQ(event.event_number, DAT_CONNECTION_EVENT_BROKEN);
    CHECK(event.event_data.connect_event_data.ep_handle == side->ep);
    CHECK_EQ(ep_state(side), DAT_EP_STATE_DISCONNECTED);
}

TEST(death__of_an_idle_peer) {
    const Pair pair = connected_pair((Options){0});
    peer_kill(pair.server->process);
    expect_end(pair.client);
    expect_nothing(pair.client);
    side_close(pair.client);
}

TEST(death__flushes_receives) {
    const Pair pair = connected_pair((Options){0});
    for (DAT_UINT64 i = 0; i < 4; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = i}));
    peer_kill(pair.server->process);
    expect_end(pair.client);
    for (DAT_UINT64 i = 0; i < 4; ++i) EXPECT_DTO(pair.client, RECV, i, DAT_DTO_ERR_FLUSHED);
    side_close(pair.client);
}

static DAT_DTO_COMPLETION_STATUS status_of(Side *side, DAT_UINT64 cookie) {
    DAT_EVENT event = EXPECT_EVENT(side, REQUEST, DAT_DTO_COMPLETION_EVENT);
    CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
    return event.event_data.dto_completion_event_data.status;
}

/* They wait for receives. A device may have begun the first one. */
TEST(death__flushes_requests) {
    const Pair pair = connected_pair((Options){0});
    for (DAT_UINT64 i = 0; i < 4; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = i}));
    peer_kill(pair.server->process);
    expect_end(pair.client);
    for (DAT_UINT64 i = 0; i < 4; ++i) {
        const DAT_DTO_COMPLETION_STATUS status = status_of(pair.client, i);
        if (on_loopback() || i > 0 || status != DAT_DTO_ERR_TRANSPORT) CHECK_EQ(status, DAT_DTO_ERR_FLUSHED);
    }
    side_close(pair.client);
}

/* The peer stops, so that it takes none of them, and then dies: the first one is under way, and the others are not. */
TEST(death__in_the_middle_of_a_message) {
    if (!on_loopback()) skip("devices receive for a process that is stopped");
    const Pair pair = connected_pair((Options){0});
    for (DAT_UINT64 i = 0; i < 4; ++i)
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = AREA_BYTES, .cookie = i}));
    peer_stop(pair.server->process);
    for (DAT_UINT64 i = 0; i < 4; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = AREA_BYTES, .cookie = i}));
    peer_kill(pair.server->process);
    CHECK_EQ(next_event(pair.client, CONN).event_number, DAT_CONNECTION_EVENT_BROKEN);
    CHECK_EQ(status_of(pair.client, 0), DAT_DTO_ERR_TRANSPORT);
    for (DAT_UINT64 i = 1; i < 4; ++i) CHECK_EQ(status_of(pair.client, i), DAT_DTO_ERR_FLUSHED);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECTED);
    side_close(pair.client);
}

TEST(death__of_the_client) {
    Peer *process = peer_start();
    const Pair pair = {new_side(process), new_side(NULL)};
    side_open(pair.client, (Options){0});
    side_open(pair.server, (Options){0});
    listen_at(pair.server);
    pair_connect(&pair);
    peer_kill(process);
    expect_end(pair.server);
    side_close(pair.server);
}

/* The point goes on listening, for others. */
TEST(death__of_a_client_leaves_the_listener) {
    Peer *process = peer_start();
    const Pair pair = {new_side(process), new_side(NULL)};
    Side *next = new_side(NULL);
    side_open(pair.client, (Options){0});
    side_open(pair.server, (Options){0});
    side_open_beside(next, pair.server, (Options){0});
    listen_at(pair.server);
    pair_connect(&pair);
    peer_kill(process);
    expect_end(pair.server);
    CHECK_OK(dat_ep_reset(pair.server->ep));
    const Pair again = {next, pair.server};
    pair_connect(&again);
    tell(again.client, again.server);
}

/* While the request is in the server's hand: accepting it fails, or the connection ends at once. */
TEST(death__of_a_client_that_waits) {
    Peer *process = peer_start();
    const Pair pair = {new_side(process), new_side(NULL)};
    side_open(pair.client, (Options){0});
    side_open(pair.server, (Options){0});
    listen_at(pair.server);
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    take_request(pair.server);
    peer_kill(process);
    CHECK_OK(accept_request(pair.server, NULL, 0));
    DAT_EVENT event = next_event(pair.server, CONN);
    CHECK_EQ(event.event_number, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
    CHECK_EQ(ep_state(pair.server), DAT_EP_STATE_DISCONNECTED);
}

/* While the client waits for the answer, without a timeout: it is told at once that nobody is there. Over RDMA devices
 * the dead one's system rejects for it. */
TEST(death__of_a_server_that_was_asked) {
    const Pair pair = open_pair((Options){0});
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    take_request(pair.server);
    peer_kill(pair.server->process);
    DAT_EVENT event = next_event(pair.client, CONN);
    if (on_loopback() || event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
        CHECK_EQ(event.event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECTED);
}

/* What the dead listened at is free. */
TEST(death__of_a_listener_frees_its_qualifier) {
    const Pair pair = open_pair((Options){0});
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    peer_kill(pair.server->process);
    CHECK_OK(dat_psp_create(pair.client->ia, pair.server->qual, pair.client->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_OK(dat_psp_free(psp));
    side_close(pair.client);
}

/* In the middle of heavy traffic: everything posted is accounted for. */
TEST(death__in_the_middle_of_work) {
    const Pair pair = connected_pair((Options){0});
    DAT_UINT64 posted = 0, completed = 0;
    for (int round = 0; round < 200; ++round) {
        if (round == 100) peer_kill(pair.server->process);
        DAT_RETURN rc = post(pair.client, (Work){.operation = round % 2 == 0 ? WRITE : READ,
                                                 .at = RECV_AT,
                                                 .to = RECV_AT,
                                                 .length = 65536,
                                                 .cookie = posted});
        if (rc == DAT_SUCCESS) ++posted;
        DAT_EVENT event;
        while (poll_event(pair.client, REQUEST, &event))
            CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, completed++);
    }
    expect_end(pair.client);
    while (completed < posted) {
        DAT_EVENT event = EXPECT_EVENT(pair.client, REQUEST, DAT_DTO_COMPLETION_EVENT);
        CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, completed++);
    }
    side_close(pair.client);
}
