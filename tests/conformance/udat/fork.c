/* SPDX-License-Identifier: BSD-3-Clause
 * fork(2): handles of the parent give DAT_INVALID_HANDLE in the child, and whatever that does with them has no
 * effect on the parent. A child can open an IA of its own, and its life does not hide the parent's death.
 */
#include "../support/children.h"
#include "scene.h"

#include <signal.h>

enum { BYTES = 500 };

static Pair pair;

static void send_bytes(Side *from, Side *to, unsigned seed) {
    fill(from, SEND_AT, BYTES, seed);
    CHECK_OK(post(to, (Work){.operation = RECEIVE, .at = RECV_AT, .length = BYTES, .cookie = 1}));
    CHECK_OK(post(from, (Work){.operation = SEND, .at = SEND_AT, .length = BYTES, .cookie = 2}));
    EXPECT_RECEIVED(to, 1);
    EXPECT_DONE(from, 2);
    CHECK(filled(to, RECV_AT, BYTES, seed));
}

/* ---- Handles of the parent --------------------------------------------------------------------------------------- */

#define CHECK_INVALID(call) CHECK_RC(call, DAT_INVALID_HANDLE)

static DAT_CNO_HANDLE cno;
static DAT_RMR_HANDLE rmr;

static void use_inherited(void) {
    Side *side = pair.client;
    DAT_EVENT event;
    DAT_COUNT more;
    DAT_HANDLE made;
    DAT_EP_STATE state;
    DAT_BOOLEAN recv_idle, request_idle;
    DAT_CR_PARAM cr_param;
    DAT_LMR_PARAM lmr_param;
    DAT_RMR_PARAM rmr_param;
    for (int i = SEND; i <= WRITE; ++i) CHECK_INVALID(post(side, (Work){.operation = (Operation)i, .length = 8}));
    for (int i = ASYNC; i < EVDS; ++i) {
        CHECK_INVALID(dat_evd_dequeue(side->evds[i], &event));
        CHECK_INVALID(dat_evd_wait(side->evds[i], DAT_TIMEOUT_INFINITE, 1, &event, &more));
    }
    CHECK_INVALID(dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &made));
    CHECK_INVALID(dat_ep_get_status(side->ep, &state, &recv_idle, &request_idle));
    CHECK_INVALID(request_to(side, side->ep, side->qual));
    CHECK_INVALID(dat_cr_query(pair.server->cr, DAT_CR_FIELD_ALL, &cr_param));
    CHECK_INVALID(accept_request(pair.server, NULL, 0));
    CHECK_INVALID(reject_request(pair.server));
    CHECK_INVALID(dat_lmr_query(side->lmr, DAT_LMR_FIELD_ALL, &lmr_param));
    CHECK_INVALID(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &rmr_param));
    CHECK_INVALID(dat_psp_create(side->ia, side->qual, side->evds[CR], DAT_PSP_CONSUMER_FLAG, &made));
    CHECK_INVALID(dat_rmr_create(side->pz, &made));
    CHECK_INVALID(dat_pz_create(side->ia, &made));
}

static void free_inherited(void) {
    const Side *side = pair.client;
    CHECK_INVALID(dat_ep_disconnect(side->ep, DAT_CLOSE_ABRUPT_FLAG));
    CHECK_INVALID(dat_ep_reset(side->ep));
    CHECK_INVALID(dat_ep_free(side->ep));
    if (pair.server->psp != DAT_HANDLE_NULL) CHECK_INVALID(dat_psp_free(pair.server->psp));
    if (cno != DAT_HANDLE_NULL) CHECK_INVALID(dat_cno_free(cno));
    if (rmr != DAT_HANDLE_NULL) CHECK_INVALID(dat_rmr_free(rmr));
    if (side->srq != DAT_HANDLE_NULL) CHECK_INVALID(dat_srq_free(side->srq));
    for (int i = CR; i < EVDS; ++i) CHECK_INVALID(dat_evd_free(side->evds[i]));
    CHECK_INVALID(dat_lmr_free(side->lmr));
    CHECK_INVALID(dat_pz_free(side->pz));
    CHECK_INVALID(dat_ia_close(side->ia, DAT_CLOSE_GRACEFUL_FLAG));
    CHECK_INVALID(dat_ia_close(side->ia, DAT_CLOSE_ABRUPT_FLAG));
}

