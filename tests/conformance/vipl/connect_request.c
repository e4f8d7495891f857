/* SPDX-License-Identifier: BSD-3-Clause
 * VipConnectRequest: guide, sections 3.3.4, 6.7 and 6.8.
 */
#include "endpoint.h"

#include <sched.h>
#include <stdlib.h>

static Endpoint *opened_with(Options options) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, options);
    return end;
}

static Endpoint *opened(void) { return opened_with((Options){0}); }

TEST(connects_two_processes) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    fill(pair.client, SEND_AT(0), 100, 1);
    post_simple_recv(pair.server, 0, 100);
    post_simple_send(pair.client, 0, 100);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 100);
    CHECK(filled(pair.server, RECV_AT(0), 100, 1));
}

TEST(connects_within_one_process) {
    Pair pair = open_local_pair((Options){0});
    pair_connect(&pair);
    fill(pair.client, SEND_AT(0), 100, 1);
    post_simple_recv(pair.server, 0, 100);
    post_simple_send(pair.client, 0, 100);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 100);
    CHECK(filled(pair.server, RECV_AT(0), 100, 1));
}

/* Nobody waits: the answer comes at once, so even a request without a time limit returns. */
TEST(no_match_comes_at_once) {
    Endpoint *end = opened();
    Request request = request_to(end, end, VIP_INFINITE);
    request.retry = VIP_FALSE;
    post_simple_recv(end, 0, 64);
    CHECK_AT_ONCE(request_connection(end, &request), VIP_NO_MATCH);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
    CHECK_RC(recv_done(end).rc, VIP_NOT_DONE); /* what is posted stays posted */
}

TEST(no_match_on_a_nic_that_nobody_opened) {
    need_two_nics();
    Endpoint *end = opened();
    VIP_NIC_HANDLE other;
    VIP_NIC_ATTRIBUTES attribs;
    Request request = request_to(end, end, VIP_INFINITE);
    request.retry = VIP_FALSE;
    CHECK_RC(VipOpenNic("VINIC1", &other), VIP_SUCCESS);
    CHECK_RC(VipQueryNic(other, &attribs), VIP_SUCCESS);
    memcpy(request.remote.bytes + offsetof(VIP_NET_ADDRESS, HostAddress), attribs.LocalNicAddress,
           attribs.NicAddressLen);
    CHECK_RC(VipCloseNic(other), VIP_SUCCESS);
    CHECK_AT_ONCE(request_connection(end, &request), VIP_NO_MATCH);
}

/* With VIADUCT_CONNECT_RETRY_MS, a request waits for a server: one that is not there yet, or serves somebody else. */
TEST(retried_until_the_server_waits) {
    CHECK(setenv("VIADUCT_CONNECT_RETRY_MS", "100000", 1) == 0);
    Pair pair = open_pair((Options){0});
    Task task;
    Listening elsewhere = listening(pair.server, SHORT_MS), waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, VIP_INFINITE);
    request.retry = VIP_FALSE;
    elsewhere.local = net_address(pair.server, "elsewhere", 9);
    begin(&task, pair.client, do_request, &request, sizeof request);
    CHECK_TIMES_OUT(wait_request(pair.server, &elsewhere), SHORT_MS);
    CHECK_RC(wait_request(pair.server, &waiting), VIP_SUCCESS);
    CHECK_RC(accept_request(pair.server), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(request.rc, VIP_SUCCESS);
}

TEST(no_match_when_the_time_for_retries_is_over) {
    CHECK(setenv("VIADUCT_CONNECT_RETRY_MS", "60", 1) == 0);
    Endpoint *end = opened();
    Request request = request_to(end, end, VIP_INFINITE);
    const VIP_UINT64 began = steady_ns();
    request.retry = VIP_FALSE;
    CHECK_RC(request_connection(end, &request), VIP_NO_MATCH);
    check_time(__FILE__, __LINE__, began, 60);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
}

TEST(the_timeout_ends_retries) {
    CHECK(setenv("VIADUCT_CONNECT_RETRY_MS", "100000", 1) == 0);
    Endpoint *end = opened();
    Request request = request_to(end, end, MEDIUM_MS);
    const VIP_UINT64 began = steady_ns();
    request.retry = VIP_FALSE;
    const VIP_RETURN rc = request_connection(end, &request);
    CHECK(rc == VIP_NO_MATCH || (is_hardware(end) && rc == VIP_TIMEOUT));
    check_time(__FILE__, __LINE__, began, MEDIUM_MS);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
}

TEST(no_match_after_the_server_died_waiting) {
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(peer)};
    endpoint_open(pair.client, (Options){0});
    endpoint_open(pair.server, (Options){0});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, VIP_INFINITE);
    begin(&task, pair.server, do_wait, &waiting, sizeof waiting);
    peer_kill(peer);
    abandon(&task);
    request.retry = VIP_FALSE;
    CHECK_AT_ONCE(request_connection(pair.client, &request), VIP_NO_MATCH);
}

