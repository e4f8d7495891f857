/* SPDX-License-Identifier: BSD-3-Clause
 * Messages: rpma_send(3), rpma_send_with_imm(3), rpma_recv(3).
 */
#include "side.h"

#include <arpa/inet.h>

static int receive(Side *side, size_t length, uint64_t context) {
    return post(side, (Work){.operation = RECV, .at = RECV_AT, .length = length, .context = context});
}

static int transmit(Side *side, size_t length, uint64_t context) {
    return post(side, (Work){.operation = SEND, .at = SEND_AT, .length = length, .context = context});
}

/* ---- Contents ---------------------------------------------------------------------------------------------------- */

/* From the client to the server and back. */
static void travel(const Pair *pair, size_t length) {
    Side *const ways[2][2] = {{pair->client, pair->server}, {pair->server, pair->client}};
    for (int way = 0; way < 2; ++way) {
        Side *from = ways[way][0], *to = ways[way][1];
        fill(from, SEND_AT, length, (unsigned)way);
        CHECK_OK(receive(to, length, 1));
        CHECK_OK(transmit(from, length, 2));
        CHECK_EQ(EXPECT_RECEIVED(to, 1).byte_len, length);
        EXPECT_DONE(from, 2);
        CHECK(filled(to, RECV_AT, length, (unsigned)way));
    }
}

TEST(send__messages_of_many_sizes) {
    static const size_t sizes[] = {MESSAGE_SIZES, LARGEST_MESSAGE};
    Pair pair = connected_pair((Options){0});
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) travel(&pair, sizes[i]);
    pair_close(&pair);
}

TEST(send__only_the_message_is_written) {
    Pair pair = connected_pair((Options){0});
    fill(pair.client, SEND_AT, 100, 1);
    fill(pair.server, RECV_AT, 200, 2);
    CHECK_OK(receive(pair.server, 200, 1));
    CHECK_OK(transmit(pair.client, 100, 2));
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 1).byte_len, 100);
    CHECK(filled(pair.server, RECV_AT, 100, 1));
    CHECK(!filled(pair.server, RECV_AT, 200, 2));
    fill(pair.server, RECV_AT, 100, 2);
    CHECK(filled(pair.server, RECV_AT, 200, 2));
    pair_close(&pair);
}

TEST(send__in_order) {
    enum { COUNT = 8, BYTES = 1000 };
    Pair pair = connected_pair((Options){0});
    for (unsigned i = 0; i < COUNT; ++i) {
        fill(pair.client, SEND_AT + i * BYTES, BYTES, i);
        CHECK_OK(
            post(pair.server, (Work){.operation = RECV, .at = RECV_AT + i * BYTES, .length = BYTES, .context = i}));
    }
    for (unsigned i = 0; i < COUNT; ++i)
        CHECK_OK(
            post(pair.client, (Work){.operation = SEND, .at = SEND_AT + i * BYTES, .length = BYTES, .context = i}));
    for (unsigned i = 0; i < COUNT; ++i) {
        EXPECT_DONE(pair.client, i);
        EXPECT_RECEIVED(pair.server, i);
        CHECK(filled(pair.server, RECV_AT + i * BYTES, BYTES, i));
    }
    pair_close(&pair);
}

TEST(send__of_no_bytes_without_a_region) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .no_region = true, .context = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .no_region = true, .context = 2}));
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 1).byte_len, 0);
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

TEST(send__of_no_bytes_from_a_region) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(receive(pair.server, 0, 1));
    CHECK_OK(receive(pair.server, 64, 2));
    CHECK_OK(transmit(pair.client, 0, 3));
    CHECK_OK(transmit(pair.client, 0, 4));
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 1).byte_len, 0);
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 2).byte_len, 0);
    EXPECT_DONE(pair.client, 3);
    EXPECT_DONE(pair.client, 4);
    pair_close(&pair);
}

/* ---- Completions, field by field --------------------------------------------------------------------------------- */

TEST(send__completion) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(receive(pair.server, 64, 1));
    CHECK_OK(transmit(pair.client, 64, 0xfedcba9876543210));
    struct ibv_wc wc = EXPECT_DONE(pair.client, 0xfedcba9876543210);
    CHECK_EQ(wc.opcode, IBV_WC_SEND);
    CHECK_EQ(wc.qp_num, qp_num_of(pair.client));
    CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0);
    CHECK_EQ(EXPECT_RECEIVED(pair.server, 1).qp_num, qp_num_of(pair.server));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

