/* SPDX-License-Identifier: BSD-3-Clause
 * Finalizing what was written: rpma_flush(3), with regions in memory and in a file.
 */
#include "side.h"

#include <fcntl.h>
#include <stdio.h>

enum {
    BYTES = 5000,
    NO_FLUSH = ALL_USAGES & ~(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)
};

static int flush(Side *side, Operation type, size_t to, size_t length, uint64_t context) {
    return post(side, (Work){.operation = type, .to = to, .length = length, .context = context});
}

/* What the other side has told about its platform. */
static void apply_direct_write(Side *side, uint8_t supported) {
    struct rpma_peer_cfg *cfg = NULL;
    CHECK_OK(rpma_peer_cfg_from_descriptor(&supported, 1, &cfg));
    CHECK_OK(rpma_conn_apply_remote_peer_cfg(side->conn, cfg));
    CHECK_OK(rpma_peer_cfg_delete(&cfg));
}

static Pair pair_with_direct_write(Options options) {
    Pair pair = connected_pair(options);
    apply_direct_write(pair.client, 1);
    return pair;
}

/* ---- What it does ------------------------------------------------------------------------------------------------ */

static void write_and_flush(const Pair *pair, Operation type) {
    fill(pair->client, SEND_AT, BYTES, 1);
    CHECK_OK(post(pair->client, (Work){.operation = WRITE, .to = RECV_AT, .length = BYTES, .on_error = true}));
    CHECK_OK(flush(pair->client, type, RECV_AT, BYTES, 1));
    EXPECT_DONE(pair->client, 1);
    CHECK(filled(pair->server, RECV_AT, BYTES, 1));
}

TEST(flush__visibility_shows_what_was_written) {
    Pair pair = connected_pair((Options){0});
    write_and_flush(&pair, FLUSH_VISIBILITY);
    pair_close(&pair);
}

TEST(flush__persistent_shows_what_was_written) {
    Pair pair = pair_with_direct_write((Options){0});
    write_and_flush(&pair, FLUSH_PERSISTENT);
    pair_close(&pair);
}

/* The server's memory is a file; what a third party reads from the file is what the client has written. */
TEST(flush__persistent_is_in_the_file) {
    static uint8_t bytes[BYTES], expected[BYTES];
    Options mapped = {0};
    snprintf(mapped.file, sizeof mapped.file, "/tmp/rpma-flush-%d", (int)getpid());
    Pair pair = connected_pair_of((Options){0}, mapped);
    apply_direct_write(pair.client, 1);
    for (unsigned round = 0; round < 3; ++round) {
        fill(pair.client, SEND_AT, BYTES, round);
        memcpy(expected, pair.client->memory + SEND_AT, BYTES);
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT + 3, .length = BYTES, .on_error = true}));
        CHECK_OK(flush(pair.client, FLUSH_PERSISTENT, RECV_AT + 3, BYTES, round));
        EXPECT_DONE(pair.client, round);
        int fd = open(mapped.file, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0 && pread(fd, bytes, BYTES, RECV_AT + 3) == BYTES);
        close(fd);
        CHECK(memcmp(bytes, expected, BYTES) == 0);
    }
    CHECK(unlink(mapped.file) == 0);
    pair_close(&pair);
}

/* And it is there when the server is not. */
TEST(flush__persistent_outlives_the_server) {
    static uint8_t bytes[BYTES];
    Options mapped = {0};
    snprintf(mapped.file, sizeof mapped.file, "/tmp/rpma-flush-%d", (int)getpid());
    Pair pair = connected_pair_of((Options){0}, mapped);
    apply_direct_write(pair.client, 1);
    write_and_flush(&pair, FLUSH_PERSISTENT);
    peer_kill(pair.server->process);
    int fd = open(mapped.file, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && pread(fd, bytes, BYTES, RECV_AT) == BYTES);
    CHECK(memcmp(bytes, pair.client->memory + SEND_AT, BYTES) == 0);
    CHECK(unlink(mapped.file) == 0);
}

TEST(flush__completion) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(flush(pair.client, FLUSH_VISIBILITY, 0, BYTES, 0xfedcba9876543210));
    struct ibv_wc wc = EXPECT_DONE(pair.client, 0xfedcba9876543210);
    CHECK_EQ(wc.opcode, IBV_WC_RDMA_READ);
    CHECK_EQ(wc.qp_num, qp_num_of(pair.client));
    CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0);
    expect_no_wc(pair.client);
    expect_no_wc(pair.server);
    pair_close(&pair);
}

