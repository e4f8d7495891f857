/* SPDX-License-Identifier: BSD-3-Clause
 * Beyond stock librpma: fork(2). Objects of the parent give RPMA_E_INVAL in the child, and whatever that does with them
 * has no effect on the parent. A child can make objects of its own, and its life does not hide the parent's death.
 */
#include "../support/children.h"
#include "side.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { BYTES = 500, FORKS = 300, THREADS = 3 };

static Pair pair;

static void send_bytes(Side *from, Side *to, unsigned seed) {
    fill(from, SEND_AT, BYTES, seed);
    CHECK_OK(post(to, (Work){.operation = RECV, .at = RECV_AT, .length = BYTES, .context = 1}));
    CHECK_OK(post(from, (Work){.operation = SEND, .at = SEND_AT, .length = BYTES, .context = 2}));
    EXPECT_RECEIVED(to, 1);
    EXPECT_DONE(from, 2);
    CHECK(filled(to, RECV_AT, BYTES, seed));
}

/* ---- Objects of the parent --------------------------------------------------------------------------------------- */

static struct rpma_cq *cq, *srq_rcq; /* which a side does not keep */

static void use_inherited(void) {
    Side *side = pair.client;
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    struct rpma_mr_local *mr = NULL;
    struct rpma_cq *ready = NULL;
    struct ibv_wc wc;
    enum rpma_conn_event event;
    size_t size;
    int timeout_ms;
    for (int i = SEND; i <= FLUSH_PERSISTENT; ++i)
        CHECK_INVAL(post(side, (Work){.operation = (Operation)i, .length = 8}));
    CHECK_INVAL(rpma_cq_get_wc(cq, 1, &wc, NULL));
    CHECK_INVAL(rpma_cq_wait(cq));
    CHECK_INVAL(rpma_cq_wait(srq_rcq));
    CHECK_INVAL(rpma_conn_wait(side->conn, 0, &ready, NULL));
    CHECK_INVAL(rpma_conn_next_event(side->conn, &event));
    CHECK_INVAL(rpma_ep_next_conn_req(side->ep, NULL, &req));
    CHECK_INVAL(rpma_conn_req_new(side->peer, test_address(), side->port, NULL, &req));
    CHECK_INVAL(rpma_conn_req_connect(&side->req, NULL, &conn));
    CHECK_INVAL(rpma_mr_reg(side->peer, side->memory, 8, RPMA_MR_USAGE_SEND, &mr));
    CHECK_INVAL(rpma_mr_remote_get_size(side->target, &size));
    CHECK_INVAL(rpma_conn_cfg_get_timeout(side->cfg, &timeout_ms));
}

static void delete_inherited(void) {
    Side *side = pair.client;
    CHECK_INVAL(rpma_conn_disconnect(side->conn));
    CHECK_INVAL(rpma_conn_delete(&side->conn));
    if (side->req != NULL) CHECK_INVAL(rpma_conn_req_delete(&side->req));
    if (side->ep != NULL) CHECK_INVAL(rpma_ep_shutdown(&side->ep));
    if (side->srq != NULL) CHECK_INVAL(rpma_srq_delete(&side->srq));
    CHECK_INVAL(rpma_conn_cfg_delete(&side->cfg));
    CHECK_INVAL(rpma_mr_remote_delete(&side->target));
    CHECK_INVAL(rpma_mr_dereg(&side->mr));
    CHECK_INVAL(rpma_peer_delete(&side->peer));
}

TEST(fork__calls_with_objects_of_the_parent_are_invalid) {
    Side *side = pair.client = new_side(NULL);
    side_open(side, (Options){.srq = true});
    listen_at(side);
    request_to(side, side);
    connect_request(side);
    request_to(side, side);
    CHECK_OK(rpma_mr_remote_from_descriptor(side->descriptor, sizeof side->descriptor, &side->target));
    CHECK_OK(rpma_conn_get_cq(side->conn, &cq));
    CHECK_OK(rpma_srq_get_rcq(side->srq, &srq_rcq));
    const uint64_t begin = clock_ms();
    join_child(start_child(use_inherited));
    join_child(start_child(delete_inherited));
    CHECK_AT_ONCE(begin);
    CHECK_OK(rpma_conn_req_delete(&side->req));
    next_request(side); /* of the connection: the listener has kept it */
}

