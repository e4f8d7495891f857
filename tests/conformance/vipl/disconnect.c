/* SPDX-License-Identifier: BSD-3-Clause
 * VipDisconnect, in each state, and what the other end sees: guide, sections 3.3.5 and 6.2.
 */
#include "endpoint.h"

static Endpoint *opened(void) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    return end;
}

static void expect_flushed_receives(Endpoint *end, int count) {
    for (int slot = 0; slot < count; ++slot) {
        CHECK_EQ(EXPECT_RECV(end, slot, RECEIVED | FLUSHED).length, 0);
    }
    CHECK_EQ(recv_done(end).slot, -1);
}

TEST(from_connected) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
}

TEST(from_idle_flushes_receives) {
    Endpoint *end = opened();
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    for (int slot = 0; slot < 3; ++slot) post_simple_recv(end, slot, 64);
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
    expect_flushed_receives(end, 3);
    CHECK_RC(VipDestroyVi(end->vi), VIP_SUCCESS);
}

TEST(from_pending_flushes_receives) {
    Endpoint *end = opened();
    Request request = request_to(end, end, VIP_INFINITE);
    for (int slot = 0; slot < 2; ++slot) post_simple_recv(end, slot, 64);
    CHECK_RC(peer_request(end, &request), VIP_SUCCESS);
    CHECK_EQ(state_of(end), VIP_STATE_CONNECT_PENDING);
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
    expect_flushed_receives(end, 2);
    CHECK_RC(peer_done(end, &request), VIP_INVALID_STATE);
}

/* The same while another thread of the client is inside VipConnectRequest. */
TEST(from_pending_ends_a_request) {
    Pair pair = open_pair((Options){0});
    Task task;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, VIP_INFINITE);
    begin(&task, pair.client, do_request, &request, sizeof request);
    CHECK_RC(wait_request(pair.server, &waiting), VIP_SUCCESS);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(request.rc, VIP_INVALID_STATE);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
    CHECK_RC(accept_request(pair.server), VIP_TIMEOUT);
}

/* Another request that follows at once has an outcome of its own. */
TEST(from_pending_to_another_request) {
    Pair pair = open_pair((Options){0});
    for (int round = 0, rounds = is_hardware(pair.server) ? 5 : 20; round < rounds; ++round) {
        Task client, server;
        Listening first = listening(pair.server, LONG_MS), second = first;
        Request ended = request_to(pair.client, pair.server, VIP_INFINITE), request = ended;
        begin(&client, pair.client, do_request, &ended, sizeof ended);
        CHECK_RC(wait_request(pair.server, &first), VIP_SUCCESS);
        begin(&server, pair.server, do_wait_and_accept, &second, sizeof second);
        CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
        CHECK_RC(request_connection(pair.client, &request), VIP_SUCCESS);
        finish(&client);
        finish(&server);
        CHECK_RC(ended.rc, VIP_INVALID_STATE);
        CHECK_RC(second.rc, VIP_SUCCESS);
        CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
        await_error(pair.server, VIP_ERROR_CONN_LOST);
        CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    }
}

TEST(from_error) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    CHECK_EQ(state_of(pair.client), VIP_STATE_ERROR);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
}

TEST(an_invalid_handle_is_refused) {
    Endpoint *end = opened();
    CHECK_RC(VipDisconnect(NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDisconnect(end), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDisconnect(end->nic), VIP_INVALID_PARAMETER);
}

TEST(both_ends_are_flushed) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    for (int slot = 0; slot < 4; ++slot) post_simple_recv(pair.client, slot, 64);
    for (int slot = 0; slot < 5; ++slot) post_simple_recv(pair.server, slot, 64);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    expect_flushed_receives(pair.client, 4);
    expect_flushed_receives(pair.server, 5);
}

/* The other side alone gets CONN_LOST, exactly once, and the Error state. */
static void lost_once(VIP_RELIABILITY_LEVEL level) {
    Pair pair = connected_pair(level);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    VIP_ERROR_DESCRIPTOR error = await_error(pair.server, VIP_ERROR_CONN_LOST);
    CHECK(error.ViHandle == pair.server->vi);
    CHECK_EQ(error.ResourceCode, VIP_RESOURCE_VI);
    CHECK_EQ(state_of(pair.server), VIP_STATE_ERROR);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    CHECK_EQ(state_of(pair.server), VIP_STATE_IDLE);
    endpoint_close_nic(pair.server);
    endpoint_close_nic(pair.client);
    CHECK_EQ(pair.server->error_count, 0); /* no second one */
    CHECK_EQ(pair.client->error_count, 0);
}

