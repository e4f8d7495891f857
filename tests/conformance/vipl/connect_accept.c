/* SPDX-License-Identifier: BSD-3-Clause
 * VipConnectAccept and VipConnectReject: guide, sections 3.3.2, 3.3.3 and 6.7.
 */
#include "endpoint.h"

/* The server has found the request of the client, whose call is under way as task. */
static void found_request(const Pair *pair, Task *task, Request *request, VIP_ULONG client_timeout_ms) {
    Listening waiting = listening(pair->server, LONG_MS);
    *request = request_to(pair->client, pair->server, client_timeout_ms);
    begin(task, pair->client, do_request, request, sizeof *request);
    CHECK_RC(wait_request(pair->server, &waiting), VIP_SUCCESS);
}

static void expect_client(Task *task, const Request *request, VIP_RETURN expected) {
    finish(task);
    CHECK_RC(request->rc, expected);
}

/* ---- VipConnectAccept -------------------------------------------------------------------------------------------- */

TEST(accept_connects_both_ends) {
    Pair pair = open_pair((Options){0});
    Task task;
    Request request;
    found_request(&pair, &task, &request, LONG_MS);
    CHECK_RC(accept_request(pair.server), VIP_SUCCESS);
    expect_client(&task, &request, VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
    CHECK_EQ(state_of(pair.server), VIP_STATE_CONNECTED);
}

static void retry_on_another_vi(Endpoint *end, void *argument) {
    VIP_VI_ATTRIBUTES attribs = *(VIP_VI_ATTRIBUTES *)argument;
    attribs.Ptag = end->ptag;
    CHECK_RC(VipCreateVi(end->nic, &attribs, NULL, NULL, &end->vi), VIP_SUCCESS);
    CHECK_RC(VipConnectAccept(end->conn, end->vi), VIP_SUCCESS);
}

/* A conflict is told to the acceptor alone, who then takes another VI. */
static void conflict_then_success(Options client, Options server, VIP_RETURN conflict) {
    Pair pair = open_pair_of(client, server);
    Task task;
    Request request;
    found_request(&pair, &task, &request, LONG_MS);
    CHECK_RC(accept_request(pair.server), conflict);
    CHECK_EQ(state_of(pair.server), VIP_STATE_IDLE);
    CHECK_RC(accept_request(pair.server), conflict);
    VIP_VI_ATTRIBUTES attribs = pair.client->attribs;
    at(pair.server, retry_on_another_vi, &attribs, sizeof attribs);
    expect_client(&task, &request, VIP_SUCCESS);
    CHECK_EQ(state_of(pair.server), VIP_STATE_CONNECTED);
}

TEST(accept_with_another_reliability_level_conflicts) {
    conflict_then_success((Options){.level = VIP_SERVICE_RELIABLE_DELIVERY},
                          (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION}, VIP_INVALID_RELIABILITY_LEVEL);
}

TEST(accept_with_a_larger_transfer_size_conflicts) {
    conflict_then_success((Options){.max_transfer = 4096}, (Options){.max_transfer = 8192}, VIP_INVALID_MTU);
}

TEST(accept_with_a_smaller_transfer_size_conflicts) {
    conflict_then_success((Options){.max_transfer = 8192}, (Options){.max_transfer = 4096}, VIP_INVALID_MTU);
}

/* Protection tags and the RDMA bits need not be the same. */
TEST(accept_compares_nothing_else) {
    Pair pair = open_pair_of((Options){.no_rdma = VIP_TRUE}, (Options){0});
    pair_connect(&pair);
}

/* The acceptor may also change the attributes of its VI. */
static void adopt_attributes(Endpoint *end, void *argument) {
    VIP_VI_ATTRIBUTES attribs = *(VIP_VI_ATTRIBUTES *)argument;
    attribs.Ptag = end->ptag;
    CHECK_RC(VipSetViAttributes(end->vi, &attribs), VIP_SUCCESS);
}

TEST(accept_after_changing_the_attributes) {
    Pair pair = open_pair_of((Options){.max_transfer = 4096}, (Options){.max_transfer = 8192});
    Task task;
    Request request;
    found_request(&pair, &task, &request, LONG_MS);
    CHECK_RC(accept_request(pair.server), VIP_INVALID_MTU);
    VIP_VI_ATTRIBUTES attribs = pair.client->attribs;
    at(pair.server, adopt_attributes, &attribs, sizeof attribs);
    CHECK_RC(accept_request(pair.server), VIP_SUCCESS);
    expect_client(&task, &request, VIP_SUCCESS);
}

TEST(a_conflict_that_is_not_mended_times_out_at_the_client) {
    Pair pair = open_pair_of((Options){.max_transfer = 4096}, (Options){.max_transfer = 8192});
    Task task;
    Request request;
    VIP_UINT64 began = steady_ns();
    found_request(&pair, &task, &request, MEDIUM_MS);
    VIP_RETURN rc = accept_request(pair.server);
    CHECK(rc == VIP_INVALID_MTU || rc == VIP_TIMEOUT); /* the client's time is short */
    expect_client(&task, &request, VIP_TIMEOUT);
    check_time(__FILE__, __LINE__, began, MEDIUM_MS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
}

TEST(accept_after_the_client_gave_up_times_out) {
    Pair pair = open_pair((Options){0});
    Task task;
    Request request;
    VIP_UINT64 began = steady_ns();
    found_request(&pair, &task, &request, MEDIUM_MS);
    expect_client(&task, &request, VIP_TIMEOUT);
    check_time(__FILE__, __LINE__, began, MEDIUM_MS);
    CHECK_AT_ONCE(accept_request(pair.server), VIP_TIMEOUT);
    CHECK_EQ(state_of(pair.server), VIP_STATE_IDLE);
    CHECK_RC(accept_request(pair.server), VIP_INVALID_PARAMETER); /* the handle is used up */
    pair_connect(&pair);
}

TEST(accept_after_the_client_died_times_out) {
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(peer), new_endpoint(NULL)};
    endpoint_open(pair.client, (Options){0});
    endpoint_open(pair.server, (Options){0});
    Task task;
    Request request;
    found_request(&pair, &task, &request, LONG_MS);
    peer_kill(peer);
    abandon(&task);
    CHECK_AT_ONCE(accept_request(pair.server), VIP_TIMEOUT); /* although the client's time is not up */
    CHECK_EQ(state_of(pair.server), VIP_STATE_IDLE);
}

static void accept_on_a_new_vi(Endpoint *end, void *unused) {
    (void)unused;
    CHECK_RC(VipCreateVi(end->nic, &end->attribs, NULL, NULL, &end->vi), VIP_SUCCESS);
    CHECK_RC(VipConnectAccept(end->conn, end->vi), VIP_SUCCESS);
}

/* The server's VI is not Idle: it stays as it is, and another VI accepts the same request. */
static void accept_in_the_wrong_state(Endpoint *server) {
    const VIP_VI_STATE state = state_of(server);
    Pair pair = {new_endpoint(NULL), server};
    endpoint_open(pair.client, (Options){0});
    Task task;
    Request request;
    found_request(&pair, &task, &request, LONG_MS);
    CHECK_RC(accept_request(server), VIP_INVALID_STATE);
    CHECK_EQ(state_of(server), state);
    at(server, accept_on_a_new_vi, NULL, 0);
    expect_client(&task, &request, VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
    CHECK_EQ(state_of(server), VIP_STATE_CONNECTED);
}

TEST(accept_on_a_connected_vi) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    accept_in_the_wrong_state(pair.server);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
}

TEST(accept_on_a_pending_vi) {
    Pair pair = open_pair((Options){0});
    Request search = request_to(pair.server, pair.client, VIP_INFINITE);
    search.remote = net_address(pair.client, "nobody", 6);
    CHECK_RC(peer_request(pair.server, &search), VIP_SUCCESS);
    CHECK_EQ(state_of(pair.server), VIP_STATE_CONNECT_PENDING);
    accept_in_the_wrong_state(pair.server);
}

TEST(accept_on_a_vi_in_error) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    await_error(pair.server, VIP_ERROR_CONN_LOST);
    CHECK_EQ(state_of(pair.server), VIP_STATE_ERROR);
    accept_in_the_wrong_state(pair.server);
}

