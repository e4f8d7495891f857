/* SPDX-License-Identifier: BSD-3-Clause
 * Work that DAT 2.0 adds: dat_ep_post_send_with_invalidate, which ends an RMR of the receiver, and
 * dat_ep_post_rdma_read_to_rmr, which reads into one of the own. No page describes them; the headers do.
 */
#include "scene.h"

#pragma weak dat_ep_post_send_with_invalidate
#pragma weak dat_ep_post_rdma_read_to_rmr
#pragma weak dat_rmr_create_for_ep

enum { LENGTH = 4096 };

/* Binds an RMR to LENGTH bytes of RECV_AT of the side. */
static DAT_RMR_CONTEXT bind_rmr(Side *side, DAT_RMR_HANDLE rmr) {
    DAT_RMR_CONTEXT context = 0;
    DAT_LMR_TRIPLET window = piece(side, RECV_AT, LENGTH);
    CHECK_OK(dat_rmr_bind(rmr, side->lmr, &window, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, side->ep,
                          (DAT_RMR_COOKIE){.as_64 = 1}, DAT_COMPLETION_DEFAULT_FLAG, &context));
    WAIT_ON(side->evds[REQUEST], DAT_RMR_BIND_COMPLETION_EVENT);
    return context;
}

/* An RMR for one endpoint, whose binding its peer may end. */
static DAT_RMR_HANDLE new_window(const Side *side) {
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    NEED(dat_rmr_create_for_ep);
    DAT_RETURN rc = dat_rmr_create_for_ep(side->pz, &rmr);
    if (!on_loopback() && DAT_GET_TYPE(rc) == DAT_MODEL_NOT_SUPPORTED) skip("the provider has no RMRs");
    CHECK_OK(rc);
    return rmr;
}

static DAT_RMR_CONTEXT bind_window(Side *side) { return bind_rmr(side, new_window(side)); }

static DAT_RETURN send_invalidating(const Side *side, DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context) {
    DAT_LMR_TRIPLET local = piece(side, SEND_AT, 64);
    return dat_ep_post_send_with_invalidate(side->ep, 1, &local, (DAT_DTO_COOKIE){.as_64 = 2},
                                            DAT_COMPLETION_DEFAULT_FLAG, invalidate, context);
}

static DAT_RETURN write_to(const Side *side, DAT_RMR_CONTEXT context, DAT_UINT64 cookie) {
    DAT_LMR_TRIPLET local = piece(side, SEND_AT, 64);
    DAT_RMR_TRIPLET remote = {side->target.address + RECV_AT, 64, context};
    return dat_ep_post_rdma_write(side->ep, 1, &local, (DAT_DTO_COOKIE){.as_64 = cookie}, &remote,
                                  DAT_COMPLETION_DEFAULT_FLAG);
}

/* A pair here, because the receiver binds. */
static Pair connected_with(Options options) {
    NEED(dat_ep_post_send_with_invalidate);
    const Pair pair = connected_pair_here((Options){0});
    const DAT_RETURN rc = send_invalidating(pair.client, DAT_TRUE, 0);
    if (!on_loopback() && DAT_GET_TYPE(rc) == DAT_MODEL_NOT_SUPPORTED) skip("the provider has no send with invalidate");
    CHECK_OK(rc);
    return connected_pair_here(options);
}

static Pair connected(void) { return connected_with((Options){0}); }

static DAT_DTO_COMPLETION_EVENT_DATA exchange(const Pair *pair, DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context) {
    CHECK_OK(post(pair->server, (Work){.operation = RECEIVE, .at = RECV_AT + 8192, .length = 64, .cookie = 3}));
    fill(pair->client, SEND_AT, 64, 4);
    CHECK_OK(send_invalidating(pair->client, invalidate, context));
    DAT_DTO_COMPLETION_EVENT_DATA received = EXPECT_RECEIVED(pair->server, 3);
    CHECK_EQ(received.transfered_length, 64);
    CHECK(filled(pair->server, RECV_AT + 8192, 64, 4));
    EXPECT_DONE(pair->client, 2);
    return received;
}

