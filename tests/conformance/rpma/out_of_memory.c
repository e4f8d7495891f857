/* SPDX-License-Identifier: BSD-3-Clause
 * RPMA_E_NOMEM of each call that lacks memory.
 */
#include "../support/sweep.h"
#include "side.h"

#include <sched.h>

/* The C library's resolver of addresses says no more than that it failed. */
#define UNRESOLVED RPMA_E_PROVIDER

/* On a device the end of a connection may ask for memory, and goes on without. */
static void does_without_memory(int (*call)(void)) {
    if (on_loopback())
        allocates_nothing((Sweep){.call = call});
    else
        succeeds_without_memory(call);
}

/* ---- Devices, peers, regions ------------------------------------------------------------------------------------- */

static struct ibv_context *device;
static struct rpma_peer *peer;
static struct rpma_mr_local *mr;
static struct rpma_mr_remote *target;
static struct rpma_peer_cfg *peer_cfg;
static struct rpma_conn_cfg *conn_cfg;
static struct rpma_srq_cfg *srq_cfg;
static struct rpma_srq *srq;
static uint8_t memory[4096];

static int find_device(void) {
    return rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &device);
}

TEST(utils_get_ibv_context) {
    if (!on_loopback()) skip("librdmacm never recovers from a lack of memory at its first call");
    allocates((Sweep){.call = find_device, .also = UNRESOLVED});
}

static int make_peer(void) { return rpma_peer_new(device, &peer); }
static void unmake_peer(void) { CHECK_OK(rpma_peer_delete(&peer)); }

TEST(peer_new) {
    device = test_device();
    allocates((Sweep){.call = make_peer, .undo = unmake_peer});
}

static int make_region(void) { return rpma_mr_reg(peer, memory, sizeof memory, ALL_USAGES, &mr); }
static void unmake_region(void) { CHECK_OK(rpma_mr_dereg(&mr)); }

TEST(mr_reg) {
    peer = new_peer();
    allocates((Sweep){.call = make_region, .undo = unmake_region});
    unmake_peer();
}

static const uint8_t descriptor[MR_DESCRIPTOR_BYTES] = {[9] = 1, [20] = ALL_USAGES};

static int make_target(void) { return rpma_mr_remote_from_descriptor(descriptor, sizeof descriptor, &target); }
static void unmake_target(void) { CHECK_OK(rpma_mr_remote_delete(&target)); }

TEST(mr_remote_from_descriptor) { allocates((Sweep){.call = make_target, .undo = unmake_target}); }

/* ---- Configurations ---------------------------------------------------------------------------------------------- */

static int make_peer_cfg(void) { return rpma_peer_cfg_new(&peer_cfg); }
static int make_peer_cfg_from_descriptor(void) { return rpma_peer_cfg_from_descriptor(memory, 1, &peer_cfg); }
static void unmake_peer_cfg(void) { CHECK_OK(rpma_peer_cfg_delete(&peer_cfg)); }

TEST(peer_cfg_new) { allocates((Sweep){.call = make_peer_cfg, .undo = unmake_peer_cfg}); }
TEST(peer_cfg_from_descriptor) { allocates((Sweep){.call = make_peer_cfg_from_descriptor, .undo = unmake_peer_cfg}); }

static int make_conn_cfg(void) { return rpma_conn_cfg_new(&conn_cfg); }
static void unmake_conn_cfg(void) { CHECK_OK(rpma_conn_cfg_delete(&conn_cfg)); }

TEST(conn_cfg_new) { allocates((Sweep){.call = make_conn_cfg, .undo = unmake_conn_cfg}); }

static int make_srq_cfg(void) { return rpma_srq_cfg_new(&srq_cfg); }
static void unmake_srq_cfg(void) { CHECK_OK(rpma_srq_cfg_delete(&srq_cfg)); }

TEST(srq_cfg_new) { allocates((Sweep){.call = make_srq_cfg, .undo = unmake_srq_cfg}); }

static int make_srq(void) { return rpma_srq_new(peer, NULL, &srq); }
static void unmake_srq(void) { CHECK_OK(rpma_srq_delete(&srq)); }