TEST(fork__handles_of_the_parent_are_invalid) {
    pair = open_pair_here((Options){.srq = true});
    if (on_loopback() || ia_attributes(pair.client->ia).max_rmrs > 0) rmr = new_rmr(pair.client->pz);
    CHECK_OK(dat_cno_create(pair.client->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    take_request(pair.server);
    const DAT_TIMEOUT start = clock_us();
    join_child(start_child(use_inherited));
    join_child(start_child(free_inherited));
    CHECK_AT_ONCE(start);
    CHECK_OK(accept_request(pair.server, NULL, 0)); /* nothing has happened to the request */
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* With a receive posted, which stays. */
TEST(fork__a_child_that_frees_and_exits_has_no_effect) {
    pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = BYTES, .cookie = 3}));
    join_child(start_child(free_inherited));
    expect_nothing(pair.client);
    expect_nothing(pair.server);
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = BYTES, .cookie = 4}));
    EXPECT_RECEIVED(pair.client, 3);
    EXPECT_DONE(pair.server, 4);
    send_bytes(pair.client, pair.server, 5);
    send_bytes(pair.server, pair.client, 6);
    pair_hang_up(&pair, DAT_CLOSE_GRACEFUL_FLAG);
    side_close(pair.server);
    side_close(pair.client);
}

/* ---- Handles of the child ---------------------------------------------------------------------------------------- */

/* What both processes do once one has asked the other: each sends the same to the other. */
static void talk(Side *side) {
    EXPECT_EVENT(side, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    fill(side, SEND_AT, BYTES, 7);
    CHECK_OK(post(side, (Work){.operation = SEND, .at = SEND_AT, .length = BYTES, .cookie = 2}));
    EXPECT_DONE(side, 2);
    EXPECT_RECEIVED(side, 1);
    CHECK(filled(side, RECV_AT, BYTES, 7));
}

static void call_parent(void) {
    side_open(pair.client, (Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = BYTES, .cookie = 1}));
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    talk(pair.client);
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_GRACEFUL_FLAG));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    side_close(pair.client);
}

TEST(fork__a_child_connects_to_its_parent) {
    pair = (Pair){new_side(NULL), new_side(NULL)};
    side_open(pair.server, (Options){0});
    listen_at(pair.server);
    for (int round = 0; round < 2; ++round) { /* then from a process that has had a connection */
        const pid_t child = start_child(call_parent);
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = BYTES, .cookie = 1}));
        take_request(pair.server);
        CHECK_OK(accept_request(pair.server, NULL, 0));
        talk(pair.server);
        EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
        join_child(child);
        CHECK_OK(dat_ep_reset(pair.server->ep));
    }
    side_close(pair.server);
}

/* ---- Death of the parent ----------------------------------------------------------------------------------------- */

static void do_fork(Side *side, void *heir) {
    (void)side;
    *(pid_t *)heir = start_child(idle);
}

TEST(fork__the_death_of_the_parent_is_told_while_its_child_lives) {
    pid_t heir = 0;
    pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    at(pair.server, do_fork, &heir, sizeof heir);
    const DAT_TIMEOUT start = clock_us();
    peer_kill(pair.server->process);
    const DAT_EVENT_NUMBER end = next_event(pair.client, CONN).event_number;
    if (on_loopback() || end != DAT_CONNECTION_EVENT_DISCONNECTED) CHECK_EQ(end, DAT_CONNECTION_EVENT_BROKEN);
    EXPECT_DTO(pair.client, RECV, 1, DAT_DTO_ERR_FLUSHED);
    CHECK_AT_ONCE(start);
    CHECK(kill(heir, 0) == 0);
    CHECK(kill(heir, SIGKILL) == 0);
    side_close(pair.client);
}
