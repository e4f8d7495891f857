/* SPDX-License-Identifier: BSD-3-Clause
 * Remote memory access: rpma_write(3), rpma_write_with_imm(3), rpma_read(3).
 */
#include "side.h"

#include <arpa/inet.h>

enum { BYTES = 1000 };

static const int always = RPMA_F_COMPLETION_ALWAYS;

static int transfer(Side *side, Operation operation, size_t at, size_t to, size_t length, uint64_t context) {
    return post(side, (Work){.operation = operation, .at = at, .to = to, .length = length, .context = context});
}

/* ---- Write ------------------------------------------------------------------------------------------------------- */

static void write_across(Side *from, Side *to, size_t length, unsigned seed) {
    fill(from, SEND_AT, length, seed);
    CHECK_OK(transfer(from, WRITE, SEND_AT, RECV_AT, length, 1));
    EXPECT_DONE(from, 1);
    tell(from, to);
    CHECK(filled(to, RECV_AT, length, seed));
}

TEST(write__many_sizes_both_ways) {
    static const size_t sizes[] = {MESSAGE_SIZES, LARGEST_MESSAGE};
    Pair pair = connected_pair((Options){0});
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        write_across(pair.client, pair.server, sizes[i], i);
        write_across(pair.server, pair.client, sizes[i], i + 100);
    }
    pair_close(&pair);
}

TEST(write__between_two_places_and_nothing_beside) {
    Pair pair = connected_pair((Options){0});
    for (size_t i = 0; i < 3; ++i) fill(pair.server, RECV_AT + i * BYTES, BYTES, 1);
    fill(pair.client, SEND_AT + 77, BYTES, 2);
    CHECK_OK(transfer(pair.client, WRITE, SEND_AT + 77, RECV_AT + BYTES, BYTES, 1));
    EXPECT_DONE(pair.client, 1);
    tell(pair.client, pair.server);
    CHECK(filled(pair.server, RECV_AT, BYTES, 1));
    CHECK(filled(pair.server, RECV_AT + BYTES, BYTES, 2));
    CHECK(filled(pair.server, RECV_AT + 2 * BYTES, BYTES, 1));
    pair_close(&pair);
}

TEST(write__to_the_last_byte) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(transfer(pair.client, WRITE, MEMORY_BYTES - 5, MEMORY_BYTES - 5, 5, 1));
    EXPECT_DONE(pair.client, 1);
    CHECK_OK(transfer(pair.client, WRITE, MEMORY_BYTES, MEMORY_BYTES, 0, 2));
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

TEST(write__of_no_bytes_without_regions) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .no_region = true, .context = 1}));
    EXPECT_DONE(pair.client, 1);
    pair_close(&pair);
}

TEST(write__of_no_bytes_with_regions) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(transfer(pair.client, WRITE, 0, 0, 0, 1));
    EXPECT_DONE(pair.client, 1);
    pair_close(&pair);
}

TEST(write__completion) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(transfer(pair.client, WRITE, 0, 0, BYTES, 0xfedcba9876543210));
    struct ibv_wc wc = EXPECT_DONE(pair.client, 0xfedcba9876543210);
    CHECK_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
    CHECK_EQ(wc.qp_num, qp_num_of(pair.client));
    CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0);
    expect_no_wc(pair.client);
    expect_no_wc(pair.server);
    pair_close(&pair);
}

TEST(write__completion_on_error_only) {
    Pair pair = connected_pair((Options){0});
    fill(pair.client, SEND_AT, BYTES, 1);
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = BYTES, .on_error = true}));
    tell(pair.client, pair.server);
    CHECK(filled(pair.server, RECV_AT, BYTES, 1));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

TEST(write__in_order_with_a_message) {
    Pair pair = connected_pair((Options){0});
    for (unsigned i = 0; i < 50; ++i) {
        fill(pair.client, SEND_AT, BYTES, i);
        CHECK_OK(post(pair.server, (Work){.operation = RECV, .no_region = true, .context = 1}));
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = BYTES, .on_error = true}));
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .no_region = true, .context = 2}));
        EXPECT_RECEIVED(pair.server, 1);
        CHECK(filled(pair.server, RECV_AT, BYTES, i));
        EXPECT_DONE(pair.client, 2);
    }
    pair_close(&pair);
}

