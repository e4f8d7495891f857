/* SPDX-License-Identifier: BSD-3-Clause
 * RPMA_E_PROVIDER of calls that lack file descriptors.
 */
#include "../support/sweep.h"
#include "side.h"

#include <stdlib.h>

/* ---- Calls that make something ----------------------------------------------------------------------------------- */

static Pair pair;

static void open_both(void) {
    pair = (Pair){new_side(NULL), new_side(NULL)};
    side_open(pair.client, (Options){0});
    side_open(pair.server, (Options){0});
}

static struct rpma_peer *peer;

static int make_peer(void) {
    struct ibv_context *device = NULL;
    int rc = rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &device);
    return rc != 0 ? rc : rpma_peer_new(device, &peer);
}
static void unmake_peer(void) { CHECK_OK(rpma_peer_delete(&peer)); }

TEST(peer_new) {
    if (!on_loopback()) skip("libibverbs does not survive it");
    CHECK(sweep_descriptors((Sweep){.call = make_peer, .undo = unmake_peer}) > 0);
}

static struct ibv_context *context;

static int ask_for_odp(void) {
    int is_capable = 0;
    return rpma_utils_ibv_context_is_odp_capable(context, &is_capable);
}

TEST(utils_ibv_context_is_odp_capable) {
    if (!on_loopback()) skip("libibverbs does not survive it");
    CHECK_OK(rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    CHECK(sweep_descriptors((Sweep){.call = ask_for_odp}) > 0);
    CHECK_OK(rpma_peer_new(context, &peer));
    CHECK_EQ(sweep_descriptors((Sweep){.call = ask_for_odp}), 0); /* the peer has the device open */
    unmake_peer();
    CHECK(sweep_descriptors((Sweep){.call = ask_for_odp}) > 0);
}

static int make_ep(void) {
    return rpma_ep_listen(pair.server->peer, test_address(), pair.server->port, &pair.server->ep);
}
static void unmake_ep(void) { CHECK_OK(rpma_ep_shutdown(&pair.server->ep)); }

TEST(ep_listen) {
    open_both();
    CHECK(sweep_descriptors((Sweep){.call = make_ep, .undo = unmake_ep}) > 0);
}

static struct rpma_srq *srq;

static int make_srq(void) { return rpma_srq_new(pair.client->peer, NULL, &srq); }
static void unmake_srq(void) { CHECK_OK(rpma_srq_delete(&srq)); }

TEST(srq_new) {
    open_both();
    sweep_descriptors((Sweep){.call = make_srq, .undo = unmake_srq});
}

/* What the request does not need yet is needed by connecting. */
static int connect_outgoing(void) {
    int rc = rpma_conn_req_new(pair.client->peer, test_address(), pair.server->port, NULL, &pair.client->req);
    if (rc == 0) rc = rpma_conn_req_connect(&pair.client->req, NULL, &pair.client->conn);
    CHECK(pair.client->req == NULL && (rc == 0) == (pair.client->conn != NULL));
    return rc;
}
static void undo_outgoing(void) { CHECK_OK(rpma_conn_delete(&pair.client->conn)); }

TEST(conn_req_new_and_connect) {
    open_both();
    CHECK(sweep_descriptors((Sweep){.call = connect_outgoing, .undo = undo_outgoing}) > 0);
}

static void prepare_outgoing(void) { request_to(pair.client, pair.server); }

static int connect_request_only(void) {
    int rc = rpma_conn_req_connect(&pair.client->req, NULL, &pair.client->conn);
    CHECK(pair.client->req == NULL && (rc == 0) == (pair.client->conn != NULL));
    return rc;
}

TEST(conn_req_connect__outgoing) {
    open_both();
    CHECK(sweep_descriptors((Sweep){.prepare = prepare_outgoing, .call = connect_request_only, .undo = undo_outgoing}) >
          0);
}

/* ---- Calls that make a descriptor when it is first needed -------------------------------------------------------- */

TEST(conn_next_event) {
    if (!on_loopback()) skip("a device has made it before");
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    int fd = -1;
    setenv("VIADUCT_CONNECT_RETRY_MS", "0", 1); /* the refusal is there at once: nothing has been waited for before */
    open_both();
    prepare_outgoing();
    CHECK_OK(connect_request_only());
    CHECK_EQ(next_event(pair.client), RPMA_CONN_REJECTED);
    leave_descriptors(0);
    int waited = rpma_conn_next_event(pair.client->conn, &event);
    int asked = rpma_conn_get_event_fd(pair.client->conn, &fd);
    give_descriptors_back();
    CHECK_RC(waited, RPMA_E_PROVIDER);
    CHECK_RC(asked, RPMA_E_PROVIDER);
    CHECK(event == RPMA_CONN_UNDEFINED && fd == -1);
    undo_outgoing();
}

static void connect_with_channel(bool shared) {
    struct rpma_conn_cfg *cfg = NULL;
    open_both();
    CHECK_OK(rpma_conn_cfg_new(&cfg));
    CHECK_OK(rpma_conn_cfg_set_compl_channel(cfg, shared));
    CHECK_OK(rpma_conn_req_new(pair.client->peer, test_address(), pair.server->port, cfg, &pair.client->req));
    CHECK_OK(rpma_conn_cfg_delete(&cfg));
    CHECK_OK(connect_request_only());
}

TEST(cq_get_fd) {
    if (!on_loopback()) skip("a device has made it before");
    struct rpma_cq *cq = NULL;
    int fd = -1;
    connect_with_channel(false);
    CHECK_OK(rpma_conn_get_cq(pair.client->conn, &cq));
    leave_descriptors(0);
    int asked = rpma_cq_get_fd(cq, &fd);
    give_descriptors_back();
    CHECK_RC(asked, RPMA_E_PROVIDER);
    CHECK_EQ(fd, -1);
    undo_outgoing();
}

TEST(conn_get_compl_fd) {
    if (!on_loopback()) skip("a device has made it before");
    int fd = -1;
    connect_with_channel(true);
    leave_descriptors(0);
    int asked = rpma_conn_get_compl_fd(pair.client->conn, &fd);
    give_descriptors_back();
    CHECK_RC(asked, RPMA_E_PROVIDER);
    CHECK_EQ(fd, -1);
    undo_outgoing();
}
