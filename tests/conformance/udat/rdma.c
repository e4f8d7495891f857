/* SPDX-License-Identifier: BSD-3-Clause
 * RDMA: what dat_ep_post_rdma_write and dat_ep_post_rdma_read move, in order with messages.
 */
#include "scene.h"

static const DAT_SEG_LENGTH sizes[] = {MESSAGE_SIZES, LARGEST_MESSAGE};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void check_write(Pair pair, DAT_SEG_LENGTH length) {
    fill(pair.client, SEND_AT, length, 6);
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = length, .cookie = 1}));
    CHECK_EQ(EXPECT_DONE(pair.client, 1).transfered_length, length);
    tell(pair.client, pair.server);
    CHECK(filled(pair.server, RECV_AT, length, 6));
}

TEST(rdma_write__of_many_sizes) {
    const Pair pair = connected_pair((Options){0});
    for (int i = 0; i < SIZES; ++i) check_write(pair, sizes[i]);
    pair_close(&pair);
}

static void check_read(Pair pair, DAT_SEG_LENGTH length) {
    fill(pair.server, SEND_AT, length, 7);
    CHECK_OK(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .to = SEND_AT, .length = length, .cookie = 1}));
    CHECK_EQ(EXPECT_DONE(pair.client, 1).transfered_length, length);
    CHECK(filled(pair.client, RECV_AT, length, 7));
}

TEST(rdma_read__of_many_sizes) {
    const Pair pair = connected_pair((Options){0});
    for (int i = 0; i < SIZES; ++i) check_read(pair, sizes[i]);
    pair_close(&pair);
}

TEST(rdma__names_its_operation) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 64, .cookie = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .length = 64, .cookie = 2}));
    CHECK_EQ(EXPECT_DONE(pair.client, 1).operation, DAT_DTO_RDMA_WRITE);
    CHECK_EQ(EXPECT_DONE(pair.client, 2).operation, DAT_DTO_RDMA_READ);
    pair_close(&pair);
}

TEST(rdma_write__of_no_bytes) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .no_segment = true, .cookie = 1}));
    CHECK_EQ(EXPECT_DONE(pair.client, 1).transfered_length, 0);
    pair_close(&pair);
}

TEST(rdma_read__of_no_bytes) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(
        post(pair.client, (Work){.operation = READ, .at = RECV_AT, .to = SEND_AT, .no_segment = true, .cookie = 1}));
    CHECK_EQ(EXPECT_DONE(pair.client, 1).transfered_length, 0);
    pair_close(&pair);
}

/* The local list is gathered; the remote buffer is one. */
TEST(rdma_write__several_segments) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_LMR_TRIPLET list[3] = {piece(pair.client, 3000, 20), piece(pair.client, 0, 30), piece(pair.client, 900, 10)};
    DAT_RMR_TRIPLET to = target_piece(pair.client, RECV_AT, 60);
    uint8_t *memory = pair.client->memory;
    for (size_t i = 0; i < 20; ++i) memory[3000 + i] = (uint8_t)i;
    for (size_t i = 0; i < 30; ++i) memory[i] = (uint8_t)(20 + i);
    for (size_t i = 0; i < 10; ++i) memory[900 + i] = (uint8_t)(50 + i);
    CHECK_OK(dat_ep_post_rdma_write(pair.client->ep, 3, list, (DAT_DTO_COOKIE){.as_64 = 1}, &to,
                                    DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_EQ(EXPECT_DONE(pair.client, 1).transfered_length, 60);
    tell(pair.client, pair.server);
    for (size_t i = 0; i < 60; ++i) CHECK_EQ(memory[RECV_AT + i], i);
    pair_close(&pair);
}

/* A remote buffer may be larger than what is written, a local one larger than what is read. */
TEST(rdma_write__into_a_larger_buffer) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_LMR_TRIPLET from = piece(pair.client, SEND_AT, 16);
    DAT_RMR_TRIPLET to = target_piece(pair.client, RECV_AT, 4096);
    CHECK_OK(dat_ep_post_rdma_write(pair.client->ep, 1, &from, (DAT_DTO_COOKIE){.as_64 = 1}, &to,
                                    DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_EQ(EXPECT_DONE(pair.client, 1).transfered_length, 16);
    pair_close(&pair);
}

/* "All the data specified by the remote_buffer": what lies behind it is neither read nor overwritten. */
TEST(rdma_read__into_a_larger_buffer) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_LMR_TRIPLET to = piece(pair.client, RECV_AT, 64);
    DAT_RMR_TRIPLET from = target_piece(pair.client, SEND_AT, 16);
    fill(pair.server, SEND_AT, 64, 3);
    memset(pair.client->memory + RECV_AT, 0xee, 64);
    CHECK_OK(dat_ep_post_rdma_read(pair.client->ep, 1, &to, (DAT_DTO_COOKIE){.as_64 = 1}, &from,
                                   DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_EQ(EXPECT_DONE(pair.client, 1).transfered_length, 16);
    CHECK(filled(pair.client, RECV_AT, 16, 3));
    for (size_t i = 16; i < 64; ++i) CHECK_EQ(pair.client->memory[RECV_AT + i], 0xee);
    pair_close(&pair);
}

/* The target takes no part: its process is stopped. */
TEST(rdma__the_target_does_nothing) {
    if (lacks("one_sided")) skip("the agent of the target does the work");
    const Pair pair = connected_pair((Options){0});
    fill(pair.server, SEND_AT, 4096, 8);
    fill(pair.client, SEND_AT, 4096, 9);
    peer_stop(pair.server->process);
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 4096, .cookie = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .to = SEND_AT, .length = 4096, .cookie = 2}));
    EXPECT_DONE(pair.client, 1);
    EXPECT_DONE(pair.client, 2);
    peer_continue(pair.server->process);
    CHECK(filled(pair.client, RECV_AT, 4096, 8));
    CHECK(filled(pair.server, RECV_AT, 4096, 9));
    pair_close(&pair);
}

