/* SPDX-License-Identifier: BSD-3-Clause
 * What an error does at each reliability level: guide, sections 2.4, 3.8.1 and 5.2 (status bits).
 */
#include "endpoint.h"

static void still_connected(const Pair *pair) {
    post_simple_recv(pair->server, 9, 64);
    CHECK_RC(post_send(pair->client, 9, send_work(pair->client, SEND_AT(9), 64)), VIP_SUCCESS);
    EXPECT_SEND(pair->client, 9, SENT);
    EXPECT_RECV(pair->server, 9, RECEIVED);
    CHECK_EQ(state_of(pair->client), VIP_STATE_CONNECTED);
    CHECK_EQ(state_of(pair->server), VIP_STATE_CONNECTED);
    endpoint_close_nic(pair->server);
    await_error(pair->client, VIP_ERROR_CONN_LOST); /* of the closing */
    endpoint_close_nic(pair->client);
    CHECK_EQ(pair->client->error_count, 0);
    CHECK_EQ(pair->server->error_count, 0);
}

/* ---- No receive is posted ---------------------------------------------------------------------------------------- */

TEST(no_receive_unreliable) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    post_simple_send(pair.client, 0, 64);
    EXPECT_SEND(pair.client, 0, SENT);
    await_target_error(pair.server, VIP_ERROR_RECVQ_EMPTY);
    still_connected(&pair);
}

TEST(no_receive_reliable_delivery) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    post_simple_send(pair.client, 0, 64);
    EXPECT_SEND(pair.client, 0, SENT); /* the data has left */
    await_target_error(pair.server, VIP_ERROR_RECVQ_EMPTY);
    await_loss(&pair);
    EXPECT_RECV(pair.client, 0, RECEIVED | FLUSHED);
}

TEST(no_receive_reliable_reception) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    post_simple_recv(pair.client, 0, 64);
    post_simple_send(pair.client, 0, 64);
    EXPECT_SEND(pair.client, 0, SENT | VIP_STATUS_REMOTE_DESC_ERROR);
    await_target_error(pair.server, VIP_ERROR_RECVQ_EMPTY);
    await_loss(&pair);
    EXPECT_RECV(pair.client, 0, RECEIVED | FLUSHED);
}

TEST(no_receive_for_a_large_message) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    CHECK_RC(post_send(pair.client, 0, send_work(pair.client, BIG_AT, 1024 * 1024)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT | VIP_STATUS_REMOTE_DESC_ERROR);
    await_target_error(pair.server, VIP_ERROR_RECVQ_EMPTY);
    await_loss(&pair);
}