TEST(recv__completion) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(receive(pair.client, 64, 0x8000000000000001));
    CHECK_OK(transmit(pair.server, 37, 2));
    struct ibv_wc wc = EXPECT_RECEIVED(pair.client, 0x8000000000000001);
    CHECK_EQ(wc.opcode, IBV_WC_RECV);
    CHECK_EQ(wc.byte_len, 37);
    CHECK_EQ(wc.qp_num, qp_num_of(pair.client));
    CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0);
    CHECK_EQ(EXPECT_DONE(pair.server, 2).qp_num, qp_num_of(pair.server));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

TEST(send_with_imm__completions) {
    static const uint32_t numbers[] = {0, 1, 0x12345678, UINT32_MAX};
    Pair pair = connected_pair((Options){0});
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        Work work = {.operation = SEND_WITH_IMM, .length = 64, .imm = numbers[i], .context = 2};
        fill(pair.server, SEND_AT, 64, (unsigned)i);
        CHECK_OK(receive(pair.client, 100, 1));
        CHECK_OK(post(pair.server, work));
        struct ibv_wc wc = EXPECT_RECEIVED(pair.client, 1);
        CHECK_EQ(wc.opcode, IBV_WC_RECV);
        CHECK_EQ(wc.byte_len, 64);
        CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
        CHECK_EQ(wc.imm_data, htonl(numbers[i]));
        CHECK_EQ(wc.qp_num, qp_num_of(pair.client));
        wc = EXPECT_DONE(pair.server, 2);
        CHECK_EQ(wc.opcode, IBV_WC_SEND);
        CHECK_EQ(wc.qp_num, qp_num_of(pair.server));
        CHECK(filled(pair.client, RECV_AT, 64, (unsigned)i));
    }
    pair_close(&pair);
}

TEST(send_with_imm__of_no_bytes) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECV, .no_region = true, .context = 1}));
    CHECK_OK(post(pair.server, (Work){.operation = SEND_WITH_IMM, .no_region = true, .imm = 7, .context = 2}));
    struct ibv_wc wc = EXPECT_RECEIVED(pair.client, 1);
    CHECK_EQ(wc.byte_len, 0);
    CHECK_EQ(wc.imm_data, htonl(7));
    EXPECT_DONE(pair.server, 2);
    pair_close(&pair);
}

/* The second message is the only one that tells of itself; the queue has long forgotten the first. */
TEST(send__completion_on_error_only) {
    Pair pair = connected_pair((Options){0});
    for (int i = 0; i < 2; ++i) CHECK_OK(receive(pair.server, 64, (uint64_t)i));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .on_error = true, .context = 10}));
    CHECK_OK(transmit(pair.client, 64, 11));
    EXPECT_DONE(pair.client, 11);
    for (int i = 0; i < 2; ++i) EXPECT_RECEIVED(pair.server, (uint64_t)i);
    expect_no_wc(pair.client);
    pair_close(&pair);
}

TEST(send_with_imm__completion_on_error_only) {
    Pair pair = connected_pair((Options){0});
    for (int i = 0; i < 2; ++i) CHECK_OK(receive(pair.server, 64, (uint64_t)i));
    CHECK_OK(post(pair.client, (Work){.operation = SEND_WITH_IMM, .length = 64, .on_error = true, .context = 10}));
    CHECK_OK(transmit(pair.client, 64, 11));
    EXPECT_DONE(pair.client, 11);
    for (int i = 0; i < 2; ++i) EXPECT_RECEIVED(pair.server, (uint64_t)i);
    expect_no_wc(pair.client);
    pair_close(&pair);
}

/* Quiet sends leave their place on the queue when a later one completes. */
TEST(send__quiet_ones_make_room) {
    enum { ROUNDS = 20, QUIET = 3 };
    Pair pair = connected_pair((Options){.sq_size = QUIET + 1, .rq_size = QUIET + 1});
    for (int round = 0; round < ROUNDS; ++round) {
        for (int i = 0; i <= QUIET; ++i) CHECK_OK(receive(pair.server, 64, 1));
        for (int i = 0; i < QUIET; ++i)
            CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .on_error = true, .context = 2}));
        CHECK_OK(transmit(pair.client, 64, 3));
        EXPECT_DONE(pair.client, 3);
        for (int i = 0; i <= QUIET; ++i) EXPECT_RECEIVED(pair.server, 1);
    }
    pair_close(&pair);
}

