/* SPDX-License-Identifier: BSD-3-Clause
 * VipConnectWait and discriminators: guide, sections 3.3.1, 6.7 and 7.4.
 */
#include "endpoint.h"

#include <sched.h>
#include <stdio.h>

static Endpoint *opened(void) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    return end;
}

static VIP_RETURN wait_on(Endpoint *end, NetAddress local, VIP_ULONG timeout_ms) {
    Listening waiting = listening(end, timeout_ms);
    waiting.local = local;
    return wait_request(end, &waiting);
}

TEST(finds_a_request) {
    Pair pair = open_pair((Options){0});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    begin(&task, pair.client, do_request, &request, sizeof request);
    CHECK_RC(wait_request(pair.server, &waiting), VIP_SUCCESS);
    CHECK(pair.server->conn != NULL);
    CHECK_RC(accept_request(pair.server), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(request.rc, VIP_SUCCESS);
}

TEST(remote_address_is_the_local_address_of_the_client) {
    need_two_nics();
    Pair pair = open_pair_of((Options){.device = "VINIC1"}, (Options){0});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    request.local = net_address(pair.client, "who is calling", 14);
    begin(&task, pair.server, do_wait_and_accept, &waiting, sizeof waiting);
    CHECK_RC(request_connection(pair.client, &request), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(waiting.rc, VIP_SUCCESS);
    size_t length = offsetof(VIP_NET_ADDRESS, HostAddress) + pair.client->limits.NicAddressLen + 14;
    CHECK_EQ(waiting.remote.address.HostAddressLen, pair.client->limits.NicAddressLen);
    CHECK_EQ(waiting.remote.address.DiscriminatorLen, 14);
    CHECK(memcmp(waiting.remote.bytes, request.local.bytes, length) == 0);
}

TEST(remote_attributes_are_those_of_the_client) {
    Pair pair = open_pair_of((Options){.level = VIP_SERVICE_RELIABLE_RECEPTION, .max_transfer = 4096, .no_rdma = 1},
                             (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION, .max_transfer = 4096});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    begin(&task, pair.server, do_wait_and_accept, &waiting, sizeof waiting);
    CHECK_RC(request_connection(pair.client, &request), VIP_SUCCESS);
    finish(&task);
    CHECK_EQ(waiting.remote_attribs.ReliabilityLevel, VIP_SERVICE_RELIABLE_RECEPTION);
    CHECK_EQ(waiting.remote_attribs.MaxTransferSize, 4096);
    CHECK(waiting.remote_attribs.QoS == NULL);
    CHECK(!waiting.remote_attribs.EnableRdmaWrite && !waiting.remote_attribs.EnableRdmaRead);
    CHECK_EQ(request.remote_attribs.ReliabilityLevel, VIP_SERVICE_RELIABLE_RECEPTION);
    CHECK_EQ(request.remote_attribs.MaxTransferSize, 4096);
    CHECK(request.remote_attribs.EnableRdmaWrite && request.remote_attribs.EnableRdmaRead);
}

TEST(times_out) {
    Endpoint *end = opened();
    CHECK_TIMES_OUT(wait_on(end, service_of(end), SHORT_MS), SHORT_MS);
    CHECK_TIMES_OUT(wait_on(end, service_of(end), MEDIUM_MS), MEDIUM_MS);
}

TEST(timeout_zero_returns_at_once) {
    Endpoint *end = opened();
    CHECK_AT_ONCE(wait_on(end, service_of(end), 0), VIP_TIMEOUT);
}

TEST(a_wait_that_timed_out_waits_no_more) {
    Pair pair = open_pair((Options){0});
    Listening waiting = listening(pair.server, SHORT_MS);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    request.retry = VIP_FALSE;
    CHECK_TIMES_OUT(wait_request(pair.server, &waiting), SHORT_MS);
    CHECK_AT_ONCE(request_connection(pair.client, &request), VIP_NO_MATCH);
}

TEST(wrong_host_part_is_invalid) {
    Endpoint *end = opened();
    NetAddress wrong = service_of(end);
    wrong.address.HostAddress[0] ^= 0xff;
    CHECK_RC(wait_on(end, wrong, SHORT_MS), VIP_INVALID_PARAMETER);
}

TEST(wrong_lengths_are_invalid) {
    Endpoint *end = opened();
    static const VIP_UINT8 zeros[1024];
    NetAddress address = service_of(end);
    address.address.HostAddressLen--;
    CHECK_RC(wait_on(end, address, SHORT_MS), VIP_INVALID_PARAMETER);
    address.address.HostAddressLen = 0;
    CHECK_RC(wait_on(end, address, SHORT_MS), VIP_INVALID_PARAMETER);
    address = net_address(end, zeros, (size_t)end->limits.MaxDiscriminatorLen + 1);
    CHECK_RC(wait_on(end, address, SHORT_MS), VIP_INVALID_PARAMETER);
}

TEST(invalid_arguments_are_refused) {
    Endpoint *end = opened();
    NetAddress local = service_of(end), remote;
    VIP_VI_ATTRIBUTES attribs;
    VIP_CONN_HANDLE conn;
    CHECK_RC(VipConnectWait(NULL, &local.address, 0, &remote.address, &attribs, &conn), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectWait(end->vi, &local.address, 0, &remote.address, &attribs, &conn), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectWait(end->nic, NULL, 0, &remote.address, &attribs, &conn), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectWait(end->nic, &local.address, 0, NULL, &attribs, &conn), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectWait(end->nic, &local.address, 0, &remote.address, NULL, &conn), VIP_INVALID_PARAMETER);
    CHECK_RC(VipConnectWait(end->nic, &local.address, 0, &remote.address, &attribs, NULL), VIP_INVALID_PARAMETER);
}

/* ---- Discriminators ---------------------------------------------------------------------------------------------- */

/* One connection over this discriminator, which both ends use, and back to Idle. */
static void connect_over(const Pair *pair, const VIP_UINT8 *discriminator, size_t length) {
    Task task;
    Listening waiting = listening(pair->server, LONG_MS);
    Request request = request_to(pair->client, pair->server, LONG_MS);
    waiting.local = request.remote = net_address(pair->server, discriminator, length);
    request.local = net_address(pair->client, discriminator, length);
    begin(&task, pair->server, do_wait_and_accept, &waiting, sizeof waiting);
    CHECK_RC(request_connection(pair->client, &request), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(waiting.rc, VIP_SUCCESS);
    CHECK_EQ(waiting.remote.address.DiscriminatorLen, length);
    CHECK(memcmp(waiting.remote.bytes, request.local.bytes, offsetof(VIP_NET_ADDRESS, HostAddress) + length) == 0);
    CHECK_RC(disconnect(pair->client), VIP_SUCCESS);
    await_error(pair->server, VIP_ERROR_CONN_LOST);
    CHECK_RC(disconnect(pair->server), VIP_SUCCESS);
}

TEST(discriminators_of_every_length) {
    VIP_UINT8 discriminator[1024];
    for (size_t i = 0; i < sizeof discriminator; ++i) discriminator[i] = (VIP_UINT8)(i * 37 + 0xF0);
    Pair pair = open_pair((Options){0});
    size_t longest = pair.client->limits.MaxDiscriminatorLen;
    CHECK(longest >= (is_hardware(pair.client) ? 16 : 64));
    CHECK(longest <= sizeof discriminator);
    for (size_t length = 0; length <= longest; ++length) connect_over(&pair, discriminator, length);
}

TEST(discriminators_match_in_full) {
    static const char *const others[] = {"", "a", "a service", "a service.", "A SERVICE_", "a service__"};
    Pair pair = open_pair((Options){0});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    waiting.local = net_address(pair.server, "a service_", 10);
    begin(&task, pair.server, do_wait_and_accept, &waiting, sizeof waiting);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; ++i) {
        Request other = request;
        other.retry = VIP_FALSE;
        other.remote = net_address(pair.server, others[i], strlen(others[i]));
        CHECK_AT_ONCE(request_connection(pair.client, &other), VIP_NO_MATCH);
    }
    request.remote = waiting.local;
    CHECK_RC(request_connection(pair.client, &request), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(waiting.rc, VIP_SUCCESS);
}

TEST(a_server_on_another_nic_does_not_match) {
    need_two_nics();
    Pair pair = open_pair_of((Options){0}, (Options){.device = "VINIC1"});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request elsewhere = request_to(pair.client, pair.client, LONG_MS);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    elsewhere.retry = VIP_FALSE;
    begin(&task, pair.server, do_wait_and_accept, &waiting, sizeof waiting);
    CHECK_RC(request_connection(pair.client, &elsewhere), VIP_NO_MATCH);
    CHECK_RC(request_connection(pair.client, &request), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(waiting.rc, VIP_SUCCESS);
}

/* ---- Several waiters --------------------------------------------------------------------------------------------- */

/* Two servers wait on one discriminator: each gets one of two requests, one after the other. */
static void two_waiters(Endpoint *first, Endpoint *second, Endpoint *const clients[2]) {
    Task tasks[2];
    Listening waiting[2] = {listening(first, LONG_MS), listening(second, LONG_MS)};
    begin(&tasks[0], first, do_wait_and_accept, &waiting[0], sizeof waiting[0]);
    begin(&tasks[1], second, do_wait_and_accept, &waiting[1], sizeof waiting[1]);
    for (int i = 0; i < 2; ++i) {
        Request request = request_to(clients[i], first, LONG_MS);
        CHECK_RC(request_connection(clients[i], &request), VIP_SUCCESS);
    }
    for (int i = 0; i < 2; ++i) {
        finish(&tasks[i]);
        CHECK_RC(waiting[i].rc, VIP_SUCCESS);
    }
    CHECK_EQ(state_of(first), VIP_STATE_CONNECTED);
    CHECK_EQ(state_of(second), VIP_STATE_CONNECTED);
}

/* However often another process is there before. */
static void do_insist_and_accept(Endpoint *end, void *argument) {
    Listening *waiting = argument;
    do {
        do_wait_and_accept(end, waiting);
    } while (waiting->rc == VIP_ERROR_RESOURCE);
}

/* The second process is refused for as long as the first one waits. */
static void one_process_waits(Endpoint *first, Endpoint *second, Endpoint *client) {
    Task task;
    Listening waiting = listening(first, LONG_MS), refused = listening(second, 0);
    Request request = request_to(client, first, LONG_MS);
    begin(&task, first, do_insist_and_accept, &waiting, sizeof waiting);
    while (wait_request(second, &refused) == VIP_TIMEOUT) sched_yield(); /* the first one is not there yet */
    CHECK_RC(refused.rc, VIP_ERROR_RESOURCE);
    CHECK_RC(request_connection(client, &request), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(waiting.rc, VIP_SUCCESS);
}

/* On most transports a service belongs to one process. */
TEST(two_processes_wait_on_one_discriminator) {
    Peer *peers[2] = {peer_start(), peer_start()};
    Endpoint *servers[2] = {new_endpoint(peers[0]), new_endpoint(peers[1])};
    Endpoint *clients[2] = {new_endpoint(NULL), new_endpoint(NULL)};
    for (int i = 0; i < 2; ++i) endpoint_open(servers[i], (Options){0});
    for (int i = 0; i < 2; ++i) endpoint_open(clients[i], (Options){0});
    if (is_hardware(clients[0]) || lacks("shared_services")) {
        one_process_waits(servers[0], servers[1], clients[0]);
    } else {
        two_waiters(servers[0], servers[1], clients);
    }
}

TEST(two_threads_wait_on_one_discriminator) {
    Endpoint *ends[4];
    for (int i = 0; i < 4; ++i) {
        ends[i] = new_endpoint(NULL);
        endpoint_open(ends[i], (Options){0});
    }
    two_waiters(ends[0], ends[1], &ends[2]);
}

/* Two requests that come while one server waits twice, on the same NIC handle. */
TEST(two_threads_wait_on_one_nic_handle) {
    Endpoint *server = opened();
    Endpoint other = *server; /* shares the NIC, with a VI of its own */
    Endpoint *clients[2] = {opened(), opened()};
    CHECK_RC(VipCreateVi(other.nic, &other.attribs, NULL, NULL, &other.vi), VIP_SUCCESS);
    two_waiters(server, &other, clients);
}

/* While one thread answers its request, another one that waits on another discriminator is not disturbed. */
TEST(waits_on_different_discriminators_are_independent) {
    Peer *peer = peer_start();
    Endpoint *client = new_endpoint(NULL), *first = new_endpoint(peer), *second = new_endpoint(NULL);
    endpoint_open(client, (Options){0});
    endpoint_open(first, (Options){0});
    endpoint_open(second, (Options){0});
    Task tasks[2];
    Listening waiting[2] = {listening(first, LONG_MS), listening(second, LONG_MS)};
    waiting[1].local = net_address(second, "second", 6);
    begin(&tasks[0], first, do_wait_and_accept, &waiting[0], sizeof waiting[0]);
    begin(&tasks[1], second, do_wait_and_accept, &waiting[1], sizeof waiting[1]);
    Request request = request_to(client, second, LONG_MS);
    request.remote = waiting[1].local;
    CHECK_RC(request_connection(client, &request), VIP_SUCCESS);
    finish(&tasks[1]);
    CHECK_RC(waiting[1].rc, VIP_SUCCESS);
    CHECK_RC(disconnect(client), VIP_SUCCESS);
    request = request_to(client, first, LONG_MS);
    CHECK_RC(request_connection(client, &request), VIP_SUCCESS);
    finish(&tasks[0]);
    CHECK_RC(waiting[0].rc, VIP_SUCCESS);
}
