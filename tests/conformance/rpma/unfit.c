/* SPDX-License-Identifier: BSD-3-Clause
 * Messages that do not fit their receive, and receives into memory that cannot take them: rpma_send(3), rpma_recv(3).
 * Both sides are told, and alike at every size; stock librpma passes on what the device says.
 */
#include "side.h"

static const size_t sizes[] = {MESSAGE_SIZES};

/* A message to the one receive that is posted: what each side is told. The connection is made anew for each. */
static void fails(const Pair *pair, Work receive, size_t length, enum ibv_wc_status at_sender,
                  enum ibv_wc_status at_receiver) {
    pair_connect(pair);
    CHECK_OK(post(pair->server, receive));
    CHECK_OK(post(pair->client, (Work){.operation = SEND, .at = SEND_AT, .length = length, .context = 2}));
    EXPECT_FAILED(pair->client, MAIN_CQ, 2, at_sender);
    EXPECT_FAILED(pair->server, RECV_CQ, 1, at_receiver);
    EXPECT_BREAK(pair->client);
    EXPECT_BREAK(pair->server);
    delete_conn(pair->client);
    delete_conn(pair->server);
}

TEST(recv__too_small_by_a_byte_is_told_at_both_sides) {
    Pair pair = open_pair((Options){0});
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        Work receive = {.operation = RECV, .at = RECV_AT, .length = sizes[i], .context = 1};
        fails(&pair, receive, sizes[i] + 1, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR);
    }
}

TEST(recv__outside_by_a_byte_is_told_at_both_sides) {
    Pair pair = open_pair((Options){0});
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        Work receive = {.operation = RECV, .at = MEMORY_BYTES - sizes[i], .length = sizes[i] + 1, .context = 1};
        fails(&pair, receive, sizes[i] + 1, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
    }
}
