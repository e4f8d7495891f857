/* SPDX-License-Identifier: BSD-3-Clause
 * Messages: what dat_ep_post_send and dat_ep_post_recv move, and what their completions say.
 */
#include "scene.h"

static DAT_LMR_TRIPLET segment(const Side *side, size_t offset, DAT_SEG_LENGTH length) {
    return piece(side, offset, length);
}

static void receive(Side *side, size_t at, DAT_SEG_LENGTH length, DAT_UINT64 cookie) {
    CHECK_OK(post(side, (Work){.operation = RECEIVE, .at = at, .length = length, .cookie = cookie}));
}

static void send_from(Side *side, size_t at, DAT_SEG_LENGTH length, DAT_UINT64 cookie) {
    CHECK_OK(post(side, (Work){.operation = SEND, .at = at, .length = length, .cookie = cookie}));
}

static void check_message(Pair pair, DAT_SEG_LENGTH length) {
    fill(pair.client, SEND_AT, length, 3);
    receive(pair.server, RECV_AT, length, 1);
    send_from(pair.client, SEND_AT, length, 2);
    DAT_DTO_COMPLETION_EVENT_DATA received = EXPECT_RECEIVED(pair.server, 1);
    CHECK_EQ(received.transfered_length, length);
    DAT_DTO_COMPLETION_EVENT_DATA sent = EXPECT_DONE(pair.client, 2);
    CHECK_EQ(sent.transfered_length, length);
    CHECK(sent.ep_handle == pair.client->ep);
    CHECK(filled(pair.server, RECV_AT, length, 3));
}

TEST(messages__of_many_sizes) {
    static const DAT_SEG_LENGTH sizes[] = {MESSAGE_SIZES};
    const Pair pair = connected_pair((Options){0});
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) check_message(pair, sizes[i]);
    pair_close(&pair);
}

TEST(messages__all_that_the_attribute_allows) {
    const Pair pair = connected_pair((Options){0});
    check_message(pair, AREA_BYTES);
    pair_close(&pair);
}

TEST(messages__name_their_operation) {
    const Pair pair = connected_pair((Options){0});
    receive(pair.server, RECV_AT, 64, 1);
    send_from(pair.client, SEND_AT, 64, 2);
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 1).operation, DAT_DTO_RECEIVE);
    CHECK_EQ(EXPECT_DONE(pair.client, 2).operation, DAT_DTO_SEND);
    pair_close(&pair);
}

TEST(messages__of_no_bytes) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .no_segment = true, .cookie = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .no_segment = true, .cookie = 2}));
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 1).transfered_length, 0);
    CHECK_EQ(EXPECT_DONE(pair.client, 2).transfered_length, 0);
    pair_close(&pair);
}

/* "When 0 is specified for the segment_length then the other two elements are irrelevant and can be invalid." */
TEST(messages__a_segment_of_no_bytes_is_no_memory) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_LMR_TRIPLET list[3] = {segment(pair.client, SEND_AT, 8), {0x10, 0, 0x12345}, segment(pair.client, 64, 8)};
    fill(pair.client, SEND_AT, 8, 1);
    receive(pair.server, RECV_AT, 64, 1);
    CHECK_OK(dat_ep_post_send(pair.client->ep, 3, list, (DAT_DTO_COOKIE){.as_64 = 2}, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 1).transfered_length, 16);
    EXPECT_DONE(pair.client, 2);
    CHECK(filled(pair.server, RECV_AT, 8, 1));
    pair_close(&pair);
}

