/* SPDX-License-Identifier: BSD-3-Clause
 * Work that fails: the status of its completion, what becomes of the connection, and of the work behind it.
 */
#include "scene.h"

/* The failure breaks the connection at both ends. The other one may learn it as a disconnection. */
static void check_broken(const Pair *pair, Side *who) {
    Side *other = who == pair->client ? pair->server : pair->client;
    EXPECT_EVENT(who, CONN, DAT_CONNECTION_EVENT_BROKEN);
    DAT_EVENT event = next_event(other, CONN);
    CHECK(event.event_number == DAT_CONNECTION_EVENT_BROKEN || event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
    CHECK_EQ(ep_state(who), DAT_EP_STATE_DISCONNECTED);
    CHECK_EQ(ep_state(other), DAT_EP_STATE_DISCONNECTED);
}

/* ---- Memory of the own side -------------------------------------------------------------------------------------- */

/* A device may call what its queue cannot do with such memory an error of the endpoint. */
static void expect_protection(Side *side, Stream stream, DAT_UINT64 cookie) {
    DAT_EVENT event = EXPECT_EVENT(side, stream, DAT_DTO_COMPLETION_EVENT);
    const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;
    CHECK_EQ(data->user_cookie.as_64, cookie);
    if (on_loopback() || data->status != DAT_DTO_ERR_LOCAL_EP) CHECK_EQ(data->status, DAT_DTO_ERR_LOCAL_PROTECTION);
}

/* Where a provider checks memory before it takes the work, the call says so, and nothing else happens; else the
 * completion does. */
static void check_local(const Pair *pair, DAT_RETURN rc, DAT_UINT64 cookie) {
    if (on_loopback()) CHECK_OK(rc);
    if (rc == DAT_SUCCESS) {
        expect_protection(pair->client, REQUEST, cookie);
        check_broken(pair, pair->client);
    } else {
        CHECK(DAT_GET_TYPE(rc) == DAT_INVALID_PARAMETER || DAT_GET_TYPE(rc) == DAT_PROTECTION_VIOLATION ||
              DAT_GET_TYPE(rc) == DAT_PRIVILEGES_VIOLATION);
        CHECK_EQ(ep_state(pair->client), DAT_EP_STATE_CONNECTED);
    }
}

static DAT_RETURN request(const Pair *pair, Operation operation, DAT_LMR_TRIPLET local) {
    const DAT_DTO_COOKIE cookie = {.as_64 = 7};
    DAT_EP_HANDLE ep = pair->client->ep;
    DAT_RMR_TRIPLET remote = target_piece(pair->client, RECV_AT, local.segment_length);
    switch (operation) {
        case READ: return dat_ep_post_rdma_read(ep, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG);
        case WRITE: return dat_ep_post_rdma_write(ep, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG);
        default:
            CHECK_OK(post(pair->server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 65536, .cookie = 1}));
            return dat_ep_post_send(ep, 1, &local, cookie, DAT_COMPLETION_DEFAULT_FLAG);
    }
}

/* Long enough for no transport to have copied it while posting. */
enum { LENGTH = 32768 };

static void check_outside(Operation operation) {
    const Pair pair = connected_pair((Options){0});
    check_local(&pair, request(&pair, operation, piece(pair.client, MEMORY_BYTES - 16, LENGTH)), 7);
}

TEST(local_protection__send_outside_its_region) { check_outside(SEND); }
TEST(local_protection__write_outside_its_region) { check_outside(WRITE); }
TEST(local_protection__read_outside_its_region) { check_outside(READ); }

static void check_unknown(Operation operation) {
    const Pair pair = connected_pair((Options){0});
    DAT_LMR_TRIPLET local = piece(pair.client, SEND_AT, LENGTH);
    local.lmr_context ^= 0x5a5a00;
    check_local(&pair, request(&pair, operation, local), 7);
}

TEST(local_protection__send_from_no_region) { check_unknown(SEND); }
TEST(local_protection__write_from_no_region) { check_unknown(WRITE); }
TEST(local_protection__read_into_no_region) { check_unknown(READ); }

/* "Protection Zone mismatch between an LMR of one of the local_iov segments and the local Endpoint." */
static void check_zone(Operation operation) {
    const Pair pair = connected_pair((Options){0});
    Side *client = pair.client;
    DAT_LMR_TRIPLET local = piece(client, SEND_AT, LENGTH);
    new_lmr(client->ia, new_pz(client->ia), client->memory, MEMORY_BYTES, &local.lmr_context);
    check_local(&pair, request(&pair, operation, local), 7);
}

TEST(local_protection__send_from_another_zone) { check_zone(SEND); }
TEST(local_protection__write_from_another_zone) { check_zone(WRITE); }
TEST(local_protection__read_into_another_zone) { check_zone(READ); }

static DAT_LMR_CONTEXT with_privileges(const Side *side, DAT_MEM_PRIV_FLAGS privileges) {
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_LMR_CONTEXT context = 0;
    DAT_RMR_CONTEXT rmr_context = 0;
    CHECK_OK(
        register_virtual(side->ia, side->pz, side->memory, MEMORY_BYTES, privileges, &lmr, &context, &rmr_context));
    return context;
}