TEST(srq_new) {
    peer = new_peer();
    allocates((Sweep){.call = make_srq, .undo = unmake_srq});
    unmake_peer();
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* Both sides are here, so that the allocations of each can be made to fail. */
static Pair pair;

static void open_both(void) {
    pair = (Pair){new_side(NULL), new_side(NULL)};
    side_open(pair.client, (Options){0});
    side_open(pair.server, (Options){0});
}

static int make_ep(void) {
    return rpma_ep_listen(pair.server->peer, test_address(), pair.server->port, &pair.server->ep);
}
static void unmake_ep(void) { CHECK_OK(rpma_ep_shutdown(&pair.server->ep)); }

TEST(ep_listen) {
    open_both();
    allocates((Sweep){.call = make_ep, .undo = unmake_ep, .also = UNRESOLVED});
}

static int make_request(void) {
    return rpma_conn_req_new(pair.client->peer, test_address(), pair.server->port, NULL, &pair.client->req);
}
static void unmake_request(void) { CHECK_OK(rpma_conn_req_delete(&pair.client->req)); }

TEST(conn_req_new) {
    open_both();
    allocates((Sweep){.call = make_request, .undo = unmake_request, .also = UNRESOLVED});
}

static void prepare_request(void) { request_to(pair.client, pair.server); }

/* Whatever comes of it, the request is consumed. */
static int connect_outgoing(void) {
    int rc = rpma_conn_req_connect(&pair.client->req, NULL, &pair.client->conn);
    CHECK(pair.client->req == NULL && (rc == 0) == (pair.client->conn != NULL));
    return rc;
}
static void undo_outgoing(void) { CHECK_OK(rpma_conn_delete(&pair.client->conn)); }

TEST(conn_req_connect__outgoing) {
    open_both();
    allocates((Sweep){.prepare = prepare_request, .call = connect_outgoing, .undo = undo_outgoing});
}

/* Of a request that could not be looked at nothing is left; another try brings a new one. */
static void prepare_incoming(void) {
    int fd = -1;
    CHECK_OK(rpma_conn_delete(&pair.client->conn));
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    CHECK_OK(rpma_ep_get_fd(pair.server->ep, &fd));
    CHECK(readable(fd, (int)LONG_MS));
}

static int take_incoming(void) { return rpma_ep_next_conn_req(pair.server->ep, NULL, &pair.server->req); }
static void undo_incoming(void) { CHECK_OK(rpma_conn_req_delete(&pair.server->req)); }

TEST(ep_next_conn_req) {
    open_both();
    listen_at(pair.server);
    allocates((Sweep){.prepare = prepare_incoming, .call = take_incoming, .undo = undo_incoming});
}

static void prepare_taken(void) {
    prepare_incoming();
    next_request(pair.server);
}

static int connect_incoming(void) {
    int rc = rpma_conn_req_connect(&pair.server->req, NULL, &pair.server->conn);
    CHECK(pair.server->req == NULL && (rc == 0) == (pair.server->conn != NULL));
    return rc;
}
static void undo_connected(void) { CHECK_OK(rpma_conn_delete(&pair.server->conn)); }

TEST(conn_req_connect__incoming) {
    open_both();
    listen_at(pair.server);
    /* A device may have all that it needs. */
    (on_loopback() ? allocates
                   : may_allocate)((Sweep){.prepare = prepare_taken, .call = connect_incoming, .undo = undo_connected});
}

static int reject(void) { return rpma_conn_req_delete(&pair.server->req); }
static void hear_rejection(void) { EXPECT_EVENT(pair.client, RPMA_CONN_REJECTED); }

TEST(conn_req_delete__incoming) {
    open_both();
    listen_at(pair.server);
    may_allocate((Sweep){.prepare = prepare_taken, .call = reject, .undo = hear_rejection});
}

static enum rpma_conn_event event;

static int take_event(void) { return rpma_conn_next_event(pair.client->conn, &event); }

TEST(conn_next_event) {
    open_both();
    listen_at(pair.server);
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    next_request(pair.server);
    connect_with(pair.server, "some private data", 17);
    does_without_memory(take_event);
    CHECK_EQ(event, RPMA_CONN_ESTABLISHED);
}

static pid_t waiting_thread;

static void do_connect_when_awaited(Side *side, void *unused) {
    (void)unused;
    while (!thread_sleeps(waiting_thread)) sched_yield();
    connect_with(side, "some private data", 17);
}

static void do_disconnect_when_awaited(Side *side, void *unused) {
    (void)unused;
    while (!thread_sleeps(waiting_thread)) sched_yield();
    disconnect(side);
}

/* Waits for an event that another thread causes; it may allocate. */
static void awaits_without_memory(SideFunction cause, enum rpma_conn_event expected) {
    Task task;
    event = RPMA_CONN_UNDEFINED;
    begin(&task, pair.server, cause, NULL, 0);
    does_without_memory(take_event);
    finish(&task);
    CHECK_EQ(event, expected);
}

TEST(conn_next_event__waiting) {
    open_both();
    listen_at(pair.server);
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    next_request(pair.server);
    waiting_thread = gettid();
    awaits_without_memory(do_connect_when_awaited, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    awaits_without_memory(do_disconnect_when_awaited, RPMA_CONN_CLOSED);
}

/* ---- Calls that need no memory ----------------------------------------------------------------------------------- */

static struct ibv_wc wc;

static int post_write(void) { return post(pair.client, (Work){.operation = WRITE, .length = 64, .context = 1}); }
static int post_recv(void) { return post(pair.client, (Work){.operation = RECV, .length = 64, .context = 2}); }
static int poll_main(void) { return rpma_cq_get_wc(queue_of(pair.client, MAIN_CQ), 1, &wc, NULL); }
static int wait_main(void) { return rpma_cq_wait(queue_of(pair.client, MAIN_CQ)); }
static int call_disconnect(void) { return rpma_conn_disconnect(pair.client->conn); }
static int delete_client_conn(void) { return rpma_conn_delete(&pair.client->conn); }
static int delete_server_conn(void) { return rpma_conn_delete(&pair.server->conn); }
static int call_dereg(void) { return rpma_mr_dereg(&pair.client->mr); }
static int delete_peer(void) { return rpma_peer_delete(&pair.client->peer); }
static int delete_cfg(void) { return rpma_conn_cfg_delete(&pair.client->cfg); }
static int call_shutdown(void) { return rpma_ep_shutdown(&pair.server->ep); }

static void open_connected(void) {
    open_both();
    listen_at(pair.server);
    pair_connect(&pair);
}

TEST(working_needs_no_memory) {
    open_connected();
    post_write(); /* what is made at its first use is made */
    EXPECT_DONE(pair.client, 1);
    for (int i = 0; i < 3; ++i) {
        allocates_nothing((Sweep){.call = post_write});
        allocates_nothing((Sweep){.call = wait_main});
        allocates_nothing((Sweep){.call = poll_main});
        CHECK_EQ(wc.wr_id, 1);
    }
    allocates_nothing((Sweep){.call = post_recv});
}

TEST(deleting_needs_no_memory) {
    open_connected();
    does_without_memory(call_disconnect);
    does_without_memory(delete_client_conn);
    does_without_memory(delete_server_conn);
    does_without_memory(call_shutdown);
    does_without_memory(call_dereg);
    does_without_memory(delete_cfg);
    does_without_memory(delete_peer);
}
