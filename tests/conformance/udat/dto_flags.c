/* SPDX-License-Identifier: BSD-3-Clause
 * Completion flags of work and of endpoints: which completions are told, whom they wake, and what waits for what.
 */
#include "scene.h"
#include "waiter.h"

/* ---- Suppressed completions -------------------------------------------------------------------------------------- */

static void check_suppressed(Operation operation) {
    const Pair pair = connected_pair((Options){0});
    const size_t at = operation == READ ? RECV_AT : SEND_AT;
    if (operation == SEND)
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = operation,
                                      .at = at,
                                      .to = RECV_AT,
                                      .length = 64,
                                      .cookie = 2,
                                      .flags = DAT_COMPLETION_SUPPRESS_FLAG}));
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 64, .cookie = 3}));
    EXPECT_DONE(pair.client, 3); /* and none before it */
    if (operation == SEND) EXPECT_RECEIVED(pair.server, 1);
    expect_nothing(pair.client);
    pair_close(&pair);
}

TEST(suppress__send) { check_suppressed(SEND); }
TEST(suppress__rdma_write) { check_suppressed(WRITE); }
TEST(suppress__rdma_read) { check_suppressed(READ); }

/* "Suppress successful Completion": a failure is told. */
TEST(suppress__not_of_a_failure) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_LMR_TRIPLET from = piece(pair.client, SEND_AT, 8);
    DAT_RMR_TRIPLET to = target_piece(pair.client, RECV_AT, 8);
    to.rmr_context ^= 0x5a5a00;
    CHECK_OK(dat_ep_post_rdma_write(pair.client->ep, 1, &from, (DAT_DTO_COOKIE){.as_64 = 5}, &to,
                                    DAT_COMPLETION_SUPPRESS_FLAG));
    EXPECT_DTO(pair.client, REQUEST, 5, DAT_DTO_ERR_REMOTE_ACCESS);
}

TEST(suppress__not_of_flushed_work) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(
        post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = 6, .flags = DAT_COMPLETION_SUPPRESS_FLAG}));
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    EXPECT_DTO(pair.client, REQUEST, 6, DAT_DTO_ERR_FLUSHED);
}

static DAT_RETURN post_suppressed(Side *side, Operation operation, DAT_UINT64 cookie) {
    return post(side, (Work){.operation = operation,
                             .to = RECV_AT,
                             .length = 8,
                             .cookie = cookie,
                             .flags = DAT_COMPLETION_SUPPRESS_FLAG});
}

/* Posts that find the queue full take nothing from those that are in it. */
TEST(suppress__flushed_work_of_a_full_queue_keeps_its_cookies) {
    if (!on_loopback()) skip("suppressed work may fill its queue");
    const Pair pair =
        connected_pair_here((Options){.request_dtos = 8, .request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    DAT_UINT64 sent = 0;
    for (int i = 0; i < 60; ++i) CHECK_OK(post_suppressed(pair.client, WRITE, 1000));
    while (sent < 8 && post_suppressed(pair.client, SEND, sent) == DAT_SUCCESS) ++sent;
    CHECK(sent > 0);
    for (int i = 0; i < 60; ++i) CHECK_RC(post_suppressed(pair.client, SEND, 1000), DAT_INSUFFICIENT_RESOURCES);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    for (DAT_UINT64 i = 0; i < sent; ++i) EXPECT_DTO(pair.client, REQUEST, i, DAT_DTO_ERR_FLUSHED);
}

TEST(suppress__flushed_work_of_an_earlier_connection_keeps_its_cookies) {
    if (!on_loopback()) skip("suppressed work may fill its queue");
    const Pair pair =
        connected_pair_here((Options){.request_dtos = 8, .request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    for (DAT_UINT64 i = 0; i < 4; ++i) CHECK_OK(post_suppressed(pair.client, SEND, i));
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(dat_ep_reset(pair.client->ep));
    CHECK_OK(dat_ep_reset(pair.server->ep));
    pair_connect(&pair);
    for (int i = 0; i < 60; ++i) CHECK_OK(post_suppressed(pair.client, WRITE, 1000));
    for (DAT_UINT64 i = 0; i < 4; ++i) EXPECT_DTO(pair.client, REQUEST, i, DAT_DTO_ERR_FLUSHED);
    pair_close(&pair);
}

/* Places of suppressed work are free again once later work is known to be done. */
TEST(suppress__gives_its_place_back) {
    const Pair pair = connected_pair((Options){.request_dtos = 4});
    for (DAT_UINT64 round = 0; round < 20; ++round) {
        for (int i = 0; i < 3; ++i)
            CHECK_OK(
                post(pair.client,
                     (Work){.operation = WRITE, .to = RECV_AT, .length = 64, .flags = DAT_COMPLETION_SUPPRESS_FLAG}));
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 64, .cookie = round}));
        EXPECT_DONE(pair.client, round);
    }
    pair_close(&pair);
}

/* ---- Completions that wake nobody -------------------------------------------------------------------------------- */

TEST(unsignalled__is_told_all_the_same) {
    const Pair pair = connected_pair((Options){.request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    DAT_EVENT event;
    CHECK_OK(post(
        pair.client,
        (Work){
            .operation = WRITE, .to = RECV_AT, .length = 64, .cookie = 1, .flags = DAT_COMPLETION_UNSIGNALLED_FLAG}));
    while (!poll_event(pair.client, REQUEST, &event)) continue;
    CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
    CHECK_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
    pair_close(&pair);
}

TEST(unsignalled__wakes_nobody) {
    const Pair pair = connected_pair_here((Options){.request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    Waiter waiter = {.evd = pair.client->evds[REQUEST]};
    const Work quiet = {.operation = SEND, .length = 64, .cookie = 1, .flags = DAT_COMPLETION_UNSIGNALLED_FLAG};
    const Work loud = {.operation = SEND, .length = 64, .cookie = 2};
    waiter_start(&waiter);
    for (DAT_UINT64 i = 0; i < 2; ++i)
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = i}));
    CHECK_OK(post(pair.client, quiet));
    EXPECT_RECEIVED(pair.server, 0);
    CHECK(still_waiting(&waiter));
    CHECK_OK(post(pair.client, loud));
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    EXPECT_DONE(pair.client, 2);
    EXPECT_RECEIVED(pair.server, 1);
    pair_close(&pair);
}

TEST(unsignalled__receives) {
    const Pair pair = connected_pair((Options){.recv_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    DAT_EVENT event;
    CHECK_OK(post(
        pair.client,
        (Work){
            .operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1, .flags = DAT_COMPLETION_UNSIGNALLED_FLAG}));
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 64, .cookie = 2}));
    while (!poll_event(pair.client, RECV, &event)) continue;
    CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
    EXPECT_DONE(pair.server, 2);
    pair_close(&pair);
}

/* "Request for notification completion for matching receive on the other side." */
TEST(solicited_wait__only_solicited_messages_wake) {
    const Pair pair = connected_pair_here((Options){.recv_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG});
    Waiter waiter = {.evd = pair.server->evds[RECV]};
    for (DAT_UINT64 i = 0; i < 2; ++i)
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = i}));
    waiter_start(&waiter);
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = 1}));
    EXPECT_DONE(pair.client, 1);
    CHECK(still_waiting(&waiter));
    CHECK_OK(post(pair.client,
                  (Work){.operation = SEND, .length = 64, .cookie = 2, .flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG}));
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    EXPECT_DONE(pair.client, 2);
    EXPECT_RECEIVED(pair.server, 1);
    pair_close(&pair);
}