TEST(local_protection__read_into_memory_that_is_not_to_be_written) {
    const Pair pair = connected_pair((Options){0});
    DAT_LMR_TRIPLET local = piece(pair.client, SEND_AT, LENGTH);
    local.lmr_context = with_privileges(pair.client, DAT_MEM_PRIV_LOCAL_READ_FLAG);
    check_local(&pair, request(&pair, READ, local), 7);
}

TEST(local_protection__region_that_is_gone) {
    const Pair pair = connected_pair((Options){0});
    Side *client = pair.client;
    DAT_LMR_TRIPLET local = piece(client, SEND_AT, LENGTH);
    DAT_LMR_HANDLE lmr = new_lmr(client->ia, client->pz, client->memory, MEMORY_BYTES, &local.lmr_context);
    CHECK_OK(dat_lmr_free(lmr));
    check_local(&pair, request(&pair, SEND, local), 7);
}

/* The first segment is valid. */
static void check_second_segment(Operation operation) {
    const Pair pair = connected_pair((Options){0});
    DAT_LMR_TRIPLET list[2] = {piece(pair.client, SEND_AT, LENGTH), piece(pair.client, SEND_AT, LENGTH)};
    DAT_RMR_TRIPLET remote = target_piece(pair.client, RECV_AT, 2 * LENGTH);
    const DAT_DTO_COOKIE cookie = {.as_64 = 7};
    list[1].lmr_context ^= 0x5a5a00;
    if (operation == SEND)
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 2 * LENGTH, .cookie = 1}));
    check_local(&pair,
                operation == SEND
                    ? dat_ep_post_send(pair.client->ep, 2, list, cookie, DAT_COMPLETION_DEFAULT_FLAG)
                    : dat_ep_post_rdma_write(pair.client->ep, 2, list, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
                7);
}

TEST(local_protection__send_of_a_second_segment) { check_second_segment(SEND); }
TEST(local_protection__write_of_a_second_segment) { check_second_segment(WRITE); }

/* A receive with wrong memory may be refused, or fail when a message comes for it. */
static void check_receive(const Pair *pair, DAT_LMR_TRIPLET space) {
    DAT_RETURN rc =
        dat_ep_post_recv(pair->client->ep, 1, &space, (DAT_DTO_COOKIE){.as_64 = 8}, DAT_COMPLETION_DEFAULT_FLAG);
    if (on_loopback()) CHECK_OK(rc);
    if (rc != DAT_SUCCESS) {
        CHECK(DAT_GET_TYPE(rc) == DAT_INVALID_PARAMETER || DAT_GET_TYPE(rc) == DAT_PROTECTION_VIOLATION ||
              DAT_GET_TYPE(rc) == DAT_PRIVILEGES_VIOLATION);
        return;
    }
    CHECK_OK(post(pair->server, (Work){.operation = SEND, .length = LENGTH, .cookie = 9}));
    expect_protection(pair->client, RECV, 8);
    check_broken(pair, pair->client);
}

TEST(local_protection__receive_outside_its_region) {
    const Pair pair = connected_pair((Options){0});
    check_receive(&pair, piece(pair.client, MEMORY_BYTES - 16, LENGTH));
}

TEST(local_protection__receive_into_no_region) {
    const Pair pair = connected_pair((Options){0});
    DAT_LMR_TRIPLET space = piece(pair.client, RECV_AT, LENGTH);
    space.lmr_context ^= 0x5a5a00;
    check_receive(&pair, space);
}

TEST(local_protection__receive_into_another_zone) {
    const Pair pair = connected_pair((Options){0});
    Side *client = pair.client;
    DAT_LMR_TRIPLET space = piece(client, RECV_AT, LENGTH);
    new_lmr(client->ia, new_pz(client->ia), client->memory, MEMORY_BYTES, &space.lmr_context);
    check_receive(&pair, space);
}

TEST(local_protection__receive_into_memory_that_is_not_to_be_written) {
    const Pair pair = connected_pair((Options){0});
    DAT_LMR_TRIPLET space = piece(pair.client, RECV_AT, LENGTH);
    space.lmr_context = with_privileges(pair.client, DAT_MEM_PRIV_LOCAL_READ_FLAG);
    check_receive(&pair, space);
}

/* ---- Memory of the other side ------------------------------------------------------------------------------------ */