/* Gathered in the order of the list and scattered in it: "all the front segments are completely filled". */
TEST(messages__several_segments) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_LMR_TRIPLET from[3] = {segment(pair.client, 5000, 100), segment(pair.client, 0, 50),
                               segment(pair.client, 2000, 30)};
    DAT_LMR_TRIPLET to[3] = {segment(pair.server, RECV_AT + 900, 10), segment(pair.server, RECV_AT, 150),
                             segment(pair.server, RECV_AT + 2000, 500)};
    const DAT_DTO_COOKIE one = {.as_64 = 1}, two = {.as_64 = 2};
    uint8_t *memory = pair.client->memory; /* both sides' */
    for (size_t i = 0; i < 100; ++i) memory[5000 + i] = (uint8_t)i;
    for (size_t i = 0; i < 50; ++i) memory[i] = (uint8_t)(100 + i);
    for (size_t i = 0; i < 30; ++i) memory[2000 + i] = (uint8_t)(150 + i);
    memset(memory + RECV_AT, 0xee, 4096);
    CHECK_OK(dat_ep_post_recv(pair.server->ep, 3, to, one, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_OK(dat_ep_post_send(pair.client->ep, 3, from, two, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 1).transfered_length, 180);
    EXPECT_DONE(pair.client, 2);
    for (size_t i = 0; i < 10; ++i) CHECK_EQ(memory[RECV_AT + 900 + i], i);
    for (size_t i = 0; i < 150; ++i) CHECK_EQ(memory[RECV_AT + i], 10 + i);
    for (size_t i = 0; i < 20; ++i) CHECK_EQ(memory[RECV_AT + 2000 + i], 160 + i);
    CHECK_EQ(memory[RECV_AT + 2020], 0xee);
    pair_close(&pair);
}

TEST(messages__a_larger_receive) {
    const Pair pair = connected_pair((Options){0});
    fill(pair.client, SEND_AT, 100, 4);
    receive(pair.server, RECV_AT, 4096, 1);
    send_from(pair.client, SEND_AT, 100, 2);
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 1).transfered_length, 100);
    EXPECT_DONE(pair.client, 2);
    CHECK(filled(pair.server, RECV_AT, 100, 4));
    pair_close(&pair);
}

/* ---- Order ------------------------------------------------------------------------------------------------------- */

TEST(messages__come_in_order) {
    const Pair pair = connected_pair((Options){0});
    for (DAT_UINT64 i = 0; i < 12; ++i) receive(pair.server, RECV_AT + 4096 * i, 4096, 100 + i);
    for (DAT_UINT64 i = 0; i < 12; ++i) {
        fill(pair.client, SEND_AT + 4096 * i, 4096, (unsigned)i);
        send_from(pair.client, SEND_AT + 4096 * i, (DAT_SEG_LENGTH)(i % 3 == 0 ? 4096 : 16 * (i + 1)), i);
    }
    for (DAT_UINT64 i = 0; i < 12; ++i) {
        DAT_SEG_LENGTH length = (DAT_SEG_LENGTH)(i % 3 == 0 ? 4096 : 16 * (i + 1));
        CHECK_EQ(EXPECT_RECEIVED(pair.server, 100 + i).transfered_length, length);
        CHECK(filled(pair.server, RECV_AT + 4096 * i, length, (unsigned)i));
    }
    for (DAT_UINT64 i = 0; i < 12; ++i) EXPECT_DONE(pair.client, i);
    pair_close(&pair);
}

TEST(messages__in_both_directions) {
    const Pair pair = connected_pair((Options){0});
    for (DAT_UINT64 i = 0; i < 8; ++i) {
        receive(pair.server, RECV_AT, 64, i);
        receive(pair.client, RECV_AT, 64, i);
    }
    for (DAT_UINT64 i = 0; i < 8; ++i) {
        send_from(pair.client, SEND_AT, 64, i);
        send_from(pair.server, SEND_AT, 64, i);
    }
    for (DAT_UINT64 i = 0; i < 8; ++i) {
        EXPECT_DONE(pair.client, i);
        EXPECT_DONE(pair.server, i);
        EXPECT_RECEIVED(pair.client, i);
        EXPECT_RECEIVED(pair.server, i);
    }
    expect_nothing(pair.client);
    expect_nothing(pair.server);
    pair_close(&pair);
}