static void accept_invalid(Endpoint *end, void *unused) {
    (void)unused;
    int forged;
    CHECK_RC(VipConnectAccept(NULL, end->vi), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectAccept(&forged, end->vi), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectAccept(end->conn, NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectAccept(end->conn, end->nic), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectAccept(end->conn, &forged), VIP_INVALID_PARAMETER);
}

TEST(accept_with_invalid_arguments_is_refused) {
    Pair pair = open_pair((Options){0});
    Task task;
    Request request;
    found_request(&pair, &task, &request, LONG_MS);
    at(pair.server, accept_invalid, NULL, 0);
    CHECK_RC(accept_request(pair.server), VIP_SUCCESS); /* the handle is still good */
    expect_client(&task, &request, VIP_SUCCESS);
}

TEST(a_handle_accepts_once) {
    Pair pair = open_pair((Options){0});
    Task task;
    Request request;
    found_request(&pair, &task, &request, LONG_MS);
    CHECK_RC(accept_request(pair.server), VIP_SUCCESS);
    expect_client(&task, &request, VIP_SUCCESS);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    CHECK_RC(accept_request(pair.server), VIP_INVALID_PARAMETER);
    CHECK_RC(reject_request(pair.server), VIP_INVALID_PARAMETER);
}

/* ---- VipConnectReject -------------------------------------------------------------------------------------------- */

TEST(reject_is_told_to_the_client) {
    Pair pair = open_pair((Options){0});
    Task task;
    Request request;
    post_simple_recv(pair.client, 0, 64);
    found_request(&pair, &task, &request, VIP_INFINITE);
    CHECK_RC(reject_request(pair.server), VIP_SUCCESS);
    expect_client(&task, &request, VIP_REJECT);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
    CHECK_RC(recv_done(pair.client).rc, VIP_NOT_DONE); /* what is posted stays posted */
    pair_connect(&pair);
}

TEST(reject_after_a_conflict) {
    Pair pair = open_pair_of((Options){.max_transfer = 4096}, (Options){.max_transfer = 8192});
    Task task;
    Request request;
    found_request(&pair, &task, &request, VIP_INFINITE);
    CHECK_RC(accept_request(pair.server), VIP_INVALID_MTU);
    CHECK_RC(reject_request(pair.server), VIP_SUCCESS);
    expect_client(&task, &request, VIP_REJECT);
}

TEST(reject_after_the_client_gave_up_succeeds) {
    Pair pair = open_pair((Options){0});
    Task task;
    Request request;
    found_request(&pair, &task, &request, MEDIUM_MS);
    expect_client(&task, &request, VIP_TIMEOUT);
    CHECK_RC(reject_request(pair.server), VIP_SUCCESS);
}

TEST(reject_after_the_client_died_succeeds) {
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(peer), new_endpoint(NULL)};
    endpoint_open(pair.client, (Options){0});
    endpoint_open(pair.server, (Options){0});
    Task task;
    Request request;
    found_request(&pair, &task, &request, LONG_MS);
    peer_kill(peer);
    abandon(&task);
    CHECK_AT_ONCE(reject_request(pair.server), VIP_SUCCESS);
    CHECK_RC(reject_request(pair.server), VIP_INVALID_PARAMETER); /* the handle is used up */
}

TEST(reject_of_an_invalid_handle_is_refused) {
    Pair pair = open_pair((Options){0});
    Task task;
    Request request;
    int forged;
    found_request(&pair, &task, &request, LONG_MS);
    CHECK_RC(VipConnectReject(NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectReject(&forged), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectReject(pair.client->vi), VIP_INVALID_PARAMETER);
    CHECK_RC(reject_request(pair.server), VIP_SUCCESS);
    CHECK_RC(reject_request(pair.server), VIP_INVALID_PARAMETER); /* used up */
    CHECK_RC(accept_request(pair.server), VIP_INVALID_PARAMETER);
    expect_client(&task, &request, VIP_REJECT);
}