TEST(send_with_invalidate__ends_the_rmr) {
    const Pair pair = connected();
    const DAT_RMR_CONTEXT context = bind_window(pair.server);
    CHECK_OK(write_to(pair.client, context, 5));
    EXPECT_DONE(pair.client, 5);
    const DAT_DTO_COMPLETION_EVENT_DATA received = exchange(&pair, DAT_TRUE, context);
    CHECK_EQ(received.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
    CHECK_EQ(received.rmr_context, context);
    CHECK_OK(write_to(pair.client, context, 6));
    EXPECT_DTO(pair.client, REQUEST, 6, DAT_DTO_ERR_REMOTE_ACCESS);
}

/* The receiver, which has been told, may bind the RMR again or free the region. */
TEST(send_with_invalidate__the_rmr_is_bound_to_nothing) {
    const Pair pair = connected();
    Side *side = pair.server;
    const DAT_RMR_HANDLE rmr = new_window(side);
    for (int i = 0; i < 3; ++i) {
        DAT_RMR_PARAM param;
        const DAT_RMR_CONTEXT context = bind_rmr(side, rmr);
        CHECK_OK(write_to(pair.client, context, 5));
        EXPECT_DONE(pair.client, 5);
        CHECK_OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
        CHECK_EQ(param.lmr_triplet.segment_length, LENGTH);
        CHECK_SUB(dat_lmr_free(side->lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
        exchange(&pair, DAT_TRUE, context);
        CHECK_OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
        CHECK_EQ(param.lmr_triplet.segment_length, 0);
        CHECK_EQ(param.mem_priv, DAT_MEM_PRIV_NONE_FLAG);
    }
    CHECK_OK(dat_lmr_free(side->lmr));
}

TEST(send_with_invalidate__without_invalidating) {
    const Pair pair = connected();
    const DAT_RMR_CONTEXT context = bind_window(pair.server);
    CHECK_EQ(exchange(&pair, DAT_FALSE, context).operation, DAT_DTO_RECEIVE);
    CHECK_OK(write_to(pair.client, context, 5));
    EXPECT_DONE(pair.client, 5);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
}

/* One that was not made for an endpoint cannot be ended by a peer. */
TEST(send_with_invalidate__an_rmr_of_any_endpoint) {
    const Pair pair = connected();
    const DAT_RMR_CONTEXT context = bind_rmr(pair.server, new_rmr(pair.server->pz));
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT + 8192, .length = 64, .cookie = 3}));
    CHECK_OK(send_invalidating(pair.client, DAT_TRUE, context));
    DAT_EVENT event = EXPECT_EVENT(pair.server, RECV, DAT_DTO_COMPLETION_EVENT);
    const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;
    CHECK_EQ(data->user_cookie.as_64, 3);
    CHECK(data->status != DAT_DTO_SUCCESS);
    if (on_loopback()) CHECK_EQ(data->status, DAT_DTO_ERR_LOCAL_PROTECTION);
}

