/* SPDX-License-Identifier: BSD-3-Clause
 * Eight bytes at once: rpma_atomic_write(3).
 */
#include "side.h"

static int store(Side *side, size_t to, uint64_t value, uint64_t context) {
    Work work = {.operation = ATOMIC_WRITE, .to = to, .context = context};
    memcpy(work.value, &value, sizeof value);
    return post(side, work);
}

typedef struct {
    size_t offset;
    uint64_t value;
} Load;

/* The word is stored by the device; whoever looks at it looks at all of it. */
static uint64_t word_at(Side *side, size_t offset) {
    return __atomic_load_n((const uint64_t *)(const void *)(side->memory + offset), __ATOMIC_ACQUIRE);
}

static void do_load(Side *side, void *argument) {
    Load *load = argument;
    load->value = word_at(side, load->offset);
}

static uint64_t loaded(Side *side, size_t offset) {
    Load load = {offset, 0};
    at(side, do_load, &load, sizeof load);
    return load.value;
}

TEST(atomic_write__eight_bytes_and_nothing_beside) {
    Pair pair = connected_pair((Options){0});
    fill(pair.server, RECV_AT, 8, 1);
    fill(pair.server, RECV_AT + 16, 8, 2);
    CHECK_OK(store(pair.client, RECV_AT + 8, 0x0123456789abcdef, 1));
    EXPECT_DONE(pair.client, 1);
    tell(pair.client, pair.server);
    CHECK_EQ(loaded(pair.server, RECV_AT + 8), 0x0123456789abcdef);
    CHECK(filled(pair.server, RECV_AT, 8, 1));
    CHECK(filled(pair.server, RECV_AT + 16, 8, 2));
    pair_close(&pair);
}

TEST(atomic_write__the_last_eight_bytes) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(store(pair.client, MEMORY_BYTES - 8, 42, 1));
    EXPECT_DONE(pair.client, 1);
    tell(pair.client, pair.server);
    CHECK_EQ(loaded(pair.server, MEMORY_BYTES - 8), 42);
    pair_close(&pair);
}

TEST(atomic_write__completion) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(store(pair.client, 0, 1, 0xfedcba9876543210));
    struct ibv_wc wc = EXPECT_DONE(pair.client, 0xfedcba9876543210);
    CHECK_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
    CHECK_EQ(wc.qp_num, qp_num_of(pair.client));
    CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0);
    expect_no_wc(pair.client);
    expect_no_wc(pair.server);
    pair_close(&pair);
}

TEST(atomic_write__completion_on_error_only) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = ATOMIC_WRITE, .to = 8, .value = "1234567", .on_error = true}));
    tell(pair.client, pair.server);
    expect_no_wc(pair.client);
    CHECK(memcmp(&(uint64_t){loaded(pair.server, 8)}, "1234567", 8) == 0);
    pair_close(&pair);
}

/* The value is taken when the call is made. */
TEST(atomic_write__the_source_is_free_at_once) {
    Pair pair = connected_pair((Options){0});
    char value[8] = "before.";
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .no_region = true, .context = 1})); /* holds up the next one */
    CHECK_OK(rpma_atomic_write(pair.client->conn, pair.client->target, 0, value, RPMA_F_COMPLETION_ALWAYS, NULL));
    memset(value, 'x', sizeof value);
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .no_region = true, .context = 2}));
    EXPECT_DONE(pair.client, 1);
    EXPECT_DONE(pair.client, 0);
    EXPECT_RECEIVED(pair.server, 2);
    tell(pair.client, pair.server);
    CHECK(memcmp(&(uint64_t){loaded(pair.server, 0)}, "before.", 8) == 0);
    pair_close(&pair);
}

/* ---- Atomic to every observer ------------------------------------------------------------------------------------ */

enum { ROUNDS = UNDER_SANITIZER ? 500 : 5000 };

static const uint64_t LAST = 0x7777777777777777;

/* Looks until the last value is there; whatever comes before has eight equal bytes. */
static void do_observe(Side *side, void *unused) {
    (void)unused;
    for (uint64_t value = word_at(side, RECV_AT); value != LAST; value = word_at(side, RECV_AT))
        CHECK_EQ(value, (value & 0xff) * 0x0101010101010101);
}