/* ---- No receive posted ------------------------------------------------------------------------------------------- */

TEST(send__waits_until_a_receive_is_posted) {
    Pair pair = connected_pair((Options){0});
    fill(pair.client, SEND_AT, 64, 3);
    CHECK_OK(transmit(pair.client, 64, 2));
    expect_no_wc(pair.server);
    CHECK_OK(receive(pair.server, 64, 1));
    EXPECT_RECEIVED(pair.server, 1);
    EXPECT_DONE(pair.client, 2);
    CHECK(filled(pair.server, RECV_AT, 64, 3));
    pair_close(&pair);
}

TEST(send__several_wait_in_order) {
    Pair pair = connected_pair((Options){0});
    for (unsigned i = 0; i < 5; ++i) {
        fill(pair.client, SEND_AT + 100 * i, 100, i);
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .at = SEND_AT + 100 * i, .length = 100, .context = i}));
    }
    for (unsigned i = 0; i < 5; ++i) {
        CHECK_OK(receive(pair.server, 100, i));
        EXPECT_RECEIVED(pair.server, i);
        CHECK(filled(pair.server, RECV_AT, 100, i));
        EXPECT_DONE(pair.client, i);
    }
    pair_close(&pair);
}

/* ---- Errors that the completion tells ---------------------------------------------------------------------------- */

/* The receiver is told; the connection breaks at both sides. Whether the sender sees its send succeed is left open. */
TEST(recv__too_small) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(receive(pair.server, 50, 1));
    CHECK_OK(receive(pair.server, 50, 2));
    CHECK_OK(transmit(pair.client, 51, 3));
    EXPECT_FAILED(pair.server, RECV_CQ, 1, IBV_WC_LOC_LEN_ERR);
    EXPECT_WC(pair.server, RECV_CQ, 2, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(next_wc(pair.client, MAIN_CQ).wr_id, 3);
    EXPECT_BREAK(pair.server);
    if (!on_loopback()) disconnect(pair.server);
    enum rpma_conn_event event = next_event(pair.client); /* which one depends on what the sender has been told */
    CHECK(event == RPMA_CONN_LOST || event == RPMA_CONN_CLOSED);
}

TEST(recv__without_a_region_is_too_small_for_a_byte) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .no_region = true, .context = 1}));
    CHECK_OK(transmit(pair.client, 1, 2));
    EXPECT_FAILED(pair.server, RECV_CQ, 1, IBV_WC_LOC_LEN_ERR);
}

TEST(send__from_outside_the_region) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(receive(pair.server, 64, 1));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .at = MEMORY_BYTES - 63, .length = 64, .context = 2}));
    EXPECT_WC(pair.client, MAIN_CQ, 2, IBV_WC_LOC_PROT_ERR);
}

TEST(send__an_error_is_told_although_success_would_not_be) {
    Pair pair = connected_pair((Options){0});
    Work work = {.operation = SEND, .at = MEMORY_BYTES, .length = 1, .on_error = true, .context = 2};
    CHECK_OK(receive(pair.server, 64, 1));
    CHECK_OK(post(pair.client, work));
    EXPECT_WC(pair.client, MAIN_CQ, 2, IBV_WC_LOC_PROT_ERR);
}

TEST(send_with_imm__from_outside_the_region) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(receive(pair.server, 64, 1));
    CHECK_OK(post(pair.client, (Work){.operation = SEND_WITH_IMM, .at = MEMORY_BYTES, .length = 8, .context = 2}));
    EXPECT_WC(pair.client, MAIN_CQ, 2, IBV_WC_LOC_PROT_ERR);
}

TEST(recv__outside_the_region) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .at = MEMORY_BYTES - 8, .length = 64, .context = 1}));
    CHECK_OK(transmit(pair.client, 64, 2));
    EXPECT_FAILED(pair.server, RECV_CQ, 1, IBV_WC_LOC_PROT_ERR);
}

