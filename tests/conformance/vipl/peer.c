/* SPDX-License-Identifier: BSD-3-Clause
 * VipConnectPeerRequest, VipConnectPeerDone, VipConnectPeerWait: guide, sections 3.3.6 to 3.3.8 and 6.7.
 */
#include "endpoint.h"

static Endpoint *opened_with(Options options) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, options);
    return end;
}

static Endpoint *opened(void) { return opened_with((Options){0}); }

static void post_request(Endpoint *from, const Endpoint *to, VIP_ULONG timeout_ms) {
    Request request = request_to(from, to, timeout_ms);
    CHECK_RC(peer_request(from, &request), VIP_SUCCESS);
}

static VIP_RETURN result_of(Endpoint *end) {
    Request result;
    memset(&result, 0, sizeof result);
    return peer_wait(end, &result);
}

static void expect_exchange(const Pair *pair) {
    fill(pair->client, SEND_AT(0), 200, 3);
    post_simple_recv(pair->server, 0, 200);
    post_simple_send(pair->client, 0, 200);
    EXPECT_SEND(pair->client, 0, SENT);
    EXPECT_RECV(pair->server, 0, RECEIVED);
    CHECK(filled(pair->server, RECV_AT(0), 200, 3));
}

/* A search of SHORT_MS that began then has found nobody. */
static void expect_nobody(Endpoint *end, VIP_UINT64 began) {
    CHECK_RC(result_of(end), VIP_TIMEOUT);
    check_time(__FILE__, __LINE__, began, SHORT_MS);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static void connect_peers(Pair pair, Endpoint *first, Endpoint *second) {
    post_request(first, second, LONG_MS);
    post_request(second, first, LONG_MS);
    CHECK_RC(result_of(first), VIP_SUCCESS);
    CHECK_RC(result_of(second), VIP_SUCCESS);
    CHECK_EQ(state_of(first), VIP_STATE_CONNECTED);
    CHECK_EQ(state_of(second), VIP_STATE_CONNECTED);
    expect_exchange(&pair);
}

TEST(this_side_first) {
    Pair pair = open_pair((Options){0});
    connect_peers(pair, pair.client, pair.server);
}

TEST(other_side_first) {
    Pair pair = open_pair((Options){0});
    connect_peers(pair, pair.server, pair.client);
}

TEST(within_one_process) {
    Pair pair = open_local_pair((Options){0});
    connect_peers(pair, pair.client, pair.server);
}

TEST(between_different_nics) {
    need_two_nics();
    Pair pair = open_pair_of((Options){.device = "VINIC0"}, (Options){.device = "VINIC1"});
    connect_peers(pair, pair.client, pair.server);
}

TEST(at_unreliable_delivery) {
    Pair pair = open_pair((Options){.level = VIP_SERVICE_UNRELIABLE});
    connect_peers(pair, pair.client, pair.server);
}

TEST(at_reliable_reception) {
    Pair pair = open_pair((Options){.level = VIP_SERVICE_RELIABLE_RECEPTION});
    connect_peers(pair, pair.client, pair.server);
}

static void do_request_and_wait(Endpoint *end, void *argument) {
    Request *request = argument;
    if (peer_request(end, request) == VIP_SUCCESS) peer_wait(end, request);
}

/* Both start at the same moment, many times over. */
TEST(both_at_once) {
    Pair pair = open_pair((Options){0});
    for (int round = 0; round < 100; ++round) {
        Task task;
        Request mine = request_to(pair.client, pair.server, LONG_MS);
        Request theirs = request_to(pair.server, pair.client, LONG_MS);
        mine.remote = net_address(pair.server, &round, sizeof round);
        theirs.remote = net_address(pair.client, &round, sizeof round);
        begin(&task, pair.server, do_request_and_wait, &theirs, sizeof theirs);
        do_request_and_wait(pair.client, &mine);
        finish(&task);
        CHECK_RC(mine.rc, VIP_SUCCESS);
        CHECK_RC(theirs.rc, VIP_SUCCESS);
        CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
        await_error(pair.server, VIP_ERROR_CONN_LOST);
        CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    }
}

TEST(wait_blocks_until_the_peer_comes) {
    Pair pair = open_pair((Options){0});
    Task task;
    Request mine = request_to(pair.client, pair.server, VIP_INFINITE);
    begin(&task, pair.client, do_request_and_wait, &mine, sizeof mine);
    post_request(pair.server, pair.client, VIP_INFINITE);
    CHECK_RC(result_of(pair.server), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(mine.rc, VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
    CHECK_EQ(state_of(pair.server), VIP_STATE_CONNECTED);
}

TEST(two_connections_over_one_discriminator) {
    need_two_nics();
    Peer *peer = peer_start();
    Endpoint *here[2] = {new_endpoint(NULL), new_endpoint(NULL)}, *there[2] = {new_endpoint(peer), new_endpoint(peer)};
    for (int i = 0; i < 2; ++i) {
        endpoint_open(here[i], (Options){0});
        endpoint_open(there[i], (Options){.device = "VINIC1"});
    }
    for (int i = 0; i < 2; ++i) post_request(here[i], there[i], LONG_MS);
    for (int i = 0; i < 2; ++i) post_request(there[i], here[i], LONG_MS);
    for (int i = 0; i < 2; ++i) CHECK_RC(result_of(here[i]), VIP_SUCCESS);
    for (int i = 0; i < 2; ++i) CHECK_RC(result_of(there[i]), VIP_SUCCESS);
}

TEST(remote_attributes_are_those_of_the_peer) {
    Pair pair = open_pair_of((Options){.max_transfer = 4096, .no_rdma = VIP_TRUE}, (Options){.max_transfer = 4096});
    Request mine = request_to(pair.client, pair.server, LONG_MS),
            theirs = request_to(pair.server, pair.client, LONG_MS);
    CHECK_RC(peer_request(pair.client, &mine), VIP_SUCCESS);
    CHECK_RC(peer_request(pair.server, &theirs), VIP_SUCCESS);
    CHECK_RC(peer_wait(pair.client, &mine), VIP_SUCCESS);
    CHECK_RC(peer_wait(pair.server, &theirs), VIP_SUCCESS);
    CHECK_EQ(mine.remote_attribs.MaxTransferSize, 4096);
    CHECK_EQ(mine.remote_attribs.ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK(mine.remote_attribs.EnableRdmaWrite && mine.remote_attribs.EnableRdmaRead);
    CHECK(!theirs.remote_attribs.EnableRdmaWrite && !theirs.remote_attribs.EnableRdmaRead);
}

/* ---- What does not match ----------------------------------------------------------------------------------------- */

TEST(other_discriminators_do_not_match) {
    Pair pair = open_pair((Options){0});
    Request mine = request_to(pair.client, pair.server, SHORT_MS),
            theirs = request_to(pair.server, pair.client, SHORT_MS);
    mine.remote = net_address(pair.server, "one", 3);
    theirs.remote = net_address(pair.client, "two", 3);
    VIP_UINT64 began = steady_ns();
    CHECK_RC(peer_request(pair.client, &mine), VIP_SUCCESS);
    CHECK_RC(peer_request(pair.server, &theirs), VIP_SUCCESS);
    expect_nobody(pair.client, began);
    expect_nobody(pair.server, began);
}

/* The host must match, too: the client looks for somebody on VINIC0, while the server is on VINIC1. */
TEST(other_hosts_do_not_match) {
    need_two_nics();
    Pair pair = open_pair_of((Options){0}, (Options){.device = "VINIC1"});
    VIP_UINT64 began = steady_ns();
    post_request(pair.client, pair.client, SHORT_MS);
    post_request(pair.server, pair.client, SHORT_MS);
    expect_nobody(pair.client, began);
    expect_nobody(pair.server, began);
}

TEST(the_local_discriminator_is_not_compared) {
    Pair pair = open_pair((Options){0});
    Request mine = request_to(pair.client, pair.server, LONG_MS),
            theirs = request_to(pair.server, pair.client, LONG_MS);
    mine.local = net_address(pair.client, "left", 4);
    theirs.local = net_address(pair.server, "right", 5);
    CHECK_RC(peer_request(pair.client, &mine), VIP_SUCCESS);
    CHECK_RC(peer_request(pair.server, &theirs), VIP_SUCCESS);
    CHECK_RC(result_of(pair.client), VIP_SUCCESS);
    CHECK_RC(result_of(pair.server), VIP_SUCCESS);
}

TEST(a_request_does_not_match_itself) {
    Endpoint *end = opened();
    VIP_UINT64 began = steady_ns();
    post_request(end, end, SHORT_MS);
    expect_nobody(end, began);
}

TEST(a_client_does_not_match_a_peer) {
    Pair pair = open_pair((Options){0});
    post_request(pair.server, pair.client, LONG_MS);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    request.retry = VIP_FALSE;
    CHECK_AT_ONCE(request_connection(pair.client, &request), VIP_NO_MATCH);
    CHECK_EQ(state_of(pair.server), VIP_STATE_CONNECT_PENDING);
}

TEST(a_peer_does_not_match_a_server) {
    Pair pair = open_pair((Options){0});
    Task task;
    Listening waiting = listening(pair.server, 4 * SHORT_MS);
    begin(&task, pair.server, do_wait, &waiting, sizeof waiting);
    VIP_UINT64 began = steady_ns();
    post_request(pair.client, pair.server, SHORT_MS);
    expect_nobody(pair.client, began);
    finish(&task);
    CHECK_RC(waiting.rc, VIP_TIMEOUT);
}

TEST(a_disconnected_request_matches_no_more) {
    Pair pair = open_pair((Options){0});
    post_request(pair.server, pair.client, VIP_INFINITE);
    CHECK_EQ(state_of(pair.server), VIP_STATE_CONNECT_PENDING);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    CHECK_EQ(state_of(pair.server), VIP_STATE_IDLE);
    VIP_UINT64 began = steady_ns();
    post_request(pair.client, pair.server, SHORT_MS);
    expect_nobody(pair.client, began);
}

TEST(a_request_that_timed_out_matches_no_more) {
    Pair pair = open_pair((Options){0});
    VIP_UINT64 began = steady_ns();
    post_request(pair.server, pair.client, SHORT_MS);
    expect_nobody(pair.server, began);
    began = steady_ns();
    post_request(pair.client, pair.server, SHORT_MS);
    expect_nobody(pair.client, began);
}

TEST(a_request_of_a_dead_process_matches_no_more) {
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(peer)};
    endpoint_open(pair.client, (Options){0});
    endpoint_open(pair.server, (Options){0});
    post_request(pair.server, pair.client, VIP_INFINITE);
    peer_kill(peer);
    VIP_UINT64 began = steady_ns();
    post_request(pair.client, pair.server, SHORT_MS);
    expect_nobody(pair.client, began);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static VIP_RETURN done_of(Endpoint *end) {
    Request result;
    memset(&result, 0, sizeof result);
    return peer_done(end, &result);
}

TEST(done_tells_not_done_and_then_the_result) {
    Pair pair = open_pair((Options){0});
    post_request(pair.client, pair.server, LONG_MS);
    CHECK_RC(done_of(pair.client), VIP_NOT_DONE);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECT_PENDING);
    post_request(pair.server, pair.client, LONG_MS);
    CHECK_RC(result_of(pair.server), VIP_SUCCESS);
    VIP_RETURN rc;
    do rc = done_of(pair.client);
    while (rc == VIP_NOT_DONE);
    CHECK_RC(rc, VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
}

TEST(an_error_of_the_vi_ends_a_request) {
    VIP_RETURN (*const results[])(Endpoint *) = {done_of, result_of};
    for (int i = 0; i < 2; ++i) {
        Endpoint *end = opened();
        post_request(end, end, VIP_INFINITE);
        VIP_DESCRIPTOR *misaligned = (VIP_DESCRIPTOR *)(void *)((char *)recv_descriptor(end, 0) + 8);
        CHECK_RC(VipPostRecv(end->vi, misaligned, end->handle), VIP_SUCCESS);
        CHECK_RC(results[i](end), VIP_INVALID_STATE);
        CHECK_EQ(state_of(end), VIP_STATE_ERROR);
        await_error(end, VIP_ERROR_POST_DESC);
    }
}

TEST(done_tells_a_timeout) {
    Endpoint *end = opened();
    VIP_RETURN rc;
    VIP_UINT64 began = steady_ns();
    post_request(end, end, SHORT_MS);
    do rc = done_of(end);
    while (rc == VIP_NOT_DONE);
    CHECK_RC(rc, VIP_TIMEOUT);
    check_time(__FILE__, __LINE__, began, SHORT_MS);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
}

TEST(wait_tells_a_timeout) {
    Endpoint *end = opened();
    post_simple_recv(end, 0, 64);
    VIP_UINT64 began = steady_ns();
    post_request(end, end, MEDIUM_MS);
    CHECK_RC(result_of(end), VIP_TIMEOUT);
    check_time(__FILE__, __LINE__, began, MEDIUM_MS);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
    CHECK_RC(recv_done(end).rc, VIP_NOT_DONE); /* what is posted stays posted */
}

TEST(a_result_is_told_once) {
    Pair pair = open_pair((Options){0});
    post_request(pair.client, pair.server, LONG_MS);
    post_request(pair.server, pair.client, LONG_MS);
    CHECK_RC(result_of(pair.client), VIP_SUCCESS);
    CHECK_RC(result_of(pair.client), VIP_INVALID_STATE);
    CHECK_RC(done_of(pair.client), VIP_INVALID_STATE);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
}

TEST(done_and_wait_without_a_request) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(done_of(pair.client), VIP_INVALID_STATE); /* connected, the other way */
    CHECK_RC(result_of(pair.client), VIP_INVALID_STATE);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_RC(done_of(pair.client), VIP_INVALID_STATE); /* idle */
    CHECK_RC(result_of(pair.client), VIP_INVALID_STATE);
}

/* Both sides learn of a conflict. One asks with Done, the other one with Wait. */
static void conflict(Options client, Options server, VIP_RETURN expected) {
    Pair pair = open_pair_of(client, server);
    post_request(pair.client, pair.server, LONG_MS);
    post_request(pair.server, pair.client, LONG_MS);
    CHECK_RC(result_of(pair.server), expected);
    VIP_RETURN rc;
    do rc = done_of(pair.client);
    while (rc == VIP_NOT_DONE);
    CHECK_RC(rc, expected);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
    CHECK_EQ(state_of(pair.server), VIP_STATE_IDLE);
}

TEST(reliability_level_conflict) {
    conflict((Options){.level = VIP_SERVICE_RELIABLE_DELIVERY}, (Options){.level = VIP_SERVICE_UNRELIABLE},
             VIP_INVALID_RELIABILITY_LEVEL);
}

TEST(transfer_size_conflict) {
    conflict((Options){.max_transfer = 4096}, (Options){.max_transfer = 8192}, VIP_INVALID_MTU);
}

TEST(a_vi_can_try_again_after_a_conflict) {
    Pair pair = open_pair_of((Options){.max_transfer = 4096}, (Options){.max_transfer = 8192});
    post_request(pair.client, pair.server, LONG_MS);
    post_request(pair.server, pair.client, LONG_MS);
    CHECK_RC(result_of(pair.client), VIP_INVALID_MTU);
    CHECK_RC(result_of(pair.server), VIP_INVALID_MTU);
    VIP_VI_ATTRIBUTES attribs = pair.client->attribs;
    attribs.MaxTransferSize = 8192;
    CHECK_RC(VipSetViAttributes(pair.client->vi, &attribs), VIP_SUCCESS);
    connect_peers(pair, pair.client, pair.server);
}

/* A host that is not there: the provider sees it, and tells by the result. */
static void request_unknown_host(VIP_RETURN (*result)(Endpoint *), VIP_RELIABILITY_LEVEL level) {
    Endpoint *end = opened_with((Options){.level = level});
    Request request = request_to(end, end, LONG_MS);
    request.remote = unknown_host(end);
    post_simple_recv(end, 0, 64);
    CHECK_RC(peer_request(end, &request), VIP_SUCCESS);
    VIP_RETURN rc;
    do rc = result(end);
    while (rc == VIP_NOT_DONE);
    CHECK_RC(rc, VIP_NOT_REACHABLE);
    expect_unreachable_state(end, level);
}

static void request_unknown_host_at_each_level(VIP_RETURN (*result)(Endpoint *)) {
    request_unknown_host(result, VIP_SERVICE_UNRELIABLE);
    request_unknown_host(result, VIP_SERVICE_RELIABLE_DELIVERY);
    request_unknown_host(result, VIP_SERVICE_RELIABLE_RECEPTION);
}

TEST(wait_tells_of_an_unknown_host) { request_unknown_host_at_each_level(result_of); }
TEST(done_tells_of_an_unknown_host) { request_unknown_host_at_each_level(done_of); }

/* ---- Arguments and states ---------------------------------------------------------------------------------------- */

TEST(timeout_zero_is_invalid) {
    Endpoint *end = opened();
    Request request = request_to(end, end, 0);
    CHECK_RC(peer_request(end, &request), VIP_INVALID_PARAMETER);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
}

TEST(wrong_host_part_of_the_local_address_is_invalid) {
    Endpoint *end = opened();
    Request request = request_to(end, end, SHORT_MS);
    request.local.address.HostAddress[0] ^= 0xff;
    CHECK_RC(peer_request(end, &request), VIP_INVALID_PARAMETER);
}

TEST(wrong_lengths_are_invalid) {
    static const VIP_UINT8 zeros[1024];
    Endpoint *end = opened();
    const size_t too_long = (size_t)end->limits.MaxDiscriminatorLen + 1;
    Request request = request_to(end, end, SHORT_MS);
    request.local.address.HostAddressLen++;
    CHECK_RC(peer_request(end, &request), VIP_INVALID_PARAMETER);
    request = request_to(end, end, SHORT_MS);
    request.remote.address.HostAddressLen--;
    CHECK_RC(peer_request(end, &request), VIP_INVALID_PARAMETER);
    request = request_to(end, end, SHORT_MS);
    request.local = net_address(end, zeros, too_long);
    CHECK_RC(peer_request(end, &request), VIP_INVALID_PARAMETER);
    request = request_to(end, end, SHORT_MS);
    request.remote = net_address(end, zeros, too_long);
    CHECK_RC(peer_request(end, &request), VIP_INVALID_PARAMETER);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
}

TEST(invalid_arguments_are_refused) {
    Endpoint *end = opened();
    Request r = request_to(end, end, SHORT_MS);
    CHECK_RC(VipConnectPeerRequest(NULL, &r.local.address, &r.remote.address, SHORT_MS), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectPeerRequest(end->nic, &r.local.address, &r.remote.address, SHORT_MS), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectPeerRequest(end->vi, NULL, &r.remote.address, SHORT_MS), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectPeerRequest(end->vi, &r.local.address, NULL, SHORT_MS), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectPeerDone(NULL, &r.remote_attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectPeerWait(NULL, &r.remote_attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectPeerDone(end, &r.remote_attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectPeerWait(end, &r.remote_attribs), VIP_INVALID_PARAMETER);
    post_request(end, end, LONG_MS);
    CHECK_RC(VipConnectPeerDone(end->vi, NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectPeerWait(end->vi, NULL), VIP_INVALID_PARAMETER);
}

TEST(a_vi_that_is_not_idle_is_in_the_wrong_state) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    CHECK_RC(peer_request(pair.client, &request), VIP_INVALID_STATE);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    CHECK_RC(peer_request(pair.client, &request), VIP_INVALID_STATE);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_RC(peer_request(pair.client, &request), VIP_SUCCESS);
    CHECK_RC(peer_request(pair.client, &request), VIP_INVALID_STATE);
}