/* A message after a write tells of the written data. */
TEST(rdma_write__before_a_message) {
    const Pair pair = connected_pair((Options){0});
    for (unsigned round = 0; round < 20; ++round) {
        fill(pair.client, SEND_AT, 65536, round);
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .no_segment = true, .cookie = round}));
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 65536, .cookie = 1}));
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .no_segment = true, .cookie = 2}));
        EXPECT_RECEIVED(pair.server, round);
        CHECK(filled(pair.server, RECV_AT, 65536, round));
        EXPECT_DONE(pair.client, 1);
        EXPECT_DONE(pair.client, 2);
    }
    pair_close(&pair);
}

/* Completions of different kinds come in the order of posting. */
TEST(rdma__completes_in_order) {
    const Pair pair = connected_pair((Options){0});
    for (DAT_UINT64 i = 0; i < 4; ++i)
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = i}));
    for (DAT_UINT64 i = 0; i < 4; ++i) {
        CHECK_OK(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .length = 65536, .cookie = 3 * i}));
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT + 4096, .length = 8, .cookie = 3 * i + 1}));
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = 3 * i + 2}));
    }
    for (DAT_UINT64 i = 0; i < 12; ++i) EXPECT_DONE(pair.client, i);
    for (DAT_UINT64 i = 0; i < 4; ++i) EXPECT_RECEIVED(pair.server, i);
    pair_close(&pair);
}

/* More reads than max_rdma_read_out can be posted; they wait for each other. */
TEST(rdma_read__more_than_can_be_under_way) {
    const Pair pair = connected_pair((Options){0});
    fill(pair.server, SEND_AT, 65536, 2);
    for (DAT_UINT64 i = 0; i < 12; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .length = 65536, .cookie = i}));
    for (DAT_UINT64 i = 0; i < 12; ++i) EXPECT_DONE(pair.client, i);
    CHECK(filled(pair.client, RECV_AT, 65536, 2));
    pair_close(&pair);
}

/* From the passive side, too. */
TEST(rdma__by_the_server) {
    const Pair pair = connected_pair((Options){0});
    fill(pair.client, SEND_AT, 1000, 4);
    fill(pair.server, SEND_AT, 1000, 5);
    CHECK_OK(post(pair.server, (Work){.operation = READ, .at = RECV_AT, .length = 1000, .cookie = 1}));
    CHECK_OK(post(pair.server, (Work){.operation = WRITE, .to = RECV_AT, .length = 1000, .cookie = 2}));
    EXPECT_DONE(pair.server, 1);
    EXPECT_DONE(pair.server, 2);
    tell(pair.server, pair.client);
    CHECK(filled(pair.server, RECV_AT, 1000, 4));
    CHECK(filled(pair.client, RECV_AT, 1000, 5));
    pair_close(&pair);
}
