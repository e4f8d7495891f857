/* SPDX-License-Identifier: BSD-3-Clause
 * fork(2): handles of the parent give VIP_INVALID_PARAMETER in the child, and whatever that does with them has no
 * effect on the parent. A child can open a NIC of its own, and its life does not hide the parent's death.
 */
#include "../support/children.h"
#include "endpoint.h"

#include <signal.h>

enum { BYTES = 500 };

static Pair pair;
static Request request; /* to the server, made where that lives: addresses contain the number of the process */

static void send_bytes(Endpoint *from, Endpoint *to, int slot) {
    fill(from, SEND_AT(slot), BYTES, (unsigned)slot);
    post_simple_recv(to, slot, BYTES);
    post_simple_send(from, slot, BYTES);
    EXPECT_RECV(to, slot, RECEIVED);
    EXPECT_SEND(from, slot, SENT);
    CHECK(filled(to, RECV_AT(slot), BYTES, (unsigned)slot));
}

/* ---- Handles of the parent --------------------------------------------------------------------------------------- */

#define CHECK_INVALID(call) CHECK_RC(call, VIP_INVALID_PARAMETER)

static void use_inherited(void) {
    Endpoint *end = pair.server;
    VIP_NIC_ATTRIBUTES limits;
    VIP_MEM_ATTRIBUTES memory = {end->ptag, VIP_TRUE, VIP_TRUE};
    VIP_MEM_HANDLE handle;
    VIP_PROTECTION_HANDLE ptag;
    VIP_VI_HANDLE vi;
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attribs;
    VIP_BOOLEAN send_empty, recv_empty;
    Listening waiting = listening(end, VIP_INFINITE);
    if (!is_hardware(end)) { /* rdma-core leaves no memory to the child that is registered: no descriptors */
        CHECK_INVALID(post_send(end, 0, send_work(end, SEND_AT(0), 8)));
        CHECK_INVALID(post_recv(end, 0, recv_work(end, RECV_AT(0), 8)));
    }
    CHECK_INVALID(send_done(end).rc);
    CHECK_INVALID(recv_done(end).rc);
    CHECK_INVALID(send_wait(end, VIP_INFINITE).rc);
    CHECK_INVALID(recv_wait(end, VIP_INFINITE).rc);
    CHECK_INVALID(cq_done(end).rc);
    CHECK_INVALID(cq_wait(end, VIP_INFINITE).rc);
    CHECK_INVALID(VipQueryVi(end->vi, &state, &attribs, &send_empty, &recv_empty));
    CHECK_INVALID(VipQueryNic(end->nic, &limits));
    CHECK_INVALID(VipErrorCallback(end->nic, NULL, NULL));
    CHECK_INVALID(VipCreatePtag(end->nic, &ptag));
    CHECK_INVALID(VipCreateVi(end->nic, &end->attribs, NULL, NULL, &vi));
    CHECK_INVALID(VipRegisterMem(end->nic, end->memory, BYTES, &memory, &handle));
    CHECK_INVALID(VipQueryMem(end->nic, end->memory, end->handle, &memory));
    CHECK_INVALID(VipResizeCQ(end->cq, 128));
    CHECK_INVALID(wait_request(end, &waiting));
    CHECK_INVALID(request_connection(end, &request));
    CHECK_INVALID(accept_request(end));
    CHECK_INVALID(reject_request(end));
}

static void close_inherited(void) {
    const Endpoint *end = pair.server;
    CHECK_INVALID(VipDisconnect(end->vi));
    CHECK_INVALID(VipDestroyVi(end->vi));
    if (end->cq != NULL) CHECK_INVALID(VipDestroyCQ(end->cq));
    CHECK_INVALID(VipDeregisterMem(end->nic, end->memory, end->handle));
    CHECK_INVALID(VipDestroyPtag(end->nic, end->ptag));
    CHECK_INVALID(VipCloseNic(end->nic));
}