/* With a receive posted, which stays. */
TEST(fork__a_child_that_closes_and_exits_has_no_effect) {
    pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECV, .at = RECV_AT, .length = BYTES, .context = 3}));
    join_child(start_child(delete_inherited));
    CHECK(!event_waits(pair.client) && !event_waits(pair.server));
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = BYTES, .context = 4}));
    EXPECT_RECEIVED(pair.client, 3);
    EXPECT_DONE(pair.server, 4);
    send_bytes(pair.client, pair.server, 5);
    send_bytes(pair.server, pair.client, 6);
    pair_close(&pair);
}

/* ---- Objects of the child ---------------------------------------------------------------------------------------- */

/* Connects this side with one of another process, which does the same, and sends to it what it sends to this one. */
static void meet(Side *side) {
    fill(side, SEND_AT, BYTES, 7);
    CHECK_OK(post(side, (Work){.operation = REQ_RECV, .at = RECV_AT, .length = BYTES, .context = 1}));
    connect_request(side);
    EXPECT_EVENT(side, RPMA_CONN_ESTABLISHED);
    CHECK_OK(post(side, (Work){.operation = SEND, .at = SEND_AT, .length = BYTES, .context = 2}));
    struct ibv_wc seen[2] = {next_wc(side, MAIN_CQ), next_wc(side, MAIN_CQ)}; /* in either order */
    CHECK(seen[0].status == IBV_WC_SUCCESS && seen[1].status == IBV_WC_SUCCESS);
    CHECK_EQ(seen[0].wr_id + seen[1].wr_id, 3);
    CHECK(filled(side, RECV_AT, BYTES, 7));
}

static void call_parent(void) {
    side_open(pair.client, (Options){0});
    request_to(pair.client, pair.server);
    meet(pair.client);
    disconnect(pair.client);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    side_close(pair.client);
}

static void expect_call(void) {
    next_request(pair.server);
    meet(pair.server);
    EXPECT_EVENT(pair.server, RPMA_CONN_CLOSED);
    disconnect(pair.server);
}

/* Twice, because children of a process that has had connections are no different. */
TEST(fork__a_child_connects_to_its_parent) {
    pair = (Pair){new_side(NULL), new_side(NULL)};
    side_open(pair.server, (Options){0});
    listen_at(pair.server);
    for (int round = 0; round < 2; ++round) {
        const pid_t child = start_child(call_parent);
        expect_call();
        join_child(child);
        delete_conn(pair.server);
    }
    side_close(pair.server);
}

/* ---- Other threads ----------------------------------------------------------------------------------------------- */

static atomic_bool forked_enough;

/* An error that is logged. */
static void look_for_device(void) {
    struct ibv_context *device = NULL;
    CHECK_RC(rpma_utils_get_ibv_context(ANOTHER_HOST, RPMA_UTIL_IBV_CONTEXT_LOCAL, &device), RPMA_E_PROVIDER);
}

static void *keep_looking(void *unused) {
    while (!forked_enough) look_for_device();
    return unused;
}

TEST(fork__a_child_logs_although_threads_of_its_parent_did) {
    pthread_t threads[THREADS];
    CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR));
    for (int i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, keep_looking, NULL) == 0);
    for (int i = 0; i < FORKS; ++i) join_child(start_child(look_for_device));
    forked_enough = true;
    for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- Death of the parent ----------------------------------------------------------------------------------------- */

static void do_fork(Side *side, void *heir) {
    (void)side;
    *(pid_t *)heir = start_child(idle);
}

TEST(fork__the_death_of_the_parent_is_told_while_its_child_lives) {
    pid_t heir = 0;
    pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}));
    at(pair.server, do_fork, &heir, sizeof heir);
    const uint64_t begin = clock_ms();
    peer_kill(pair.server->process);
    EXPECT_EVENT(pair.client, RPMA_CONN_CLOSED);
    if (!on_loopback()) disconnect(pair.client); /* a device waits for this */
    EXPECT_WC(pair.client, RECV_CQ, 1, IBV_WC_WR_FLUSH_ERR);
    CHECK_AT_ONCE(begin);
    CHECK(kill(heir, 0) == 0);
    CHECK(kill(heir, SIGKILL) == 0);
}