/* The target process does nothing at all. */
TEST(write__needs_no_help_of_the_other_process) {
    if (lacks("one_sided")) skip("the agent of the other process does the work");
    Pair pair = connected_pair((Options){0});
    fill(pair.client, SEND_AT, BYTES, 1);
    peer_stop(pair.server->process);
    CHECK_OK(transfer(pair.client, WRITE, SEND_AT, RECV_AT, BYTES, 1));
    CHECK_OK(transfer(pair.client, READ, RECV_AT, RECV_AT, BYTES, 2));
    EXPECT_DONE(pair.client, 1);
    EXPECT_DONE(pair.client, 2);
    CHECK(filled(pair.client, RECV_AT, BYTES, 1));
    peer_continue(pair.server->process);
    CHECK(filled(pair.server, RECV_AT, BYTES, 1));
    pair_close(&pair);
}

/* ---- Write with immediate data ----------------------------------------------------------------------------------- */

TEST(write_with_imm__completions) {
    static const uint32_t numbers[] = {0, 1, 0x12345678, UINT32_MAX};
    Pair pair = connected_pair((Options){0});
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        Work work = {.operation = WRITE_WITH_IMM, .to = RECV_AT, .length = BYTES, .imm = numbers[i], .context = 2};
        fill(pair.server, SEND_AT, BYTES, i);
        fill(pair.client, RECV_AT + BYTES, BYTES, 99);
        CHECK_OK(post(pair.client, (Work){.operation = RECV, .at = RECV_AT + BYTES, .length = BYTES, .context = 1}));
        CHECK_OK(post(pair.server, work));
        struct ibv_wc wc = EXPECT_RECEIVED(pair.client, 1);
        CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        CHECK_EQ(wc.byte_len, BYTES);
        CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
        CHECK_EQ(wc.imm_data, htonl(numbers[i]));
        CHECK_EQ(wc.qp_num, qp_num_of(pair.client));
        wc = EXPECT_DONE(pair.server, 2);
        CHECK_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
        CHECK_EQ(wc.qp_num, qp_num_of(pair.server));
        CHECK(filled(pair.client, RECV_AT, BYTES, i));
        CHECK(filled(pair.client, RECV_AT + BYTES, BYTES, 99)); /* the receive only tells */
    }
    pair_close(&pair);
}

TEST(write_with_imm__of_no_bytes_without_regions) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECV, .no_region = true, .context = 1}));
    CHECK_OK(post(pair.server, (Work){.operation = WRITE_WITH_IMM, .no_region = true, .imm = 7, .context = 2}));
    struct ibv_wc wc = EXPECT_RECEIVED(pair.client, 1);
    CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK_EQ(wc.imm_data, htonl(7));
    EXPECT_DONE(pair.server, 2);
    pair_close(&pair);
}

TEST(write_with_imm__completion_on_error_only) {
    Pair pair = connected_pair((Options){0});
    Work work = {.operation = WRITE_WITH_IMM, .to = RECV_AT, .length = 64, .on_error = true};
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .no_region = true, .context = 1}));
    CHECK_OK(post(pair.client, work));
    EXPECT_RECEIVED(pair.server, 1);
    tell(pair.client, pair.server);
    expect_no_wc(pair.client);
    pair_close(&pair);
}

TEST(write_with_imm__waits_until_a_receive_is_posted) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = WRITE_WITH_IMM, .to = RECV_AT, .length = 64, .context = 2}));
    expect_no_wc(pair.server);
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .no_region = true, .context = 1}));
    EXPECT_RECEIVED(pair.server, 1);
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

/* ---- Read -------------------------------------------------------------------------------------------------------- */

static void read_across(Side *side, Side *from, size_t length, unsigned seed) {
    fill(from, SEND_AT, length, seed);
    CHECK_OK(transfer(side, READ, RECV_AT, SEND_AT, length, 1));
    EXPECT_DONE(side, 1);
    CHECK(filled(side, RECV_AT, length, seed));
}

TEST(read__many_sizes_both_ways) {
    static const size_t sizes[] = {MESSAGE_SIZES, LARGEST_MESSAGE};
    Pair pair = connected_pair((Options){0});
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        read_across(pair.client, pair.server, sizes[i], i);
        read_across(pair.server, pair.client, sizes[i], i + 100);
    }
    pair_close(&pair);
}