TEST(recv__into_a_region_that_forbids_it) {
    Pair pair = connected_pair_of((Options){0}, (Options){.usage = RPMA_MR_USAGE_SEND});
    CHECK_OK(receive(pair.server, 64, 1));
    CHECK_OK(transmit(pair.client, 64, 2));
    EXPECT_FAILED(pair.server, RECV_CQ, 1, IBV_WC_LOC_PROT_ERR);
}

TEST(recv__a_region_of_another_peer) {
    Pair pair = connected_pair((Options){0});
    struct rpma_peer *peer = new_peer();
    struct rpma_mr_local *mr = NULL;
    CHECK_OK(rpma_mr_reg(peer, pair.client->memory, MEMORY_BYTES, ALL_USAGES, &mr));
    CHECK_OK(rpma_recv(pair.client->conn, mr, 0, 64, &mr));
    CHECK_OK(transmit(pair.server, 64, 2));
    EXPECT_FAILED(pair.client, RECV_CQ, (uintptr_t)&mr, IBV_WC_LOC_PROT_ERR);
}

/* ---- After the end ----------------------------------------------------------------------------------------------- */

TEST(send__is_flushed_after_disconnecting) {
    Pair pair = connected_pair((Options){0});
    disconnect(pair.client);
    CHECK_OK(transmit(pair.client, 64, 1));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_WR_FLUSH_ERR);
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .on_error = true, .context = 2}));
    EXPECT_WC(pair.client, MAIN_CQ, 2, IBV_WC_WR_FLUSH_ERR);
}

TEST(send__that_waits_is_flushed_by_disconnecting) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(transmit(pair.client, 64, 1));
    disconnect(pair.client);
    CHECK_EQ(EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_WR_FLUSH_ERR).qp_num, qp_num_of(pair.client));
}

TEST(recv__is_flushed_by_disconnecting) {
    Pair pair = connected_pair((Options){0});
    for (unsigned i = 0; i < 3; ++i) {
        CHECK_OK(receive(pair.client, 64, i));
        CHECK_OK(receive(pair.server, 64, 10 + i));
    }
    pair_hang_up(&pair);
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_WC(pair.client, RECV_CQ, i, IBV_WC_WR_FLUSH_ERR);
        EXPECT_WC(pair.server, RECV_CQ, 10 + i, IBV_WC_WR_FLUSH_ERR);
    }
}

TEST(recv__is_flushed_after_disconnecting) {
    Pair pair = closed_pair();
    CHECK_OK(receive(pair.client, 64, 1));
    EXPECT_WC(pair.client, RECV_CQ, 1, IBV_WC_WR_FLUSH_ERR);
}

/* What was received before the end is there after it. */
TEST(recv__completions_outlive_the_connection) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(receive(pair.server, 64, 1));
    CHECK_OK(transmit(pair.client, 64, 2));
    EXPECT_DONE(pair.client, 2);
    disconnect(pair.client);
    EXPECT_EVENT(pair.server, RPMA_CONN_CLOSED);
    EXPECT_RECEIVED(pair.server, 1);
}

/* ---- Errors of the calls ----------------------------------------------------------------------------------------- */

TEST(send__invalid_arguments) {
    Pair pair = connected_pair((Options){0});
    Side *side = pair.client;
    const int flags = RPMA_F_COMPLETION_ALWAYS;
    CHECK_INVAL(rpma_send(NULL, side->mr, 0, 8, flags, NULL));
    CHECK_INVAL(rpma_send(side->conn, side->mr, 0, 8, 0, NULL));
    CHECK_INVAL(rpma_send(side->conn, NULL, 1, 0, flags, NULL));
    CHECK_INVAL(rpma_send(side->conn, NULL, 0, 1, flags, NULL));
    expect_no_wc(side);
    pair_close(&pair);
}

TEST(send_with_imm__invalid_arguments) {
    Pair pair = connected_pair((Options){0});
    Side *side = pair.client;
    const int flags = RPMA_F_COMPLETION_ALWAYS;
    CHECK_INVAL(rpma_send_with_imm(NULL, side->mr, 0, 8, flags, 1, NULL));
    CHECK_INVAL(rpma_send_with_imm(side->conn, side->mr, 0, 8, 0, 1, NULL));
    CHECK_INVAL(rpma_send_with_imm(side->conn, NULL, 1, 0, flags, 1, NULL));
    CHECK_INVAL(rpma_send_with_imm(side->conn, NULL, 0, 1, flags, 1, NULL));
    expect_no_wc(side);
    pair_close(&pair);
}