/* Where receives wake as they come, the sender's wish changes nothing. */
TEST(solicited_wait__means_nothing_to_other_endpoints) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    CHECK_OK(post(pair.client,
                  (Work){.operation = SEND, .length = 64, .cookie = 2, .flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG}));
    EXPECT_RECEIVED(pair.server, 1);
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

TEST(solicited_wait__failures_wake) {
    const Pair pair = connected_pair_here((Options){.recv_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG});
    Waiter waiter = {.evd = pair.server->evds[RECV]};
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    waiter_start(&waiter);
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
}

TEST(evd_threshold__is_an_attribute_of_endpoints) {
    const Pair pair = connected_pair(
        (Options){.recv_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG, .request_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG});
    tell(pair.client, pair.server);
    tell(pair.server, pair.client);
    pair_close(&pair);
}

/* ---- Fences ------------------------------------------------------------------------------------------------------ */

/* "Do not start processing until all previous RDMA reads complete": what is sent is what was read. */
static void check_fence(Operation operation) {
    const Pair pair = connected_pair((Options){0});
    const DAT_SEG_LENGTH length = 256 * 1024;
    fill(pair.server, SEND_AT, length, 11);
    if (operation == SEND)
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = length, .cookie = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .to = SEND_AT, .length = length, .cookie = 2}));
    CHECK_OK(post(pair.client, (Work){.operation = operation,
                                      .at = RECV_AT,
                                      .to = RECV_AT,
                                      .length = length,
                                      .cookie = 3,
                                      .flags = DAT_COMPLETION_BARRIER_FENCE_FLAG}));
    EXPECT_DONE(pair.client, 2);
    EXPECT_DONE(pair.client, 3);
    if (operation == SEND) {
        EXPECT_RECEIVED(pair.server, 1);
    } else {
        tell(pair.client, pair.server);
    }
    CHECK(filled(pair.server, RECV_AT + 64, length - 64, 11) || filled(pair.server, RECV_AT, length, 11));
    pair_close(&pair);
}

TEST(barrier_fence__send) { check_fence(SEND); }
TEST(barrier_fence__rdma_write) { check_fence(WRITE); }

TEST(barrier_fence__without_reads) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(post(
        pair.client,
        (Work){
            .operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 1, .flags = DAT_COMPLETION_BARRIER_FENCE_FLAG}));
    CHECK_OK(post(
        pair.client,
        (Work){
            .operation = READ, .at = RECV_AT, .length = 8, .cookie = 2, .flags = DAT_COMPLETION_BARRIER_FENCE_FLAG}));
    EXPECT_DONE(pair.client, 1);
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

/* ---- All at once ------------------------------------------------------------------------------------------------- */

TEST(flags__may_be_combined) {
    const Pair pair = connected_pair((Options){.request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = SEND,
                                      .length = 64,
                                      .cookie = 2,
                                      .flags = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
                                               DAT_COMPLETION_BARRIER_FENCE_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG}));
    EXPECT_RECEIVED(pair.server, 1);
    pair_close(&pair);
}

/* "Request postings always support SUPPRESS, SOLICITED_WAIT, or BARRIER_FENCE" (dat_ep_modify): what is said of them in
 * the attributes of an endpoint does not keep its completions from waking who waits. */
TEST(dto_flags__solicited_requests_wake) {
    const Pair pair = connected_pair_here((Options){.request_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG});
    Waiter waiter = {.evd = pair.client->evds[REQUEST]};
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = AREA_BYTES, .cookie = 1}));
    waiter_start(&waiter);
    CHECK(still_waiting(&waiter));
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = AREA_BYTES, .cookie = 2}));
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    CHECK_EQ(waiter.event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
    EXPECT_RECEIVED(pair.server, 2);
}