TEST(rejection) {
    Pair pair = open_pair((Options){0});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, VIP_INFINITE);
    begin(&task, pair.client, do_request, &request, sizeof request);
    CHECK_RC(wait_request(pair.server, &waiting), VIP_SUCCESS);
    CHECK_RC(reject_request(pair.server), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(request.rc, VIP_REJECT);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
}

TEST(times_out_on_a_silent_server) {
    Pair pair = open_pair((Options){0});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, MEDIUM_MS);
    begin(&task, pair.server, do_wait, &waiting, sizeof waiting);
    post_simple_recv(pair.client, 0, 64);
    CHECK_TIMES_OUT(request_connection(pair.client, &request), MEDIUM_MS);
    finish(&task);
    CHECK_RC(waiting.rc, VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
    CHECK_RC(recv_done(pair.client).rc, VIP_NOT_DONE);
}

/* Its system closes what it leaves behind, which tells that nobody is there. */
TEST(no_match_when_the_server_died_before_answering) {
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(peer)};
    endpoint_open(pair.client, (Options){0});
    endpoint_open(pair.server, (Options){0});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, VIP_INFINITE);
    VIP_UINT64 began = steady_ns();
    begin(&task, pair.client, do_request, &request, sizeof request);
    CHECK_RC(wait_request(pair.server, &waiting), VIP_SUCCESS);
    __atomic_store_n(&request.retry, VIP_FALSE, __ATOMIC_RELEASE); /* the request has arrived */
    peer_kill(peer);
    finish(&task);
    CHECK_RC(request.rc, VIP_NO_MATCH);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
    check_time(__FILE__, __LINE__, began, 0);
}

/* A server that is stopped is not functional: guide, section 3.3.4. */
TEST(times_out_when_the_server_is_stopped) {
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(peer)};
    endpoint_open(pair.client, (Options){0});
    endpoint_open(pair.server, (Options){0});
    Task task;
    Listening waiting = listening(pair.server, VIP_INFINITE);
    Request request = request_to(pair.client, pair.server, SHORT_MS);
    request.retry = VIP_FALSE;
    VIP_UINT64 began;
    begin(&task, pair.server, do_wait_and_accept, &waiting, sizeof waiting);
    do {
        peer_continue(peer); /* perhaps it was stopped before it came to wait */
        sched_yield();
        peer_stop(peer);
        began = steady_ns();
    } while (request_connection(pair.client, &request) == VIP_NO_MATCH);
    CHECK_RC(request.rc, VIP_TIMEOUT);
    check_time(__FILE__, __LINE__, began, SHORT_MS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
    peer_kill(peer);
    abandon(&task);
}

TEST(timeout_zero_is_invalid) {
    Pair pair = open_pair((Options){0});
    Request request = request_to(pair.client, pair.server, 0);
    CHECK_RC(request_connection(pair.client, &request), VIP_INVALID_PARAMETER);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
}

TEST(wrong_host_part_of_the_local_address_is_invalid) {
    Endpoint *end = opened();
    Request request = request_to(end, end, SHORT_MS);
    request.local.address.HostAddress[0] ^= 0xff;
    CHECK_RC(request_connection(end, &request), VIP_INVALID_PARAMETER);
}

TEST(wrong_lengths_are_invalid) {
    static const VIP_UINT8 zeros[1024];
    Endpoint *end = opened();
    size_t too_long = (size_t)end->limits.MaxDiscriminatorLen + 1;
    Request request = request_to(end, end, SHORT_MS);
    request.local.address.HostAddressLen++;
    CHECK_RC(request_connection(end, &request), VIP_INVALID_PARAMETER);
    request = request_to(end, end, SHORT_MS);
    request.remote.address.HostAddressLen--;
    CHECK_RC(request_connection(end, &request), VIP_INVALID_PARAMETER);
    request = request_to(end, end, SHORT_MS);
    request.local = net_address(end, zeros, too_long);
    CHECK_RC(request_connection(end, &request), VIP_INVALID_PARAMETER);
    request = request_to(end, end, SHORT_MS);
    request.remote = net_address(end, zeros, too_long);
    CHECK_RC(request_connection(end, &request), VIP_INVALID_PARAMETER);
}