/* A write with immediate data needs a receive as well. */
static void no_receive_for_immediate(VIP_RELIABILITY_LEVEL level, VIP_UINT32 status) {
    Pair pair = connected_pair(level);
    Work work = rdma_work(pair.client, VIP_CONTROL_OP_RDMAWRITE, SEND_AT(0), 64, pair.server, RECV_AT(0));
    CHECK_RC(post_send(pair.client, 0, with_immediate(work, 1)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, status);
    if (!is_hardware(pair.server)) {
        CHECK_EQ(await_error(pair.server, VIP_ERROR_RECVQ_EMPTY).OpCode, VIP_STATUS_OP_REMOTE_RDMA_WRITE);
    }
    if (level == VIP_SERVICE_UNRELIABLE) {
        still_connected(&pair);
    } else {
        await_loss(&pair);
    }
}

TEST(no_receive_for_immediate_unreliable) { no_receive_for_immediate(VIP_SERVICE_UNRELIABLE, WRITTEN); }
TEST(no_receive_for_immediate_reliable_delivery) { no_receive_for_immediate(VIP_SERVICE_RELIABLE_DELIVERY, WRITTEN); }
TEST(no_receive_for_immediate_reliable_reception) {
    no_receive_for_immediate(VIP_SERVICE_RELIABLE_RECEPTION, WRITTEN | VIP_STATUS_REMOTE_DESC_ERROR);
}

/* ---- An error of the sender's own descriptor --------------------------------------------------------------------- */

/* The bad one fails in its turn; what was posted before it arrives, what comes after it is flushed. */
static void local_error(VIP_RELIABILITY_LEVEL level) {
    Pair pair = connected_pair(level);
    for (int slot = 0; slot < 3; ++slot) post_simple_recv(pair.server, slot, 64);
    post_simple_recv(pair.client, 0, 64);
    Work bad = send_work(pair.client, SEND_AT(1), 64);
    bad.CS.Reserved = 1;
    post_simple_send(pair.client, 0, 64);
    CHECK_RC(post_send(pair.client, 1, bad), VIP_SUCCESS);
    post_simple_send(pair.client, 2, 64);
    EXPECT_SEND(pair.client, 0, SENT);
    EXPECT_SEND(pair.client, 1, SENT | VIP_STATUS_FORMAT_ERROR);
    if (level == VIP_SERVICE_UNRELIABLE) {
        EXPECT_SEND(pair.client, 2, SENT);
        EXPECT_RECV(pair.server, 0, RECEIVED);
        EXPECT_RECV(pair.server, 1, RECEIVED);
        CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
        return;
    }
    EXPECT_SEND(pair.client, 2, SENT | FLUSHED);
    EXPECT_RECV(pair.client, 0, RECEIVED | FLUSHED);
    await_loss(&pair);
    EXPECT_RECV(pair.server, 0, RECEIVED);
    EXPECT_RECV(pair.server, 1, RECEIVED | FLUSHED);
    EXPECT_RECV(pair.server, 2, RECEIVED | FLUSHED);
}

TEST(local_error_unreliable) { local_error(VIP_SERVICE_UNRELIABLE); }
TEST(local_error_reliable_delivery) { local_error(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(local_error_reliable_reception) { local_error(VIP_SERVICE_RELIABLE_RECEPTION); }

static void local_error_of_kind(void (*spoil)(Work *work), VIP_UINT32 status) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Work bad = send_work(pair.client, SEND_AT(0), 64);
    spoil(&bad);
    CHECK_RC(post_send(pair.client, 0, bad), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT | status);
    await_loss(&pair);
}

static void spoil_length(Work *work) { work->CS.Length = 1; }
static void spoil_protection(Work *work) { work->DS[0].Local.Handle = 0; }

TEST(length_error_reliable_delivery) { local_error_of_kind(spoil_length, VIP_STATUS_LENGTH_ERROR); }
TEST(protection_error_reliable_delivery) { local_error_of_kind(spoil_protection, VIP_STATUS_PROTECTION_ERROR); }

/* ---- An error of the receiver's descriptor ----------------------------------------------------------------------- */

/* The second message meets a bad descriptor. */
static void bad_receive(VIP_RELIABILITY_LEVEL level, void (*spoil)(Work *work), VIP_UINT32 error) {
    Pair pair = connected_pair(level);
    Work bad = recv_work(pair.server, RECV_AT(1), 64);
    spoil(&bad);
    post_simple_recv(pair.server, 0, 64);
    CHECK_RC(post_recv(pair.server, 1, bad), VIP_SUCCESS);
    post_simple_recv(pair.server, 2, 64);
    post_simple_send(pair.client, 0, 64);
    EXPECT_SEND(pair.client, 0, SENT);
    post_simple_send(pair.client, 1, 64);
    EXPECT_RECV(pair.server, 0, RECEIVED);
    Completion failed = error == VIP_STATUS_LENGTH_ERROR ? EXPECT_TOO_SMALL(pair.server, 1)
                                                         : EXPECT_RECV(pair.server, 1, RECEIVED | error);
    CHECK_EQ(failed.length, 0);
    VIP_UINT32 remote = level == VIP_SERVICE_RELIABLE_RECEPTION ? VIP_STATUS_REMOTE_DESC_ERROR : 0;
    EXPECT_SEND(pair.client, 1, SENT | remote);
    if (level == VIP_SERVICE_UNRELIABLE && !is_hardware(pair.server)) {
        post_simple_send(pair.client, 2, 64);
        EXPECT_RECV(pair.server, 2, RECEIVED);
        CHECK_EQ(state_of(pair.server), VIP_STATE_CONNECTED);
    } else {
        EXPECT_RECV(pair.server, 2, RECEIVED | FLUSHED);
        await_loss(&pair);
    }
}

static void spoil_reserved(Work *work) { work->CS.Reserved = 1; }
static void spoil_room(Work *work) { work->DS[0].Local.Length = 63; }

TEST(receive_too_small_unreliable) { bad_receive(VIP_SERVICE_UNRELIABLE, spoil_room, VIP_STATUS_LENGTH_ERROR); }
TEST(receive_too_small_reliable_delivery) {
    bad_receive(VIP_SERVICE_RELIABLE_DELIVERY, spoil_room, VIP_STATUS_LENGTH_ERROR);
}
TEST(receive_too_small_reliable_reception) {
    bad_receive(VIP_SERVICE_RELIABLE_RECEPTION, spoil_room, VIP_STATUS_LENGTH_ERROR);
}
TEST(receive_format_error_reliable_delivery) {
    bad_receive(VIP_SERVICE_RELIABLE_DELIVERY, spoil_reserved, VIP_STATUS_FORMAT_ERROR);
}
TEST(receive_format_error_reliable_reception) {
    bad_receive(VIP_SERVICE_RELIABLE_RECEPTION, spoil_reserved, VIP_STATUS_FORMAT_ERROR);
}
TEST(receive_protection_error_reliable_delivery) {
    bad_receive(VIP_SERVICE_RELIABLE_DELIVERY, spoil_protection, VIP_STATUS_PROTECTION_ERROR);
}
TEST(receive_protection_error_reliable_reception) {
    bad_receive(VIP_SERVICE_RELIABLE_RECEPTION, spoil_protection, VIP_STATUS_PROTECTION_ERROR);
}

/* ---- Reliable Reception stops at the first error ----------------------------------------------------------------- */

/* No send behind the failed one is processed: guide, section 2.4. */
TEST(reliable_reception_sends_nothing_after_an_error) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    post_simple_recv(pair.server, 0, 16); /* too small */
    for (int slot = 1; slot < 4; ++slot) post_simple_recv(pair.server, slot, 64);
    for (int slot = 0; slot < 4; ++slot) post_simple_send(pair.client, slot, 64);
    EXPECT_SEND(pair.client, 0, SENT | VIP_STATUS_REMOTE_DESC_ERROR);
    for (int slot = 1; slot < 4; ++slot) EXPECT_SEND(pair.client, slot, SENT | FLUSHED);
    EXPECT_TOO_SMALL(pair.server, 0);
    for (int slot = 1; slot < 4; ++slot) EXPECT_RECV(pair.server, slot, RECEIVED | FLUSHED);
    await_loss(&pair);
}

/* After the error both ends can be reset and connected again. */
TEST(recovery_after_an_error) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_send(pair.client, 0, 64);
    EXPECT_SEND(pair.client, 0, SENT);
    await_target_error(pair.server, VIP_ERROR_RECVQ_EMPTY);
    await_loss(&pair);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    pair_connect(&pair);
    still_connected(&pair);
}
