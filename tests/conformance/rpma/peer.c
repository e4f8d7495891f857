/* SPDX-License-Identifier: BSD-3-Clause
 * Peers: rpma_peer_new(3) and rpma_peer_delete(3).
 */
#include "side.h"

static void delete_peer(struct rpma_peer *peer) {
    CHECK_OK(rpma_peer_delete(&peer));
    CHECK(peer == NULL);
}

TEST(peer_new__on_a_device) { delete_peer(new_peer()); }

TEST(peer_new__several_on_one_device) {
    struct rpma_peer *peers[8];
    for (int i = 0; i < 8; ++i) peers[i] = new_peer();
    for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < i; ++j) CHECK(peers[i] != peers[j]);
    }
    for (int i = 0; i < 8; ++i) delete_peer(peers[i]);
}

TEST(peer_new__again_and_again) {
    for (int i = 0; i < (on_loopback() ? 200 : 20); ++i) delete_peer(new_peer());
}

TEST(peer_new__null_is_invalid) {
    struct rpma_peer *peer = NULL;
    CHECK_INVAL(rpma_peer_new(NULL, &peer));
    CHECK(peer == NULL);
    CHECK_INVAL(rpma_peer_new(test_device(), NULL));
}

TEST(peer_delete__sets_the_pointer_to_null) { delete_peer(new_peer()); }

TEST(peer_delete__nothing_to_delete) { delete_peer(NULL); }

TEST(peer_delete__null_is_invalid) { CHECK_INVAL(rpma_peer_delete(NULL)); }

/* The manual page leaves open what becomes of the pointer; as with stock librpma, the program can do no more about it.
 */
static void is_busy(struct rpma_peer *peer) {
    CHECK_RC(rpma_peer_delete(&peer), RPMA_E_PROVIDER);
    CHECK(peer == NULL);
}

TEST(peer_delete__in_use_by_a_region) {
    static char memory[4096];
    struct rpma_peer *peer = new_peer();
    struct rpma_mr_local *mr = NULL;
    size_t size = 0;
    CHECK_OK(rpma_mr_reg(peer, memory, sizeof memory, RPMA_MR_USAGE_SEND, &mr));
    is_busy(peer);
    CHECK_OK(rpma_mr_get_size(mr, &size));
    CHECK_EQ(size, sizeof memory);
    CHECK_OK(rpma_mr_dereg(&mr));
}

TEST(peer_delete__in_use_by_a_shared_receive_queue) {
    struct rpma_peer *peer = new_peer();
    struct rpma_srq *srq = NULL;
    CHECK_OK(rpma_srq_new(peer, NULL, &srq));
    is_busy(peer);
    CHECK_OK(rpma_srq_delete(&srq));
}

/* The shared receive queue works on, and so do the region and the connection. */
TEST(peer_delete__a_shared_receive_queue_works_on) {
    Pair pair = connected_pair_of((Options){.srq = true}, (Options){0});
    is_busy(pair.client->peer);
    CHECK_OK(post(pair.client, (Work){.operation = SRQ_RECV, .at = RECV_AT, .length = 64, .context = 1}));
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 64, .context = 2}));
    EXPECT_RECEIVED(pair.client, 1);
    EXPECT_DONE(pair.server, 2);
}

/* The connection works on. */
TEST(peer_delete__in_use_by_a_connection) {
    Pair pair = connected_pair((Options){0});
    is_busy(pair.client->peer);
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .context = 2}));
    EXPECT_RECEIVED(pair.server, 1);
    EXPECT_DONE(pair.client, 2);
}