TEST(the_other_end_is_told_once_unreliable) { lost_once(VIP_SERVICE_UNRELIABLE); }
TEST(the_other_end_is_told_once_reliable_delivery) { lost_once(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(the_other_end_is_told_once_reliable_reception) { lost_once(VIP_SERVICE_RELIABLE_RECEPTION); }

TEST(closing_the_nic_disconnects) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, 64);
    endpoint_close_nic(pair.server);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    CHECK_EQ(state_of(pair.client), VIP_STATE_ERROR);
    expect_flushed_receives(pair.client, 1);
}

/* The peer may die at any moment: what is posted is flushed, one error comes, and the VI can be used again. */
static void peer_dies(VIP_RELIABILITY_LEVEL level) {
    Peer *victim = peer_start(), *heir = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(victim)};
    endpoint_open(pair.client, (Options){.level = level});
    endpoint_open(pair.server, (Options){.level = level});
    pair_connect(&pair);
    for (int slot = 0; slot < 3; ++slot) post_simple_recv(pair.client, slot, 64);
    peer_kill(victim);
    VIP_ERROR_DESCRIPTOR error = await_error(pair.client, VIP_ERROR_CONN_LOST);
    CHECK(error.ViHandle == pair.client->vi);
    CHECK_EQ(state_of(pair.client), VIP_STATE_ERROR);
    expect_flushed_receives(pair.client, 3);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    Pair again = {pair.client, new_endpoint(heir)};
    endpoint_open(again.server, (Options){.level = level});
    pair_connect(&again);
    post_simple_recv(again.client, 0, 64);
    post_simple_send(again.server, 0, 64);
    EXPECT_RECV(again.client, 0, RECEIVED);
    CHECK_EQ(count_errors(again.client, VIP_ERROR_CONN_LOST), 0);
}

static void do_write_for_ever(Endpoint *end, void *target) {
    for (;;) {
        CHECK_RC(post_send(end, 0, rdma_work(end, VIP_CONTROL_OP_RDMAWRITE, BIG_AT, LARGEST_MESSAGE, target, BIG_AT)),
                 VIP_SUCCESS);
        EXPECT_SEND(end, 0, WRITTEN);
    }
}

/* The same while the peer writes into the memory of this end: no other error tells of the write that broke off. */
static void peer_dies_while_it_writes(VIP_RELIABILITY_LEVEL level) {
    Peer *victim = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(victim)};
    endpoint_open(pair.client, (Options){.level = level});
    endpoint_open(pair.server, (Options){.level = level});
    pair_connect(&pair);
    fill(pair.server, BIG_AT, LARGEST_MESSAGE, 1);
    Task task;
    begin(&task, pair.server, do_write_for_ever, pair.client, sizeof *pair.client);
    CHECK_EQ(count_errors(pair.client, VIP_ERROR_CONN_LOST), 0);
    while (!filled(pair.client, BIG_AT, 64, 1)) continue;
    peer_kill(victim);
    abandon(&task);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    endpoint_close_nic(pair.client);
    CHECK_EQ(pair.client->error_count, 0);
}