TEST(flush__completion_on_error_only) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = FLUSH_VISIBILITY, .length = BYTES, .on_error = true}));
    CHECK_OK(flush(pair.client, FLUSH_VISIBILITY, 0, BYTES, 2));
    EXPECT_DONE(pair.client, 2);
    expect_no_wc(pair.client);
    pair_close(&pair);
}

/* ---- What reaches beyond the region ------------------------------------------------------------------------------ */

/* Stock librpma reads 8 bytes at the offset and ignores the length; a benchmark flushes more than there is at the wrap
 * of its sequence. */
TEST(flush__a_length_beyond_the_region) {
    const struct {
        size_t to, length;
    } ranges[] = {
        {0, MEMORY_BYTES + 1}, {0, 2 * MEMORY_BYTES},         {MEMORY_BYTES - 100, BYTES}, {MEMORY_BYTES - 8, 9},
        {8, SIZE_MAX},         {RECV_AT, SIZE_MAX - RECV_AT}, {MEMORY_BYTES - 8, 1234},    {0, 0}};
    Pair pair = pair_with_direct_write((Options){0});
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; ++i) {
        CHECK_OK(flush(pair.client, FLUSH_VISIBILITY, ranges[i].to, ranges[i].length, 2 * i));
        EXPECT_DONE(pair.client, 2 * i);
        CHECK_OK(flush(pair.client, FLUSH_PERSISTENT, ranges[i].to, ranges[i].length, 2 * i + 1));
        EXPECT_DONE(pair.client, 2 * i + 1);
    }
    CHECK(!event_waits(pair.client) && !event_waits(pair.server));
    pair_close(&pair);
}

/* What lies inside is in the file, up to its end. */
TEST(flush__a_length_beyond_the_region_flushes_the_rest_of_it) {
    static uint8_t bytes[BYTES];
    const size_t end = MEMORY_BYTES - BYTES;
    Options mapped = {0};
    snprintf(mapped.file, sizeof mapped.file, "/tmp/rpma-flush-%d", (int)getpid());
    Pair pair = connected_pair_of((Options){0}, mapped);
    apply_direct_write(pair.client, 1);
    fill(pair.client, SEND_AT, BYTES, 1);
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = end, .length = BYTES, .on_error = true}));
    CHECK_OK(flush(pair.client, FLUSH_PERSISTENT, end, 3 * BYTES, 1));
    EXPECT_DONE(pair.client, 1);
    int fd = open(mapped.file, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && pread(fd, bytes, BYTES, (off_t)end) == BYTES);
    close(fd);
    CHECK(memcmp(bytes, pair.client->memory + SEND_AT, BYTES) == 0);
    CHECK(unlink(mapped.file) == 0);
    pair_close(&pair);
}

static int debug_messages;

static void count_debug_messages(enum rpma_log_level level, const char *file_name, const int line_no,
                                 const char *function_name, const char *message_format, ...) {
    (void)file_name, (void)line_no;
    debug_messages += level == RPMA_LOG_LEVEL_DEBUG && strcmp(function_name, "rpma_flush") == 0 &&
                      strstr(message_format, "beyond the region") != NULL;
}

TEST(flush__a_length_beyond_the_region_is_logged_once) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(rpma_log_set_function(count_debug_messages));
    CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG));
    for (uint64_t i = 0; i < 3; ++i) {
        CHECK_OK(flush(pair.client, FLUSH_VISIBILITY, 0, MEMORY_BYTES, i));
        EXPECT_DONE(pair.client, i);
    }
    CHECK_EQ(debug_messages, 0);
    for (uint64_t i = 0; i < 3; ++i) {
        CHECK_OK(flush(pair.client, FLUSH_VISIBILITY, 0, MEMORY_BYTES + 1, i));
        EXPECT_DONE(pair.client, i);
        CHECK_EQ(debug_messages, 1);
    }
    pair_close(&pair);
}

/* Fewer than the 8 bytes that stock librpma reads. */
TEST(flush__the_last_bytes_of_the_region) {
    Pair pair = connected_pair((Options){0});
    for (size_t length = 1; length < 8; ++length) {
        CHECK_OK(flush(pair.client, FLUSH_VISIBILITY, MEMORY_BYTES - length, length, length));
        EXPECT_DONE(pair.client, length);
    }
    pair_close(&pair);
}

/* ---- What is not supported --------------------------------------------------------------------------------------- */

TEST(flush__persistent_without_direct_write) {
    Pair pair = connected_pair((Options){0});
    CHECK_RC(flush(pair.client, FLUSH_PERSISTENT, 0, BYTES, 1), RPMA_E_NOSUPP);
    apply_direct_write(pair.client, 0);
    CHECK_RC(flush(pair.client, FLUSH_PERSISTENT, 0, BYTES, 1), RPMA_E_NOSUPP);
    expect_no_wc(pair.client);
    pair_close(&pair);
}