TEST(send_with_invalidate__arguments) {
    const Pair pair = connected();
    DAT_LMR_TRIPLET list[IOV_SEGMENTS + 1];
    DAT_EP_HANDLE ep = pair.client->ep;
    const DAT_DTO_COOKIE cookie = {.as_64 = 1};
    for (int i = 0; i <= IOV_SEGMENTS; ++i) list[i] = piece(pair.client, SEND_AT, 8);
    CHECK_SUB(
        dat_ep_post_send_with_invalidate(ep, IOV_SEGMENTS + 1, list, cookie, DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 0),
        DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_ep_post_send_with_invalidate(ep, -1, list, cookie, DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 0),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_ep_post_send_with_invalidate(ep, 1, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 0),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_SUB(dat_ep_post_send_with_invalidate(ep, 1, list, cookie, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_FALSE, 0),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    CHECK_SUB(dat_ep_post_send_with_invalidate(ep, 1, list, cookie, (DAT_COMPLETION_FLAGS)0x4000, DAT_FALSE, 0),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    tell(pair.client, pair.server);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
}

/* Nobody receives what is sent. */
TEST(send_with_invalidate__a_full_queue) {
    const Pair pair = connected_with((Options){.request_dtos = 4});
    int posted = 0;
    DAT_RETURN rc = DAT_SUCCESS;
    for (; rc == DAT_SUCCESS && posted < 4000; posted += rc == DAT_SUCCESS)
        rc = send_invalidating(pair.client, DAT_TRUE, 0);
    CHECK_RC(rc, DAT_INSUFFICIENT_RESOURCES);
    CHECK(on_loopback() ? posted == 4 : posted >= 4); /* devices round up */
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
    pair_close(&pair);
}

static void check_send_in(DAT_EP_STATE state) {
    const Pair pair = connected();
    const Scene scene = scene_in(state);
    DAT_LMR_TRIPLET local = piece(pair.client, SEND_AT, 8);
    CHECK_SUB(dat_ep_post_send_with_invalidate(scene.ep, 1, &local, (DAT_DTO_COOKIE){.as_64 = 1},
                                               DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 0),
              DAT_INVALID_STATE, subtype_of(state));
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(send_with_invalidate__unconnected) { check_send_in(DAT_EP_STATE_UNCONNECTED); }
TEST(send_with_invalidate__reserved) { check_send_in(DAT_EP_STATE_RESERVED); }
TEST(send_with_invalidate__passive_connection_pending) { check_send_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(send_with_invalidate__tentative_connection_pending) { check_send_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(send_with_invalidate__active_connection_pending) { check_send_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(send_with_invalidate__disconnect_pending) { check_send_in(DAT_EP_STATE_DISCONNECT_PENDING); }

TEST(send_with_invalidate__to_a_disconnected_endpoint) {
    const Pair pair = connected();
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(send_invalidating(pair.client, DAT_TRUE, 0x1234));
    EXPECT_DTO(pair.client, REQUEST, 2, DAT_DTO_ERR_FLUSHED);
}

TEST(send_with_invalidate__another_kind_of_object) {
    const Pair pair = connected();
    CHECK_SUB(dat_ep_post_send_with_invalidate(pair.client->pz, 0, NULL, (DAT_DTO_COOKIE){.as_64 = 1},
                                               DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 0),
              DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

TEST(send_with_invalidate__no_object__invalid_handle) {
    NEED(dat_ep_post_send_with_invalidate);
    CHECK_BAD_HANDLES(dat_ep_post_send_with_invalidate(bad, 0, NULL, (DAT_DTO_COOKIE){.as_64 = 1},
                                                       DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 0));
}

/* ---- dat_ep_post_rdma_read_to_rmr -------------------------------------------------------------------------------- */

static DAT_RETURN read_to(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local, const DAT_RMR_TRIPLET *remote,
                          DAT_COMPLETION_FLAGS flags) {
    return dat_ep_post_rdma_read_to_rmr(ep, local, (DAT_DTO_COOKIE){.as_64 = 4}, remote, flags);
}

static DAT_RMR_TRIPLET own_window(Side *side) {
    return (DAT_RMR_TRIPLET){(DAT_VADDR)(uintptr_t)side->memory + RECV_AT, LENGTH, bind_window(side)};
}

/* Only what is connected can be asked whether the provider has the call. */
static Pair reading(DAT_RMR_TRIPLET *local, DAT_RMR_TRIPLET *remote) {
    NEED(dat_ep_post_rdma_read_to_rmr);
    const Pair pair = connected_pair_here((Options){0});
    *local = own_window(pair.client);
    *remote = target_piece(pair.client, SEND_AT, LENGTH);
    fill(pair.server, SEND_AT, LENGTH, 5);
    DAT_RETURN rc = read_to(pair.client->ep, local, remote, DAT_COMPLETION_DEFAULT_FLAG);
    if (!on_loopback() && DAT_GET_TYPE(rc) == DAT_MODEL_NOT_SUPPORTED) skip("the provider does not read into RMRs");
    CHECK_OK(rc);
    return pair;
}

TEST(rdma_read_to_rmr__reads) {
    DAT_RMR_TRIPLET local, remote;
    const Pair pair = reading(&local, &remote);
    DAT_DTO_COMPLETION_EVENT_DATA done = EXPECT_DONE(pair.client, 4);
    CHECK_EQ(done.operation, DAT_DTO_RDMA_READ);
    CHECK_EQ(done.transfered_length, LENGTH);
    CHECK(filled(pair.client, RECV_AT, LENGTH, 5));
}

TEST(rdma_read_to_rmr__arguments) {
    DAT_RMR_TRIPLET local, remote;
    const Pair pair = reading(&local, &remote);
    DAT_EP_HANDLE ep = pair.client->ep;
    EXPECT_DONE(pair.client, 4);
    CHECK_SUB(read_to(ep, NULL, &remote, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(read_to(ep, &local, NULL, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    CHECK_SUB(read_to(ep, &local, &remote, DAT_COMPLETION_UNSIGNALLED_FLAG), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    CHECK_SUB(read_to(ep, &local, &remote, (DAT_COMPLETION_FLAGS)0x4000), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    CHECK_SUB(read_to(pair.client->pz, &local, &remote, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EP);
    local.segment_length = 8;
    CHECK_RC(read_to(ep, &local, &remote, DAT_COMPLETION_DEFAULT_FLAG), DAT_LENGTH_ERROR);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
}

TEST(rdma_read_to_rmr__no_such_rmr) {
    DAT_RMR_TRIPLET local, remote;
    const Pair pair = reading(&local, &remote);
    EXPECT_DONE(pair.client, 4);
    local.rmr_context ^= 0x5a5a00;
    DAT_RETURN rc = read_to(pair.client->ep, &local, &remote, DAT_COMPLETION_DEFAULT_FLAG);
    if (on_loopback()) CHECK_OK(rc);
    if (rc == DAT_SUCCESS) {
        EXPECT_DTO(pair.client, REQUEST, 4, DAT_DTO_ERR_LOCAL_PROTECTION);
    } else {
        CHECK(DAT_GET_TYPE(rc) == DAT_INVALID_PARAMETER || DAT_GET_TYPE(rc) == DAT_PRIVILEGES_VIOLATION ||
              DAT_GET_TYPE(rc) == DAT_PROTECTION_VIOLATION);
    }
}

TEST(rdma_read_to_rmr__invalidated_by_the_peer) {
    DAT_RMR_TRIPLET local, remote;
    NEED(dat_ep_post_send_with_invalidate);
    const Pair pair = reading(&local, &remote);
    EXPECT_DONE(pair.client, 4);
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = SEND_AT, .length = 64, .cookie = 3}));
    DAT_RETURN rc = send_invalidating(pair.server, DAT_TRUE, local.rmr_context);
    if (!on_loopback() && DAT_GET_TYPE(rc) == DAT_MODEL_NOT_SUPPORTED) skip("the provider has no send with invalidate");
    CHECK_OK(rc);
    EXPECT_RECEIVED(pair.client, 3);
    CHECK_OK(read_to(pair.client->ep, &local, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DTO(pair.client, REQUEST, 4, DAT_DTO_ERR_LOCAL_PROTECTION);
}

/* A bind that is flushed does not end the binding, and begins none. */
TEST(rdma_read_to_rmr__when_a_later_bind_was_flushed) {
    DAT_RMR_TRIPLET local, remote;
    const Pair pair = reading(&local, &remote);
    Side *side = pair.client;
    EXPECT_DONE(side, 4);
    DAT_RMR_HANDLE rmr = new_rmr(side->pz);
    local.rmr_context = bind_rmr(side, rmr);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    const DAT_RMR_TRIPLET flushed = {local.virtual_address, LENGTH, bind_rmr(side, rmr)};
    CHECK_OK(dat_ep_reset(pair.client->ep));
    CHECK_OK(dat_ep_reset(pair.server->ep));
    pair_connect(&pair);
    fill(pair.server, SEND_AT, LENGTH, 6);
    CHECK_OK(read_to(side->ep, &local, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DONE(side, 4);
    CHECK(filled(side, RECV_AT, LENGTH, 6));
    if (flushed.rmr_context == local.rmr_context) return; /* that of the next bind, on devices, until one is executed */
    CHECK_OK(read_to(side->ep, &flushed, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DTO(side, REQUEST, 4, DAT_DTO_ERR_LOCAL_PROTECTION);
}

TEST(rdma_read_to_rmr__to_a_disconnected_endpoint) {
    DAT_RMR_TRIPLET local, remote;
    const Pair pair = reading(&local, &remote);
    EXPECT_DONE(pair.client, 4);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(read_to(pair.client->ep, &local, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DTO(pair.client, REQUEST, 4, DAT_DTO_ERR_FLUSHED);
}

static void check_read_in(DAT_EP_STATE state) {
    DAT_RMR_TRIPLET local, remote;
    reading(&local, &remote);
    const Scene scene = scene_in(state);
    CHECK_SUB(read_to(scene.ep, &local, &remote, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE, subtype_of(state));
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(rdma_read_to_rmr__unconnected) { check_read_in(DAT_EP_STATE_UNCONNECTED); }
TEST(rdma_read_to_rmr__reserved) { check_read_in(DAT_EP_STATE_RESERVED); }
TEST(rdma_read_to_rmr__passive_connection_pending) { check_read_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(rdma_read_to_rmr__tentative_connection_pending) { check_read_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(rdma_read_to_rmr__active_connection_pending) { check_read_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(rdma_read_to_rmr__disconnect_pending) { check_read_in(DAT_EP_STATE_DISCONNECT_PENDING); }

TEST(rdma_read_to_rmr__no_object__invalid_handle) {
    NEED(dat_ep_post_rdma_read_to_rmr);
    DAT_RMR_TRIPLET triplet = {0, 0, 0};
    CHECK_BAD_HANDLES(read_to(bad, &triplet, &triplet, DAT_COMPLETION_DEFAULT_FLAG));
}