TEST(read__between_two_places_and_nothing_beside) {
    Pair pair = connected_pair((Options){0});
    fill(pair.client, RECV_AT, BYTES, 1);
    fill(pair.client, RECV_AT + BYTES + 5, BYTES, 2);
    fill(pair.server, SEND_AT + 77, 5, 3);
    CHECK_OK(transfer(pair.client, READ, RECV_AT + BYTES, SEND_AT + 77, 5, 1));
    EXPECT_DONE(pair.client, 1);
    CHECK(filled(pair.client, RECV_AT, BYTES, 1));
    CHECK(filled(pair.client, RECV_AT + BYTES, 5, 3));
    CHECK(filled(pair.client, RECV_AT + BYTES + 5, BYTES, 2));
    pair_close(&pair);
}

TEST(read__of_no_bytes) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = READ, .no_region = true, .context = 1}));
    CHECK_OK(transfer(pair.client, READ, 0, 0, 0, 2));
    EXPECT_DONE(pair.client, 1);
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

TEST(read__completion) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(transfer(pair.client, READ, RECV_AT, 0, BYTES, 0xfedcba9876543210));
    struct ibv_wc wc = EXPECT_DONE(pair.client, 0xfedcba9876543210);
    CHECK_EQ(wc.opcode, IBV_WC_RDMA_READ);
    CHECK_EQ(wc.byte_len, BYTES);
    CHECK_EQ(wc.qp_num, qp_num_of(pair.client));
    CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0);
    expect_no_wc(pair.client);
    expect_no_wc(pair.server);
    pair_close(&pair);
}

TEST(read__completion_on_error_only) {
    Pair pair = connected_pair((Options){0});
    fill(pair.server, SEND_AT, BYTES, 1);
    CHECK_OK(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .length = BYTES, .on_error = true}));
    CHECK_OK(transfer(pair.client, READ, RECV_AT + BYTES, 0, 1, 2));
    EXPECT_DONE(pair.client, 2);
    CHECK(filled(pair.client, RECV_AT, BYTES, 1));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

/* ---- What the target refuses ------------------------------------------------------------------------------------- */

static void is_refused(const Pair *pair, Operation operation, size_t to, size_t length) {
    CHECK_OK(transfer(pair->client, operation, RECV_AT, to, length, 1));
    EXPECT_WC(pair->client, MAIN_CQ, 1, IBV_WC_REM_ACCESS_ERR);
    EXPECT_BREAK(pair->client);
    CHECK_OK(transfer(pair->client, operation, RECV_AT, 0, 8, 2));
    EXPECT_WC(pair->client, MAIN_CQ, 2, IBV_WC_WR_FLUSH_ERR);
}

static void is_refused_by(int usage, Operation operation) {
    Pair pair = connected_pair_of((Options){0}, (Options){.usage = usage});
    is_refused(&pair, operation, 0, 8);
}

static void is_refused_outside(Operation operation, size_t to, size_t length) {
    Pair pair = connected_pair((Options){0});
    is_refused(&pair, operation, to, length);
}

static void do_deregister(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_mr_dereg(&side->mr));
}

static void is_refused_after_deregistering(Operation operation) {
    Pair pair = connected_pair((Options){0});
    at(pair.server, do_deregister, NULL, 0);
    is_refused(&pair, operation, 0, 8);
}

static void do_register_on_another_peer(Side *side, void *descriptor) {
    struct rpma_peer *peer = new_peer();
    struct rpma_mr_local *mr = NULL;
    CHECK_OK(rpma_mr_reg(peer, side->memory, MEMORY_BYTES, ALL_USAGES, &mr));
    CHECK_OK(rpma_mr_get_descriptor(mr, descriptor));
}

static void is_refused_in_a_region_of_another_peer(Operation operation) {
    uint8_t descriptor[MR_DESCRIPTOR_BYTES];
    Pair pair = connected_pair((Options){0});
    at(pair.server, do_register_on_another_peer, descriptor, sizeof descriptor);
    CHECK_OK(rpma_mr_remote_delete(&pair.client->target));
    CHECK_OK(rpma_mr_remote_from_descriptor(descriptor, sizeof descriptor, &pair.client->target));
    is_refused(&pair, operation, 0, 8);
}

