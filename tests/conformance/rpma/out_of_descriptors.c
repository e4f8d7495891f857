/* SPDX-License-Identifier: BSD-3-Clause
 * RPMA_E_PROVIDER of calls that need file descriptors: with none left, with one left, and so on until the call
 * succeeds.
 */
#include "side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

/* ---- The sweep --------------------------------------------------------------------------------------------------- */

enum { LIMIT = 200 };

static int hoard[LIMIT];
static int hoarded;

/* Takes all file descriptors except this many. */
static void leave(int count) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = LIMIT;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) hoard[hoarded++] = fd;
    CHECK(errno == EMFILE);
    for (; count > 0; --count) close(hoard[--hoarded]);
}

static void give_back(void) {
    while (hoarded > 0) close(hoard[--hoarded]);
}

/* A call under test, what makes it ready and what undoes it; both of them may be NULL. */
typedef struct {
    void (*prepare)(void);
    int (*call)(void);
    void (*undo)(void);
} Sweep;

/* How many descriptors the call needs. */
static int sweep(Sweep under_test) {
    if (UNDER_SANITIZER) skip("a sanitizer needs file descriptors of its own");
    for (int count = 0;; ++count) {
        if (under_test.prepare != NULL) under_test.prepare();
        leave(count);
        int rc = under_test.call();
        give_back();
        if (rc == 0) {
            if (under_test.undo != NULL) under_test.undo();
            return count;
        }
        if (rc == RPMA_E_NOMEM && !on_loopback()) continue; /* so rdma-core calls it */
        CHECK_RC(rc, RPMA_E_PROVIDER);
    }
}

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
    CHECK(sweep((Sweep){NULL, make_peer, unmake_peer}) > 0);
}

static struct ibv_context *context;

static int ask_for_odp(void) {
    int is_capable = 0;
    return rpma_utils_ibv_context_is_odp_capable(context, &is_capable);
}

TEST(utils_ibv_context_is_odp_capable) {
    if (!on_loopback()) skip("libibverbs does not survive it");
    CHECK_OK(rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    CHECK(sweep((Sweep){NULL, ask_for_odp, NULL}) > 0);
}

static int make_ep(void) {
    return rpma_ep_listen(pair.server->peer, test_address(), pair.server->port, &pair.server->ep);
}
static void unmake_ep(void) { CHECK_OK(rpma_ep_shutdown(&pair.server->ep)); }

TEST(ep_listen) {
    open_both();
    CHECK(sweep((Sweep){NULL, make_ep, unmake_ep}) > 0);
}

static struct rpma_srq *srq;

static int make_srq(void) { return rpma_srq_new(pair.client->peer, NULL, &srq); }
static void unmake_srq(void) { CHECK_OK(rpma_srq_delete(&srq)); }

TEST(srq_new) {
    open_both();
    sweep((Sweep){NULL, make_srq, unmake_srq});
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
    CHECK(sweep((Sweep){NULL, connect_outgoing, undo_outgoing}) > 0);
}

static void prepare_outgoing(void) { request_to(pair.client, pair.server); }

static int connect_request_only(void) {
    int rc = rpma_conn_req_connect(&pair.client->req, NULL, &pair.client->conn);
    CHECK(pair.client->req == NULL && (rc == 0) == (pair.client->conn != NULL));
    return rc;
}

TEST(conn_req_connect__outgoing) {
    open_both();
    CHECK(sweep((Sweep){prepare_outgoing, connect_request_only, undo_outgoing}) > 0);
}

/* ---- Calls that make a descriptor when it is first needed -------------------------------------------------------- */

TEST(conn_next_event) {
    if (UNDER_SANITIZER) skip("a sanitizer needs file descriptors of its own");
    if (!on_loopback()) skip("a device has made it before");
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    int fd = -1;
    setenv("VIADUCT_GRACE_MS", "0", 1); /* the refusal is there at once: nothing has been waited for before */
    open_both();
    prepare_outgoing();
    CHECK_OK(connect_request_only());
    CHECK_EQ(next_event(pair.client), RPMA_CONN_REJECTED);
    leave(0);
    int waited = rpma_conn_next_event(pair.client->conn, &event);
    int asked = rpma_conn_get_event_fd(pair.client->conn, &fd);
    give_back();
    CHECK_RC(waited, RPMA_E_PROVIDER);
    CHECK_RC(asked, RPMA_E_PROVIDER);
    CHECK(event == RPMA_CONN_UNDEFINED && fd == -1);
    undo_outgoing();
}