TEST(invalid_arguments_are_refused) {
    Endpoint *end = opened();
    Request r = request_to(end, end, SHORT_MS);
    VIP_NET_ADDRESS *local = &r.local.address, *remote = &r.remote.address;
    VIP_VI_ATTRIBUTES *attribs = &r.remote_attribs;
    CHECK_RC(VipConnectRequest(NULL, local, remote, SHORT_MS, attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectRequest(end->nic, local, remote, SHORT_MS, attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectRequest(end->vi, NULL, remote, SHORT_MS, attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectRequest(end->vi, local, NULL, SHORT_MS, attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectRequest(end->vi, local, remote, SHORT_MS, NULL), VIP_INVALID_PARAMETER);
}

TEST(a_connected_vi_is_in_the_wrong_state) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    CHECK_RC(request_connection(pair.client, &request), VIP_INVALID_STATE);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
}

TEST(a_pending_vi_is_in_the_wrong_state) {
    Endpoint *end = opened();
    Request request = request_to(end, end, LONG_MS);
    CHECK_RC(peer_request(end, &request), VIP_SUCCESS);
    CHECK_RC(request_connection(end, &request), VIP_INVALID_STATE);
    CHECK_EQ(state_of(end), VIP_STATE_CONNECT_PENDING);
}

TEST(a_vi_in_error_is_in_the_wrong_state) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    CHECK_RC(request_connection(pair.client, &request), VIP_INVALID_STATE);
    CHECK_EQ(state_of(pair.client), VIP_STATE_ERROR);
}

/* The provider sees that there is no such host; a reliable VI then enters the Error state. */
static void request_unknown_host(VIP_RELIABILITY_LEVEL level) {
    Endpoint *end = opened_with((Options){.level = level});
    Request request = request_to(end, end, VIP_INFINITE);
    request.remote = unknown_host(end);
    post_simple_recv(end, 0, 64);
    CHECK_RC(request_connection(end, &request), VIP_NOT_REACHABLE);
    expect_unreachable_state(end, level);
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
}

TEST(unknown_host_unreliable) { request_unknown_host(VIP_SERVICE_UNRELIABLE); }
TEST(unknown_host_reliable_delivery) { request_unknown_host(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(unknown_host_reliable_reception) { request_unknown_host(VIP_SERVICE_RELIABLE_RECEPTION); }

/* ---- Around the connection --------------------------------------------------------------------------------------- */

TEST(receives_posted_before_connecting_are_used) {
    Pair pair = open_pair((Options){0});
    for (int slot = 0; slot < 3; ++slot) post_simple_recv(pair.client, slot, 64);
    post_simple_recv(pair.server, 0, 64);
    pair_connect(&pair);
    for (int slot = 0; slot < 3; ++slot) post_simple_send(pair.server, slot, 8);
    post_simple_send(pair.client, 0, 8);
    for (int slot = 0; slot < 3; ++slot) EXPECT_RECV(pair.client, slot, RECEIVED);
    EXPECT_RECV(pair.server, 0, RECEIVED);
}

TEST(the_vi_is_pending_meanwhile) {
    Pair pair = open_pair((Options){0});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    begin(&task, pair.client, do_request, &request, sizeof request);
    CHECK_RC(wait_request(pair.server, &waiting), VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECT_PENDING);
    CHECK_RC(accept_request(pair.server), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(request.rc, VIP_SUCCESS);
}

TEST(the_same_vi_connects_again_and_again) {
    Pair pair = open_pair((Options){0});
    for (int round = 0; round < 20; ++round) {
        pair_connect(&pair);
        post_simple_recv(pair.server, 0, 64);
        post_simple_send(pair.client, 0, 64);
        EXPECT_SEND(pair.client, 0, SENT);
        EXPECT_RECV(pair.server, 0, RECEIVED);
        CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
        await_error(pair.server, VIP_ERROR_CONN_LOST);
        CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    }
}

TEST(connections_between_different_nics) {
    need_two_nics();
    Pair pair = open_pair_of((Options){.device = "VINIC1"}, (Options){.device = "VINIC0"});
    pair_connect(&pair);
    post_simple_recv(pair.client, 0, 64);
    post_simple_send(pair.server, 0, 64);
    EXPECT_RECV(pair.client, 0, RECEIVED);
}

/* Requests of several clients wait their turn only as long as somebody waits for them: all of them retry and arrive. */
TEST(several_clients_of_one_server) {
    enum { CLIENTS = 3 };
    Peer *peers[CLIENTS];
    Endpoint *clients[CLIENTS];
    Task tasks[CLIENTS];
    Request requests[CLIENTS];
    for (int i = 0; i < CLIENTS; ++i) peers[i] = peer_start();
    for (int i = 0; i < CLIENTS; ++i) clients[i] = new_endpoint(peers[i]);
    Endpoint *server = opened();
    for (int i = 0; i < CLIENTS; ++i) {
        endpoint_open(clients[i], (Options){0});
        requests[i] = request_to(clients[i], server, LONG_MS);
        begin(&tasks[i], clients[i], do_request, &requests[i], sizeof requests[i]);
    }
    for (int i = 0; i < CLIENTS; ++i) {
        Listening waiting = listening(server, LONG_MS);
        VIP_VI_HANDLE vi;
        CHECK_RC(wait_request(server, &waiting), VIP_SUCCESS);
        CHECK_RC(VipCreateVi(server->nic, &server->attribs, NULL, NULL, &vi), VIP_SUCCESS);
        CHECK_RC(VipConnectAccept(server->conn, vi), VIP_SUCCESS);
    }
    for (int i = 0; i < CLIENTS; ++i) {
        finish(&tasks[i]);
        CHECK_RC(requests[i].rc, VIP_SUCCESS);
    }
}
