/* SPDX-License-Identifier: BSD-3-Clause
 * Work that is flushed: by disconnecting, and because it is posted to a disconnected endpoint.
 */
#include "scene.h"

enum { COUNT = 5 };

static void post_receives(Side *side) {
    for (DAT_UINT64 i = 0; i < COUNT; ++i)
        CHECK_OK(post(side, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = i}));
}

static void expect_flushed(Side *side, Stream stream) {
    for (DAT_UINT64 i = 0; i < COUNT; ++i) EXPECT_DTO(side, stream, i, DAT_DTO_ERR_FLUSHED);
}

static void check_receives(DAT_CLOSE_FLAGS flags) {
    const Pair pair = connected_pair((Options){0});
    post_receives(pair.client);
    post_receives(pair.server);
    pair_hang_up(&pair, flags);
    expect_flushed(pair.client, RECV);
    expect_flushed(pair.server, RECV);
    expect_nothing(pair.client);
    expect_nothing(pair.server);
}

TEST(flush__receives_by_abrupt) { check_receives(DAT_CLOSE_ABRUPT_FLAG); }
TEST(flush__receives_by_graceful) { check_receives(DAT_CLOSE_GRACEFUL_FLAG); }

/* Nobody receives the messages, so that they are outstanding. */
TEST(flush__requests_by_abrupt) {
    const Pair pair = connected_pair((Options){0});
    for (DAT_UINT64 i = 0; i < COUNT; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = i}));
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    expect_flushed(pair.client, REQUEST);
    expect_nothing(pair.client);
}

TEST(flush__requests_of_the_other_side) {
    const Pair pair = connected_pair((Options){0});
    for (DAT_UINT64 i = 0; i < COUNT; ++i)
        CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 64, .cookie = i}));
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    expect_flushed(pair.server, REQUEST);
}

/* The event of the work says which endpoint, and which operation. */
TEST(flush__what_the_event_says) {
    const Pair pair = connected_pair_here((Options){0});
    post_receives(pair.client);
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = 9}));
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK(EXPECT_DTO(pair.client, RECV, 0, DAT_DTO_ERR_FLUSHED).ep_handle == pair.client->ep);
    CHECK(EXPECT_DTO(pair.client, REQUEST, 9, DAT_DTO_ERR_FLUSHED).ep_handle == pair.client->ep);
}

/* "The posted Send is immediately flushed." */
static void check_posted_later(Operation operation) {
    const Pair pair = connected_pair((Options){0});
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    for (DAT_UINT64 i = 0; i < COUNT; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = operation, .at = RECV_AT, .length = 64, .cookie = i}));
    expect_flushed(pair.client, operation == RECEIVE ? RECV : REQUEST);
}

TEST(flush__a_send_to_a_disconnected_endpoint) { check_posted_later(SEND); }
TEST(flush__a_receive_to_a_disconnected_endpoint) { check_posted_later(RECEIVE); }
TEST(flush__a_write_to_a_disconnected_endpoint) { check_posted_later(WRITE); }
TEST(flush__a_read_to_a_disconnected_endpoint) { check_posted_later(READ); }

/* "The Consumer can post DTO operations as a marker": it comes after everything else. */
TEST(flush__a_marker_comes_last) {
    const Pair pair = connected_pair((Options){0});
    post_receives(pair.client);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 77}));
    expect_flushed(pair.client, RECV);
    EXPECT_DTO(pair.client, RECV, 77, DAT_DTO_ERR_FLUSHED);
    expect_nothing(pair.client);
}

/* A rejected endpoint is disconnected like any other. */
TEST(flush__receives_of_a_rejected_endpoint) {
    const Pair pair = open_pair((Options){0});
    post_receives(pair.client);
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    take_request(pair.server);
    CHECK_OK(reject_request(pair.server));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
    expect_flushed(pair.client, RECV);
}

/* What succeeded before keeps its status, whatever comes after it. */
TEST(flush__does_not_touch_what_is_done) {
    const Pair pair = connected_pair((Options){0});
    for (DAT_UINT64 i = 0; i < COUNT; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 64, .cookie = i}));
    EXPECT_DONE(pair.client, 0);
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = 99}));
    for (DAT_UINT64 i = 1; i < COUNT; ++i) EXPECT_DONE(pair.client, i);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    EXPECT_DTO(pair.client, REQUEST, 99, DAT_DTO_ERR_FLUSHED);
}