TEST(death_of_the_peer_while_it_writes_unreliable) { peer_dies_while_it_writes(VIP_SERVICE_UNRELIABLE); }
TEST(death_of_the_peer_while_it_writes_reliable_delivery) { peer_dies_while_it_writes(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(death_of_the_peer_while_it_writes_reliable_reception) {
    peer_dies_while_it_writes(VIP_SERVICE_RELIABLE_RECEPTION);
}

TEST(death_of_the_peer_unreliable) { peer_dies(VIP_SERVICE_UNRELIABLE); }
TEST(death_of_the_peer_reliable_delivery) { peer_dies(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(death_of_the_peer_reliable_reception) { peer_dies(VIP_SERVICE_RELIABLE_RECEPTION); }

/*
 * On Reliable Reception the peer must acknowledge. It is stopped, so it cannot, and then it dies: what had begun fails
 * with a transport error, what had not is flushed. A send of Reliable Delivery has no transport error.
 */
static void peer_dies_under_way(VIP_RELIABILITY_LEVEL level) {
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(peer)};
    endpoint_open(pair.client, (Options){.level = level});
    if (is_hardware(pair.client)) skip("hardware acknowledges for a process that is stopped");
    endpoint_open(pair.server, (Options){.level = level});
    pair_connect(&pair);
    const VIP_UINT32 length = 512 * 1024;
    for (int slot = 0; slot < SLOTS; ++slot) {
        CHECK_RC(post_recv(pair.server, slot, recv_work(pair.server, BIG_AT, length)), VIP_SUCCESS);
    }
    peer_stop(peer);
    for (int slot = 0; slot < SLOTS; ++slot) {
        CHECK_RC(post_send(pair.client, slot, send_work(pair.client, BIG_AT, length)), VIP_SUCCESS);
    }
    peer_kill(peer);
    Completion completion;
    int slot = 0;
    while ((completion = send_wait(pair.client, LONG_MS)).rc == VIP_SUCCESS && slot < SLOTS) ++slot;
    const bool confirmed = level == VIP_SERVICE_RELIABLE_RECEPTION;
    if (confirmed || slot < SLOTS) {
        const VIP_UINT32 first = confirmed ? VIP_STATUS_TRANSPORT_ERROR : FLUSHED;
        check_completion(__FILE__, __LINE__, completion, slot, SENT | first);
    }
    for (++slot; slot < SLOTS; ++slot) {
        completion = send_wait(pair.client, LONG_MS);
        VIP_UINT32 error = completion.status & (FLUSHED | VIP_STATUS_TRANSPORT_ERROR);
        CHECK(error == FLUSHED || (confirmed && error == VIP_STATUS_TRANSPORT_ERROR));
        check_completion(__FILE__, __LINE__, completion, slot, SENT | error);
    }
    await_error(pair.client, VIP_ERROR_CONN_LOST);
}

TEST(death_of_the_peer_under_way_reliable_delivery) { peer_dies_under_way(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(death_of_the_peer_under_way_reliable_reception) { peer_dies_under_way(VIP_SERVICE_RELIABLE_RECEPTION); }

static void do_disconnect(Endpoint *end, void *rc) { *(VIP_RETURN *)rc = VipDisconnect(end->vi); }

TEST(both_ends_at_once) {
    Pair pair = open_pair((Options){0});
    for (int round = 0; round < 50; ++round) {
        Task task;
        VIP_RETURN theirs = VIP_NOT_DONE;
        pair_connect(&pair);
        begin(&task, pair.server, do_disconnect, &theirs, sizeof theirs);
        CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
        finish(&task);
        CHECK_RC(theirs, VIP_SUCCESS);
        CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
        CHECK_EQ(state_of(pair.server), VIP_STATE_IDLE);
    }
}

/* On Reliable Reception a send that completed is in the memory of the other end, whatever happens next. */
TEST(a_completed_send_has_arrived) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    for (int slot = 0; slot < 3; ++slot) post_simple_recv(pair.server, slot, 64);
    fill(pair.client, SEND_AT(0), 64, 9);
    post_simple_send(pair.client, 0, 64);
    EXPECT_SEND(pair.client, 0, SENT);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 64);
    CHECK(filled(pair.server, RECV_AT(0), 64, 9));
    EXPECT_RECV(pair.server, 1, RECEIVED | FLUSHED);
    EXPECT_RECV(pair.server, 2, RECEIVED | FLUSHED);
}

/* ---- Posting in each state --------------------------------------------------------------------------------------- */

TEST(a_send_on_an_idle_vi_is_flushed) {
    Endpoint *end = opened();
    post_simple_send(end, 0, 64);
    CHECK_EQ(EXPECT_SEND(end, 0, SENT | FLUSHED).length, 0);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
}

TEST(a_send_on_a_pending_vi_is_flushed) {
    Endpoint *end = opened();
    Request request = request_to(end, end, VIP_INFINITE);
    CHECK_RC(peer_request(end, &request), VIP_SUCCESS);
    post_simple_send(end, 0, 64);
    EXPECT_SEND(end, 0, SENT | FLUSHED);
    CHECK_EQ(state_of(end), VIP_STATE_CONNECT_PENDING);
}

TEST(what_is_posted_in_error_is_flushed) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    post_simple_recv(pair.client, 0, 64);
    post_simple_send(pair.client, 0, 64);
    EXPECT_RECV(pair.client, 0, RECEIVED | FLUSHED);
    EXPECT_SEND(pair.client, 0, SENT | FLUSHED);
}

TEST(flushed_descriptors_tell_their_operation) {
    Endpoint *end = opened();
    Work write = rdma_work(end, VIP_CONTROL_OP_RDMAWRITE, SEND_AT(0), 8, end, RECV_AT(0));
    Work read = rdma_work(end, VIP_CONTROL_OP_RDMAREAD, SEND_AT(0), 8, end, RECV_AT(0));
    CHECK_RC(post_send(end, 0, write), VIP_SUCCESS);
    CHECK_RC(post_send(end, 1, read), VIP_SUCCESS);
    EXPECT_SEND(end, 0, WRITTEN | FLUSHED);
    EXPECT_SEND(end, 1, READ | FLUSHED);
}

/* Flushing completes descriptors like any other completion: with an entry in the completion queue. */
TEST(flushed_descriptors_enter_the_completion_queue) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    for (int slot = 0; slot < 2; ++slot) post_simple_recv(pair.client, slot, 64);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    for (int slot = 0; slot < 2; ++slot) {
        CqEntry entry = cq_wait(pair.client, LONG_MS);
        CHECK_RC(entry.rc, VIP_SUCCESS);
        CHECK(entry.vi == pair.client->vi && entry.recv_queue);
        check_completion(__FILE__, __LINE__, recv_done(pair.client), slot, RECEIVED | FLUSHED);
    }
    CHECK_RC(cq_done(pair.client).rc, VIP_NOT_DONE);
}