static void check_remote(const Pair *pair, Operation operation, DAT_RMR_TRIPLET remote) {
    const DAT_DTO_COOKIE cookie = {.as_64 = 7};
    DAT_LMR_TRIPLET local = piece(pair->client, operation == READ ? RECV_AT : SEND_AT, remote.segment_length);
    CHECK_OK(operation == READ
                 ? dat_ep_post_rdma_read(pair->client->ep, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG)
                 : dat_ep_post_rdma_write(pair->client->ep, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DTO(pair->client, REQUEST, 7, DAT_DTO_ERR_REMOTE_ACCESS);
    check_broken(pair, pair->client);
}

static void check_remote_unknown(Operation operation) {
    const Pair pair = connected_pair((Options){0});
    DAT_RMR_TRIPLET remote = target_piece(pair.client, RECV_AT, 4096);
    remote.rmr_context ^= 0x5a5a00;
    check_remote(&pair, operation, remote);
}

TEST(remote_access__write_to_no_region) { check_remote_unknown(WRITE); }
TEST(remote_access__read_from_no_region) { check_remote_unknown(READ); }

static void check_remote_outside(Operation operation) {
    const Pair pair = connected_pair((Options){0});
    check_remote(&pair, operation, target_piece(pair.client, MEMORY_BYTES - 16, 4096));
}

TEST(remote_access__write_outside_the_region) { check_remote_outside(WRITE); }
TEST(remote_access__read_outside_the_region) { check_remote_outside(READ); }

static void check_remote_privileges(Operation operation, DAT_MEM_PRIV_FLAGS privileges) {
    const Pair pair = connected_pair_of((Options){0}, (Options){.privileges = privileges});
    check_remote(&pair, operation, target_piece(pair.client, RECV_AT, 4096));
}

TEST(remote_access__memory_that_is_not_to_be_written) {
    check_remote_privileges(
        WRITE, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG);
}

TEST(remote_access__memory_that_is_not_to_be_read) {
    check_remote_privileges(
        READ, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
}

/* ---- Lengths ----------------------------------------------------------------------------------------------------- */

/* "The size of an incoming message is larger than the size of the local_iov". The page says nothing of the sender:
 * where the transport tells it, it is an error of the other side. */
static void check_too_large(DAT_SEG_LENGTH length) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 16, .cookie = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = length, .cookie = 2}));
    EXPECT_DTO(pair.server, RECV, 1, DAT_DTO_ERR_LOCAL_LENGTH);
    DAT_EVENT event = EXPECT_EVENT(pair.client, REQUEST, DAT_DTO_COMPLETION_EVENT);
    CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 2);
    CHECK_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_REMOTE_RESPONDER);
    for (int i = 0; i < 2; ++i) {
        Side *side = i == 0 ? pair.client : pair.server;
        event = next_event(side, CONN);
        CHECK(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
              event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
        CHECK_EQ(ep_state(side), DAT_EP_STATE_DISCONNECTED);
    }
}

TEST(local_length__a_message_larger_than_the_receive) { check_too_large(64); }
TEST(local_length__a_short_message_larger_than_the_receive) { check_too_large(17); }
TEST(local_length__a_long_message_larger_than_the_receive) { check_too_large(65536); }

TEST(local_length__a_receive_of_no_bytes) {
    const Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .no_segment = true, .cookie = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 1, .cookie = 2}));
    EXPECT_DTO(pair.server, RECV, 1, DAT_DTO_ERR_LOCAL_LENGTH);
}

/* ---- What comes after -------------------------------------------------------------------------------------------- */

TEST(failure__flushes_what_is_behind_it) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_LMR_TRIPLET from = piece(pair.client, SEND_AT, 8);
    DAT_RMR_TRIPLET to = target_piece(pair.client, RECV_AT, 8);
    for (DAT_UINT64 i = 0; i < 3; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 10 + i}));
    to.rmr_context ^= 0x5a5a00;
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 0}));
    CHECK_OK(dat_ep_post_rdma_write(pair.client->ep, 1, &from, (DAT_DTO_COOKIE){.as_64 = 1}, &to,
                                    DAT_COMPLETION_DEFAULT_FLAG));
    int behind = 0;
    for (DAT_UINT64 i = 2; i < 5; ++i) /* the failure may already be known */
        behind += post(pair.client, (Work){.operation = SEND, .length = 8, .cookie = i}) == DAT_SUCCESS;
    EXPECT_DONE(pair.client, 0);
    EXPECT_DTO(pair.client, REQUEST, 1, DAT_DTO_ERR_REMOTE_ACCESS);
    for (int i = 0; i < behind; ++i) EXPECT_DTO(pair.client, REQUEST, (DAT_UINT64)(2 + i), DAT_DTO_ERR_FLUSHED);
    for (DAT_UINT64 i = 0; i < 3; ++i) EXPECT_DTO(pair.client, RECV, 10 + i, DAT_DTO_ERR_FLUSHED);
}

TEST(failure__other_connections_stay) {
    const Pair pair = connected_pair_here((Options){0});
    const Pair other = connected_pair_here((Options){0});
    check_remote(&pair, WRITE, (DAT_RMR_TRIPLET){0x1000, 8, 0});
    tell(other.client, other.server);
    tell(other.server, other.client);
    pair_close(&other);
}

TEST(failure__the_endpoint_can_be_reset) {
    const Pair pair = connected_pair_here((Options){0});
    check_remote(&pair, WRITE, (DAT_RMR_TRIPLET){0x1000, 8, 0});
    throw_away_events(pair.client);
    throw_away_events(pair.server);
    CHECK_OK(dat_ep_reset(pair.client->ep));
    CHECK_OK(dat_ep_reset(pair.server->ep));
    pair_connect(&pair);
    tell(pair.client, pair.server);
    pair_close(&pair);
}
