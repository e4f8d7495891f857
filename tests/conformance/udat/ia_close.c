/* SPDX-License-Identifier: BSD-3-Clause
 * dat_ia_close: gracefully, which objects prevent, and abruptly, which takes everything along.
 */
#include "scene.h"
#include "waiter.h"

#pragma weak dat_csp_free

static DAT_RETURN close_gracefully(DAT_IA_HANDLE ia) { return dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG); }
static DAT_RETURN close_abruptly(DAT_IA_HANDLE ia) { return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }

#define CHECK_IN_USE(ia) CHECK_SUB(close_gracefully(ia), DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE)

TEST(ia_close__graceful) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(close_gracefully(ia));
}

TEST(ia_close__graceful_with_an_evd) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_DTO_FLAG);
    CHECK_IN_USE(ia);
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(close_gracefully(ia));
}

TEST(ia_close__graceful_with_a_cno) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_CNO_HANDLE cno;
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_IN_USE(ia);
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(close_gracefully(ia));
}

TEST(ia_close__graceful_with_memory) {
    char memory[4096];
    DAT_LMR_CONTEXT context;
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    CHECK_IN_USE(ia);
    DAT_LMR_HANDLE lmr = new_lmr(ia, pz, memory, sizeof memory, &context);
    CHECK_IN_USE(ia);
    CHECK_OK(dat_lmr_free(lmr));
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(close_gracefully(ia));
}

TEST(ia_close__graceful_with_an_endpoint_and_a_service_point) {
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    CHECK_IN_USE(side->ia);
    listen_at(side);
    CHECK_IN_USE(side->ia);
    CHECK(ep_state(side) == DAT_EP_STATE_UNCONNECTED); /* all is as before */
    side_close(side);
}

TEST(ia_close__abrupt_alone) { CHECK_OK(close_abruptly(open_ia(NULL))); }

TEST(ia_close__abrupt_with_everything) {
    Side *side = new_side(NULL);
    side_open(side, (Options){.srq = true});
    listen_at(side);
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE evd;
    CHECK_OK(dat_cno_create(side->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_evd_create(side->ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
    CHECK_OK(post(side, (Work){.operation = SRQ_RECEIVE, .at = RECV_AT, .length = 8}));
    CHECK_OK(close_abruptly(side->ia));
    CHECK_OK(close_gracefully(open_ia(NULL)));
}

TEST(ia_close__abrupt_when_connected) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8}));
    CHECK_OK(close_abruptly(pair.client->ia));
    DAT_EVENT event = next_event(pair.server, CONN);
    CHECK(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED || event.event_number == DAT_CONNECTION_EVENT_BROKEN);
    throw_away_events(pair.server);
    side_close(pair.server);
}

static void do_close_abruptly(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(close_abruptly(side->ia));
}