/* The configuration is that of one connection and of one direction. */
TEST(flush__direct_write_of_the_other_side_only) {
    Pair pair = pair_with_direct_write((Options){0});
    CHECK_OK(flush(pair.client, FLUSH_PERSISTENT, 0, BYTES, 1));
    EXPECT_DONE(pair.client, 1);
    CHECK_RC(flush(pair.server, FLUSH_PERSISTENT, 0, BYTES, 1), RPMA_E_NOSUPP);
    pair_close(&pair);
}

TEST(flush__persistent_in_a_region_without_that_usage) {
    Pair pair = pair_with_direct_write((Options){.usage = NO_FLUSH | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY});
    CHECK_RC(flush(pair.client, FLUSH_PERSISTENT, 0, BYTES, 1), RPMA_E_NOSUPP);
    CHECK_OK(flush(pair.client, FLUSH_VISIBILITY, 0, BYTES, 2));
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

TEST(flush__visibility_in_a_region_without_that_usage) {
    Pair pair = pair_with_direct_write((Options){.usage = NO_FLUSH | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT});
    CHECK_RC(flush(pair.client, FLUSH_VISIBILITY, 0, BYTES, 1), RPMA_E_NOSUPP);
    CHECK_OK(flush(pair.client, FLUSH_PERSISTENT, 0, BYTES, 2));
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

TEST(flush__invalid_arguments) {
    const int always = RPMA_F_COMPLETION_ALWAYS;
    const enum rpma_flush_type type = RPMA_FLUSH_TYPE_VISIBILITY;
    Pair pair = connected_pair((Options){0});
    struct rpma_conn *conn = pair.client->conn;
    struct rpma_mr_remote *target = pair.client->target;
    CHECK_INVAL(rpma_flush(NULL, target, 0, 8, type, always, NULL));
    CHECK_INVAL(rpma_flush(conn, NULL, 0, 8, type, always, NULL));
    CHECK_INVAL(rpma_flush(conn, target, 0, 8, type, 0, NULL));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

TEST(flush__unknown_type) {
    const int always = RPMA_F_COMPLETION_ALWAYS;
    Pair pair = pair_with_direct_write((Options){0});
    CHECK_INVAL(rpma_flush(pair.client->conn, pair.client->target, 0, 8, (enum rpma_flush_type)2, always, NULL));
    CHECK_INVAL(rpma_flush(pair.client->conn, pair.client->target, 0, 8, (enum rpma_flush_type) - 1, always, NULL));
    expect_no_wc(pair.client);
    pair_close(&pair);
}

static void flush_outside(size_t to, size_t length) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(flush(pair.client, FLUSH_VISIBILITY, to, length, 1));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_REM_ACCESS_ERR);
    EXPECT_BREAK(pair.client);
}

TEST(flush__beyond_the_target) { flush_outside(MEMORY_BYTES, 8); }

TEST(flush__of_nothing_beyond_the_target) { flush_outside(MEMORY_BYTES, 0); }

TEST(flush__before_the_target) { flush_outside((size_t)-8, 16); }

TEST(flush__far_beyond_the_target) { flush_outside(2 * MEMORY_BYTES, SIZE_MAX); }

static void do_deregister(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_mr_dereg(&side->mr));
}

TEST(flush__in_a_region_that_is_gone) {
    Pair pair = connected_pair((Options){0});
    at(pair.server, do_deregister, NULL, 0);
    CHECK_OK(post(pair.client, (Work){.operation = FLUSH_VISIBILITY, .length = 8, .on_error = true, .context = 1}));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_REM_ACCESS_ERR);
}

TEST(flush__a_full_queue) {
    Pair pair = pair_with_full_queue();
    CHECK_RC(flush(pair.client, FLUSH_VISIBILITY, 0, 8, 1), RPMA_E_PROVIDER);
    pair_close(&pair);
}

TEST(flush__before_the_connection_stands) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    exchange_targets(&pair);
    CHECK_RC(flush(pair.client, FLUSH_VISIBILITY, 0, 8, 1), RPMA_E_PROVIDER);
}

TEST(flush__is_flushed_after_disconnecting) {
    Pair pair = closed_pair();
    apply_direct_write(pair.client, 1);
    CHECK_OK(flush(pair.client, FLUSH_VISIBILITY, 0, 8, 1));
    CHECK_OK(flush(pair.client, FLUSH_PERSISTENT, 0, 8, 2));
    EXPECT_WC(pair.client, MAIN_CQ, 1, IBV_WC_WR_FLUSH_ERR);
    EXPECT_WC(pair.client, MAIN_CQ, 2, IBV_WC_WR_FLUSH_ERR);
}