TEST(write__beyond_the_target) { is_refused_outside(WRITE, MEMORY_BYTES, 1); }
TEST(write__across_the_end_of_the_target) { is_refused_outside(WRITE, MEMORY_BYTES - 7, 8); }
TEST(write__before_the_target) { is_refused_outside(WRITE, (size_t)-8, 8); }
TEST(write__into_a_region_that_forbids_it) { is_refused_by(ALL_USAGES & ~RPMA_MR_USAGE_WRITE_DST, WRITE); }
TEST(write__into_a_region_that_is_gone) { is_refused_after_deregistering(WRITE); }
TEST(write__into_a_region_of_another_peer) { is_refused_in_a_region_of_another_peer(WRITE); }
TEST(write__a_large_one_beyond_the_target) { is_refused_outside(WRITE, MEMORY_BYTES - AREA_BYTES + 1, AREA_BYTES); }

TEST(read__beyond_the_target) { is_refused_outside(READ, MEMORY_BYTES, 1); }
TEST(read__across_the_end_of_the_target) { is_refused_outside(READ, MEMORY_BYTES - 7, 8); }
TEST(read__from_a_region_that_forbids_it) { is_refused_by(RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV, READ); }
TEST(read__from_a_region_that_is_gone) { is_refused_after_deregistering(READ); }
TEST(read__from_a_region_of_another_peer) { is_refused_in_a_region_of_another_peer(READ); }

TEST(write_with_imm__beyond_the_target) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .no_region = true, .context = 1}));
    CHECK_OK(transfer(pair.client, WRITE_WITH_IMM, 0, MEMORY_BYTES, 1, 2));
    EXPECT_WC(pair.client, MAIN_CQ, 2, IBV_WC_REM_ACCESS_ERR);
    struct ibv_wc wc = next_wc(pair.server, RECV_CQ);
    CHECK(wc.wr_id == 1 && wc.status != IBV_WC_SUCCESS);
}

TEST(write__a_refusal_is_told_although_success_would_not_be) {
    Pair pair = connected_pair((Options){0});
    Work work = {.operation = WRITE, .to = MEMORY_BYTES, .length = 8, .on_error = true, .context = 1};
    CHECK_OK(post(pair.client, work));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_REM_ACCESS_ERR);
}

/* ---- What the own side forbids ----------------------------------------------------------------------------------- */

static void is_forbidden(Operation operation, size_t at, int usage) {
    Pair pair = connected_pair_of((Options){.usage = usage}, (Options){0});
    CHECK_OK(transfer(pair.client, operation, at, 0, 8, 1));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_LOC_PROT_ERR);
}

TEST(write__from_outside_the_region) { is_forbidden(WRITE, MEMORY_BYTES, ALL_USAGES); }
TEST(write_with_imm__from_outside_the_region) { is_forbidden(WRITE_WITH_IMM, MEMORY_BYTES - 7, ALL_USAGES); }
TEST(read__to_outside_the_region) { is_forbidden(READ, MEMORY_BYTES - 7, ALL_USAGES); }
TEST(read__into_a_region_that_forbids_it) { is_forbidden(READ, 0, RPMA_MR_USAGE_READ_SRC); }

/* ---- Errors of the calls ----------------------------------------------------------------------------------------- */