TEST(atomic_write__nobody_sees_a_part_of_it) {
    if (!on_loopback()) skip("a device may write its bytes one by one");
    Pair pair = connected_pair((Options){0});
    Task observer;
    begin(&observer, pair.server, do_observe, NULL, 0);
    for (uint64_t i = 0; i < ROUNDS; ++i) {
        CHECK_OK(store(pair.client, RECV_AT, i % 2 == 0 ? 0x1111111111111111 : 0xeeeeeeeeeeeeeeee, i));
        EXPECT_DONE(pair.client, i);
    }
    CHECK_OK(store(pair.client, RECV_AT, LAST, ROUNDS));
    EXPECT_DONE(pair.client, ROUNDS);
    finish(&observer);
    pair_close(&pair);
}

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

TEST(atomic_write__invalid_arguments) {
    const int always = RPMA_F_COMPLETION_ALWAYS;
    const char value[8] = {0};
    Pair pair = connected_pair((Options){0});
    struct rpma_conn *conn = pair.client->conn;
    struct rpma_mr_remote *target = pair.client->target;
    CHECK_INVAL(rpma_atomic_write(NULL, target, 0, value, always, NULL));
    CHECK_INVAL(rpma_atomic_write(conn, NULL, 0, value, always, NULL));
    CHECK_INVAL(rpma_atomic_write(conn, target, 0, value, 0, NULL));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

/* The header promises eight bytes of source; NULL comes from where the compiler does not see it. */
TEST(atomic_write__without_a_source) {
    const char *volatile nothing = NULL;
    Pair pair = connected_pair((Options){0});
    CHECK_INVAL(rpma_atomic_write(pair.client->conn, pair.client->target, 0, nothing, RPMA_F_COMPLETION_ALWAYS, NULL));
    pair_close(&pair);
}

TEST(atomic_write__misaligned) {
    Pair pair = connected_pair((Options){0});
    for (size_t to = 1; to < RPMA_ATOMIC_WRITE_ALIGNMENT; ++to) CHECK_INVAL(store(pair.client, to, 1, 1));
    CHECK_INVAL(store(pair.client, 4097, 1, 1));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

/* The offset is aligned, the region is not: 8 bytes there cannot be written as one. */
TEST(atomic_write__into_a_misaligned_region) {
    Pair pair = connected_pair((Options){0});
    uint8_t descriptor[MR_DESCRIPTOR_BYTES];
    memcpy(descriptor, pair.server->descriptor, sizeof descriptor);
    descriptor[0] += 4; /* the lowest byte of the address */
    CHECK_OK(rpma_mr_remote_delete(&pair.client->target));
    CHECK_OK(rpma_mr_remote_from_descriptor(descriptor, sizeof descriptor, &pair.client->target));
    CHECK_OK(store(pair.client, 8, 1, 1));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_LOC_QP_OP_ERR);
    EXPECT_BREAK(pair.client);
}

TEST(atomic_write__beyond_the_target) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(store(pair.client, MEMORY_BYTES, 1, 1));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_REM_ACCESS_ERR);
    EXPECT_BREAK(pair.client);
}

TEST(atomic_write__into_a_region_that_forbids_it) {
    Pair pair = connected_pair_of((Options){0}, (Options){.usage = ALL_USAGES & ~RPMA_MR_USAGE_WRITE_DST});
    CHECK_OK(store(pair.client, 0, 1, 1));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_REM_ACCESS_ERR);
}

TEST(atomic_write__a_full_queue) {
    Pair pair = pair_with_full_queue();
    CHECK_RC(store(pair.client, 0, 1, 1), RPMA_E_PROVIDER);
    pair_close(&pair);
}

TEST(atomic_write__before_the_connection_stands) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    exchange_targets(&pair);
    CHECK_RC(store(pair.client, 0, 1, 1), RPMA_E_PROVIDER);
}

TEST(atomic_write__is_flushed_after_disconnecting) {
    Pair pair = closed_pair();
    CHECK_OK(store(pair.client, 0, 1, 1));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_WR_FLUSH_ERR);
}