static void check_unanswered(DAT_TIMEOUT timeout) {
    Pair pair = open_pair((Options){0});
    CHECK_OK(dat_ep_connect(pair.client->ep, (DAT_IA_ADDRESS_PTR)&pair.server->address, pair.server->qual, timeout, 0,
                            NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
    take_request(pair.server);
    const DAT_TIMEOUT start = clock_us();
    at(pair.server, do_close_abruptly, NULL, 0);
    DAT_EVENT event = next_event(pair.client, CONN);
    CHECK_AT_ONCE(start);
    CHECK(event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
          (!on_loopback() && (event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED ||
                              event.event_number == DAT_CONNECTION_EVENT_UNREACHABLE)));
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECTED);
    side_close(pair.client);
}

TEST(ia_close__abrupt_with_a_request_that_nobody_answered) { check_unanswered(DAT_TIMEOUT_INFINITE); }

TEST(ia_close__abrupt_with_a_request_that_has_a_timeout) { check_unanswered(60 * 1000 * 1000); }

/* "All DAT objects created by the Consumer have been freed": a request is none of them, and is refused. */
TEST(ia_close__graceful_with_a_request_that_nobody_answered) {
    Pair pair = open_pair_here((Options){0});
    Side *client = pair.client, *server = pair.server;
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE requests = new_evd(ia, DAT_EVD_CR_FLAG);
    DAT_PSP_HANDLE psp;
    CHECK_OK(dat_psp_free(server->psp));
    server->psp = DAT_HANDLE_NULL;
    CHECK_OK(dat_psp_create(ia, server->qual, requests, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_OK(connect_to(client, server, NULL, 0));
    WAIT_ON(requests, DAT_CONNECTION_REQUEST_EVENT);
    CHECK_OK(dat_psp_free(psp));
    CHECK_OK(dat_evd_free(requests));
    CHECK_OK(close_gracefully(ia));
    DAT_EVENT event = next_event(client, CONN);
    CHECK(event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
          (!on_loopback() && event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED));
}

TEST(ia_close__handles_are_invalid_afterwards) {
    Side *side = new_side(NULL);
    side_open(side, (Options){.srq = true});
    listen_at(side);
    DAT_CNO_HANDLE cno;
    DAT_RMR_HANDLE rmr = new_rmr(side->pz);
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    DAT_EVENT event;
    DAT_EP_HANDLE connecting = new_ep(side, (Options){0});
    CHECK_OK(dat_cno_create(side->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_rsp_create(side->ia, unused_qual(), side->ep, side->evds[CR], &rsp));
    CHECK_OK(request_to(side, connecting, side->qual));
    DAT_CR_HANDLE cr = request_on(side->evds[CR]);
    DAT_CSP_HANDLE csp = new_csp(side, unused_qual());
    CHECK_OK(close_abruptly(side->ia));
    CHECK_RC(dat_cr_reject(cr, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_free(connecting), DAT_INVALID_HANDLE);
    if (csp != DAT_HANDLE_NULL) CHECK_RC(dat_csp_free(csp), DAT_INVALID_HANDLE);
    CHECK_RC(dat_psp_free(side->psp), DAT_INVALID_HANDLE);
    CHECK_RC(dat_rsp_free(rsp), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_free(side->ep), DAT_INVALID_HANDLE);
    CHECK_RC(dat_srq_free(side->srq), DAT_INVALID_HANDLE);
    CHECK_RC(dat_rmr_free(rmr), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cno_free(cno), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_dequeue(side->evds[RECV], &event), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_dequeue(side->evds[ASYNC], &event), DAT_INVALID_HANDLE);
    CHECK_RC(dat_lmr_free(side->lmr), DAT_INVALID_HANDLE);
    CHECK_RC(dat_pz_free(side->pz), DAT_INVALID_HANDLE);
    CHECK_RC(close_abruptly(side->ia), DAT_INVALID_HANDLE);
}

TEST(ia_close__keeps_an_evd_of_the_consumer) {
    DAT_EVD_HANDLE evd;
    DAT_EVENT event;
    DAT_IA_HANDLE first = open_ia(&evd);
    DAT_IA_HANDLE second = DAT_HANDLE_NULL;
    CHECK_OK(dat_ia_open(test_ia(), EVD_QLEN, &evd, &second));
    CHECK_OK(close_abruptly(second));
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
    CHECK_OK(close_gracefully(first));
}

/* The EVD that was made with an IA goes with it, whoever else uses it. */
TEST(ia_close__ends_the_evd_that_another_instance_uses) {
    DAT_EVD_HANDLE evd;
    DAT_EVD_HANDLE told = DAT_HANDLE_NULL;
    DAT_EVENT event;
    DAT_IA_HANDLE first = open_ia(&evd);
    DAT_IA_HANDLE second = DAT_HANDLE_NULL;
    CHECK_OK(dat_ia_open(test_ia(), EVD_QLEN, &evd, &second));
    CHECK_OK(close_gracefully(first));
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_INVALID_HANDLE);
    CHECK_OK(dat_ia_query(second, &told, 0, NULL, 0, NULL));
    CHECK(told == DAT_EVD_OUT_OF_SCOPE);
    CHECK_OK(close_gracefully(second));
}

TEST(ia_close__abrupt_ends_waiting_on_evds) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    Waiter dto = {.evd = new_evd(ia, DAT_EVD_DTO_FLAG)};
    Waiter software = {.evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG)};
    waiter_start(&dto);
    waiter_start(&software);
    CHECK_OK(close_abruptly(ia));
    waiter_join(&dto);
    waiter_join(&software);
    CHECK_RC(dto.rc, DAT_ABORT);
    CHECK_RC(software.rc, DAT_ABORT);
}

/* The EVD that was made with an IA does not prevent a graceful close. */
TEST(ia_close__graceful_ends_waiting_on_the_asynchronous_evd) {
    Waiter waiter = {0};
    DAT_IA_HANDLE ia = open_ia(&waiter.evd);
    waiter_start(&waiter);
    CHECK_OK(close_gracefully(ia));
    waiter_join(&waiter);
    CHECK_RC(waiter.rc, DAT_ABORT);
}

TEST(ia_close__abrupt_ends_waiting_on_cnos) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    Waiter waiter = {.notified = ia};
    DAT_EVD_HANDLE evd;
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &waiter.cno));
    CHECK_OK(dat_evd_create(ia, 8, waiter.cno, DAT_EVD_SOFTWARE_FLAG, &evd));
    waiter_start(&waiter);
    CHECK_OK(close_abruptly(ia));
    waiter_join(&waiter);
    CHECK(waiter.notified == DAT_HANDLE_NULL);
}

TEST(ia_close__invalid_flags) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_SUB(dat_ia_close(ia, (DAT_CLOSE_FLAGS)2), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(close_gracefully(ia));
}