TEST(write__invalid_arguments) {
    Pair pair = connected_pair((Options){0});
    struct rpma_conn *conn = pair.client->conn;
    struct rpma_mr_local *mr = pair.client->mr;
    struct rpma_mr_remote *target = pair.client->target;
    CHECK_INVAL(rpma_write(NULL, target, 0, mr, 0, 8, always, NULL));
    CHECK_INVAL(rpma_write(conn, target, 0, mr, 0, 8, 0, NULL));
    CHECK_INVAL(rpma_write(conn, NULL, 0, mr, 0, 0, always, NULL));
    CHECK_INVAL(rpma_write(conn, target, 0, NULL, 0, 0, always, NULL));
    CHECK_INVAL(rpma_write(conn, NULL, 1, NULL, 0, 0, always, NULL));
    CHECK_INVAL(rpma_write(conn, NULL, 0, NULL, 1, 0, always, NULL));
    CHECK_INVAL(rpma_write(conn, NULL, 0, NULL, 0, 1, always, NULL));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

TEST(write_with_imm__invalid_arguments) {
    Pair pair = connected_pair((Options){0});
    struct rpma_conn *conn = pair.client->conn;
    struct rpma_mr_local *mr = pair.client->mr;
    struct rpma_mr_remote *target = pair.client->target;
    CHECK_INVAL(rpma_write_with_imm(NULL, target, 0, mr, 0, 8, always, 1, NULL));
    CHECK_INVAL(rpma_write_with_imm(conn, target, 0, mr, 0, 8, 0, 1, NULL));
    CHECK_INVAL(rpma_write_with_imm(conn, NULL, 0, mr, 0, 0, always, 1, NULL));
    CHECK_INVAL(rpma_write_with_imm(conn, target, 0, NULL, 0, 0, always, 1, NULL));
    CHECK_INVAL(rpma_write_with_imm(conn, NULL, 1, NULL, 0, 0, always, 1, NULL));
    CHECK_INVAL(rpma_write_with_imm(conn, NULL, 0, NULL, 1, 0, always, 1, NULL));
    CHECK_INVAL(rpma_write_with_imm(conn, NULL, 0, NULL, 0, 1, always, 1, NULL));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

TEST(read__invalid_arguments) {
    Pair pair = connected_pair((Options){0});
    struct rpma_conn *conn = pair.client->conn;
    struct rpma_mr_local *mr = pair.client->mr;
    struct rpma_mr_remote *target = pair.client->target;
    CHECK_INVAL(rpma_read(NULL, mr, 0, target, 0, 8, always, NULL));
    CHECK_INVAL(rpma_read(conn, mr, 0, target, 0, 8, 0, NULL));
    CHECK_INVAL(rpma_read(conn, NULL, 0, target, 0, 0, always, NULL));
    CHECK_INVAL(rpma_read(conn, mr, 0, NULL, 0, 0, always, NULL));
    CHECK_INVAL(rpma_read(conn, NULL, 1, NULL, 0, 0, always, NULL));
    CHECK_INVAL(rpma_read(conn, NULL, 0, NULL, 1, 0, always, NULL));
    CHECK_INVAL(rpma_read(conn, NULL, 0, NULL, 0, 1, always, NULL));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

static void lengths_above_32_bits(Operation operation) {
    Pair pair = connected_pair((Options){0});
    CHECK_INVAL(transfer(pair.client, operation, 0, 0, (size_t)UINT32_MAX + 1, 1));
    pair_close(&pair);
}

TEST(write__lengths_above_32_bits) { lengths_above_32_bits(WRITE); }
TEST(write_with_imm__lengths_above_32_bits) { lengths_above_32_bits(WRITE_WITH_IMM); }
TEST(read__lengths_above_32_bits) { lengths_above_32_bits(READ); }

static void finds_no_room(Operation operation) {
    Pair pair = pair_with_full_queue();
    CHECK_RC(transfer(pair.client, operation, 0, 0, 8, 1), RPMA_E_PROVIDER);
    pair_close(&pair);
}

TEST(write__a_full_queue) { finds_no_room(WRITE); }
TEST(write_with_imm__a_full_queue) { finds_no_room(WRITE_WITH_IMM); }
TEST(read__a_full_queue) { finds_no_room(READ); }

static void is_flushed(Operation operation) {
    Pair pair = closed_pair();
    CHECK_OK(transfer(pair.client, operation, 0, 0, 8, 1));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_WR_FLUSH_ERR);
}

TEST(write__is_flushed_after_disconnecting) { is_flushed(WRITE); }
TEST(write_with_imm__is_flushed_after_disconnecting) { is_flushed(WRITE_WITH_IMM); }
TEST(read__is_flushed_after_disconnecting) { is_flushed(READ); }

TEST(write__before_the_connection_stands) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    exchange_targets(&pair);
    CHECK_RC(transfer(pair.client, WRITE, 0, 0, 8, 1), RPMA_E_PROVIDER);
    CHECK_RC(transfer(pair.client, WRITE_WITH_IMM, 0, 0, 8, 1), RPMA_E_PROVIDER);
    CHECK_RC(transfer(pair.client, READ, 0, 0, 8, 1), RPMA_E_PROVIDER);
}