/* The child is made while a thread waits for the answer to its request. */
TEST(fork__handles_of_the_parent_are_invalid) {
    Task task;
    pair = open_local_pair((Options){.send_on_cq = VIP_TRUE});
    Listening waiting = listening(pair.server, LONG_MS);
    request = request_to(pair.client, pair.server, LONG_MS);
    begin(&task, pair.client, do_request, &request, sizeof request);
    CHECK_RC(wait_request(pair.server, &waiting), VIP_SUCCESS);
    const VIP_UINT64 began = steady_ns();
    join_child(start_child(use_inherited));
    join_child(start_child(close_inherited));
    check_time(__FILE__, __LINE__, began, 0);
    CHECK_RC(accept_request(pair.server), VIP_SUCCESS); /* nothing has happened to the request */
    finish(&task);
    CHECK_RC(request.rc, VIP_SUCCESS);
}

/* With a receive posted, which stays. */
TEST(fork__a_child_that_closes_and_exits_has_no_effect) {
    const Pair ends = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    pair = (Pair){ends.server, ends.client}; /* close_inherited() closes what is here */
    post_simple_recv(ends.client, 3, BYTES);
    join_child(start_child(close_inherited));
    CHECK_EQ(state_of(ends.client), VIP_STATE_CONNECTED);
    post_simple_send(ends.server, 3, BYTES);
    EXPECT_RECV(ends.client, 3, RECEIVED);
    EXPECT_SEND(ends.server, 3, SENT);
    send_bytes(ends.client, ends.server, 1);
    send_bytes(ends.server, ends.client, 2);
    endpoint_close(ends.client);
    await_error(ends.server, VIP_ERROR_CONN_LOST);
    endpoint_close(ends.server);
}

/* ---- Handles of the child ---------------------------------------------------------------------------------------- */

/* What both processes do once they are connected: each sends the same to the other. */
static void talk(Endpoint *end) {
    fill(end, SEND_AT(1), BYTES, 1);
    post_simple_send(end, 1, BYTES);
    EXPECT_SEND(end, 1, SENT);
    EXPECT_RECV(end, 0, RECEIVED);
    CHECK(filled(end, RECV_AT(0), BYTES, 1));
}

static void call_parent(void) {
    endpoint_open(pair.client, (Options){0});
    post_simple_recv(pair.client, 0, BYTES);
    CHECK_RC(request_connection(pair.client, &request), VIP_SUCCESS);
    talk(pair.client);
    await_error(pair.client, VIP_ERROR_CONN_LOST); /* the parent is the first to disconnect */
    endpoint_close(pair.client);
}

TEST(fork__a_child_connects_to_its_parent) {
    pair = (Pair){new_endpoint(NULL), new_endpoint(NULL)};
    endpoint_open(pair.server, (Options){0});
    request = request_to(pair.server, pair.server, LONG_MS);
    for (int round = 0; round < 2; ++round) { /* then from a process that has had a connection */
        Listening waiting = listening(pair.server, LONG_MS);
        const pid_t child = start_child(call_parent);
        post_simple_recv(pair.server, 0, BYTES);
        do_wait_and_accept(pair.server, &waiting);
        CHECK_RC(waiting.rc, VIP_SUCCESS);
        talk(pair.server);
        CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
        join_child(child);
    }
    endpoint_close(pair.server);
}

/* ---- Death of the parent ----------------------------------------------------------------------------------------- */

static void do_fork(Endpoint *end, void *heir) {
    (void)end;
    *(pid_t *)heir = start_child(idle);
}

TEST(fork__the_death_of_the_parent_is_told_while_its_child_lives) {
    pid_t heir = 0;
    pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.client, 0, BYTES);
    at(pair.server, do_fork, &heir, sizeof heir);
    const VIP_UINT64 began = steady_ns();
    peer_kill(pair.server->process);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    EXPECT_RECV(pair.client, 0, RECEIVED | FLUSHED);
    check_time(__FILE__, __LINE__, began, 0);
    CHECK_EQ(state_of(pair.client), VIP_STATE_ERROR);
    CHECK(kill(heir, 0) == 0);
    CHECK(kill(heir, SIGKILL) == 0);
    endpoint_close(pair.client);
}