/* A message that finds no receive waits for one. */
TEST(messages__wait_for_the_receiver) {
    const Pair pair = connected_pair((Options){0});
    DAT_EVENT event;
    fill(pair.client, SEND_AT, 64, 9);
    for (DAT_UINT64 i = 0; i < 4; ++i) send_from(pair.client, SEND_AT, 64, i);
    CHECK(!poll_event(pair.client, REQUEST, &event));
    for (DAT_UINT64 i = 0; i < 4; ++i) receive(pair.server, RECV_AT + 64 * i, 64, i);
    for (DAT_UINT64 i = 0; i < 4; ++i) EXPECT_RECEIVED(pair.server, i);
    for (DAT_UINT64 i = 0; i < 4; ++i) EXPECT_DONE(pair.client, i);
    CHECK(filled(pair.server, RECV_AT + 64 * 3, 64, 9));
    pair_close(&pair);
}

/* Cookies are the program's: they need not differ, and all 64 bits come back. */
TEST(messages__cookies) {
    const Pair pair = connected_pair((Options){0});
    const DAT_UINT64 cookies[] = {0, 0, UINT64_MAX, UINT64_C(0x8000000000000001)};
    for (int i = 0; i < 4; ++i) receive(pair.server, RECV_AT, 64, cookies[i]);
    for (int i = 0; i < 4; ++i) send_from(pair.client, SEND_AT, 64, cookies[i]);
    for (int i = 0; i < 4; ++i) EXPECT_RECEIVED(pair.server, cookies[i]);
    for (int i = 0; i < 4; ++i) EXPECT_DONE(pair.client, cookies[i]);
    pair_close(&pair);
}

/* ---- Events of several endpoints on one EVD ---------------------------------------------------------------------- */

TEST(messages__of_several_endpoints_on_one_evd) {
    enum { EPS = 4, EACH = 3 };
    const Pair pair = open_pair_here((Options){0});
    Side *client = pair.client, *server = pair.server;
    DAT_EP_HANDLE active[EPS], passive[EPS];
    int done[EPS] = {0}, received[EPS] = {0};
    DAT_LMR_TRIPLET space = piece(server, RECV_AT, 64), data = piece(client, SEND_AT, 64);
    for (int i = 0; i < EPS; ++i) {
        active[i] = new_ep(client, (Options){0});
        passive[i] = new_ep(server, (Options){0});
        CHECK_OK(request_to(server, active[i], server->qual));
        CHECK_OK(dat_cr_accept(request_on(server->evds[CR]), passive[i], 0, NULL));
        WAIT_ON(client->evds[CONN], DAT_CONNECTION_EVENT_ESTABLISHED);
        WAIT_ON(server->evds[CONN], DAT_CONNECTION_EVENT_ESTABLISHED);
    }
    for (int round = 0; round < EACH; ++round) {
        for (int i = 0; i < EPS; ++i) {
            const DAT_DTO_COOKIE cookie = {.as_64 = (DAT_UINT64)(i * EACH + round)};
            CHECK_OK(dat_ep_post_recv(passive[i], 1, &space, cookie, DAT_COMPLETION_DEFAULT_FLAG));
            CHECK_OK(dat_ep_post_send(active[i], 1, &data, cookie, DAT_COMPLETION_DEFAULT_FLAG));
        }
    }
    for (int n = 0; n < EPS * EACH; ++n) {
        for (int k = 0; k < 2; ++k) { /* each endpoint's own come in order, between those of others */
            int *count = k == 0 ? done : received;
            DAT_EVENT event = next_event(k == 0 ? client : server, k == 0 ? REQUEST : RECV);
            const DAT_DTO_COMPLETION_EVENT_DATA *data_of = &event.event_data.dto_completion_event_data;
            const int i = (int)data_of->user_cookie.as_64 / EACH;
            CHECK_EQ(data_of->status, DAT_DTO_SUCCESS);
            CHECK(data_of->ep_handle == (k == 0 ? active[i] : passive[i]));
            CHECK_EQ(data_of->user_cookie.as_64, (DAT_UINT64)(i * EACH + count[i]++));
        }
    }
}