TEST(recv__invalid_arguments) {
    Pair pair = connected_pair((Options){0});
    Side *side = pair.client;
    CHECK_INVAL(rpma_recv(NULL, side->mr, 0, 8, NULL));
    CHECK_INVAL(rpma_recv(side->conn, NULL, 1, 0, NULL));
    CHECK_INVAL(rpma_recv(side->conn, NULL, 0, 1, NULL));
    pair_close(&pair);
}

TEST(send__lengths_above_32_bits) {
    const size_t length = (size_t)UINT32_MAX + 1;
    Pair pair = connected_pair((Options){0});
    CHECK_INVAL(transmit(pair.client, length, 1));
    CHECK_INVAL(post(pair.client, (Work){.operation = SEND_WITH_IMM, .length = length}));
    CHECK_INVAL(receive(pair.client, length, 1));
    pair_close(&pair);
}

/* Nobody receives, so that nothing completes. */
TEST(send__a_full_queue) {
    Pair pair = connected_pair((Options){.sq_size = 3});
    unsigned posted = fill_queue(pair.client, (Work){.operation = SEND, .length = 64, .context = 1}, 3);
    for (unsigned i = 0; i < posted; ++i) {
        CHECK_OK(receive(pair.server, 64, i));
        EXPECT_DONE(pair.client, 1);
        EXPECT_RECEIVED(pair.server, i);
    }
    CHECK_OK(transmit(pair.client, 64, 3));
    pair_close(&pair);
}

TEST(send__a_deep_queue) {
    enum { DEPTH = 1000 };
    Pair pair =
        connected_pair_of((Options){.sq_size = DEPTH, .cq_size = DEPTH}, (Options){.rq_size = DEPTH, .cq_size = DEPTH});
    fill_queue(pair.client, (Work){.operation = SEND, .length = 64, .context = 1}, DEPTH);
    for (unsigned i = 0; i < DEPTH; ++i) CHECK_OK(receive(pair.server, 64, i));
    for (unsigned i = 0; i < DEPTH; ++i) {
        EXPECT_DONE(pair.client, 1);
        EXPECT_RECEIVED(pair.server, i);
    }
    pair_close(&pair);
}

TEST(send__a_queue_of_no_entries) {
    Pair pair = open_pair((Options){0});
    CHECK_OK(rpma_conn_cfg_set_sq_size(pair.client->cfg, 0));
    pair_connect(&pair);
    CHECK_RC(transmit(pair.client, 64, 1), RPMA_E_PROVIDER);
    pair_close(&pair);
}

TEST(send_with_imm__a_full_queue) {
    Pair pair = connected_pair((Options){.sq_size = 3});
    fill_queue(pair.client, (Work){.operation = SEND_WITH_IMM, .length = 64}, 3);
    pair_close(&pair);
}

TEST(recv__a_full_queue) {
    Pair pair = connected_pair((Options){.rq_size = 3});
    fill_queue(pair.client, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}, 3);
    CHECK_OK(transmit(pair.server, 64, 9));
    EXPECT_RECEIVED(pair.client, 1);
    CHECK_OK(receive(pair.client, 64, 3));
    pair_close(&pair);
}

TEST(recv__a_queue_of_no_entries) {
    Pair pair = open_pair((Options){0});
    CHECK_OK(rpma_conn_cfg_set_rq_size(pair.client->cfg, 0));
    pair_connect(&pair);
    CHECK_RC(receive(pair.client, 64, 1), RPMA_E_PROVIDER);
    pair_close(&pair);
}

TEST(recv__with_a_shared_receive_queue) {
    Pair pair = connected_pair((Options){.srq = true});
    CHECK_RC(receive(pair.client, 64, 1), RPMA_E_PROVIDER);
    pair_close(&pair);
}

TEST(send__before_the_connection_stands) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    CHECK_RC(transmit(pair.client, 64, 1), RPMA_E_PROVIDER);
    CHECK_RC(post(pair.client, (Work){.operation = SEND_WITH_IMM, .length = 64}), RPMA_E_PROVIDER);
    CHECK_OK(receive(pair.client, 64, 2));
    side_close(pair.client);
    side_close(pair.server);
}
