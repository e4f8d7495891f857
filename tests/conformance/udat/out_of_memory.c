/* SPDX-License-Identifier: BSD-3-Clause
 * DAT_INSUFFICIENT_RESOURCES of each call that lacks memory.
 */
#include "../support/sweep.h"
#include "side.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#pragma weak dat_cno_fd_create
#pragma weak dat_csp_create
#pragma weak dat_csp_free
#pragma weak dat_ep_common_connect
#pragma weak dat_rmr_create_for_ep

/* ---- The registry ------------------------------------------------------------------------------------------------ */

static DAT_RETURN list_providers(void) {
    DAT_PROVIDER_INFO provider;
    DAT_COUNT count;
    return dat_registry_list_providers(1, &count, &(DAT_PROVIDER_INFO *){&provider});
}

TEST(registry_list_providers) { allocates((Sweep){.call = list_providers}); }

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE evd;
static DAT_CNO_HANDLE cno;
static DAT_PZ_HANDLE pz;
static DAT_LMR_HANDLE lmr;
static DAT_RMR_HANDLE rmr;
static DAT_SRQ_HANDLE srq;
static DAT_EP_HANDLE ep;
static DAT_PSP_HANDLE psp;
static uint8_t memory[4096];

static DAT_RETURN make_ia(void) {
    evd = DAT_HANDLE_NULL;
    return dat_ia_open(test_ia(), EVD_QLEN, &evd, &ia);
}
static void unmake_ia(void) { CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)); }

/* Loading the provider is not part of it. */
TEST(ia_open) {
    CHECK_OK(make_ia());
    DAT_IA_HANDLE first = ia;
    allocates((Sweep){.call = make_ia, .undo = unmake_ia});
    ia = first;
    unmake_ia();
}

static DAT_RETURN make_evd(void) { return dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &evd); }
static DAT_RETURN make_dto_evd(void) {
    return dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &evd);
}
static void unmake_evd(void) { CHECK_OK(dat_evd_free(evd)); }

TEST(evd_create) {
    ia = open_ia(NULL);
    allocates((Sweep){.call = make_evd, .undo = unmake_evd});
    allocates((Sweep){.call = make_dto_evd, .undo = unmake_evd});
    unmake_ia();
}

static DAT_COUNT length = EVD_QLEN;

static DAT_RETURN lengthen_evd(void) { return dat_evd_resize(evd, length += EVD_QLEN); }

TEST(evd_resize) {
    ia = open_ia(NULL);
    evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    allocates((Sweep){.call = lengthen_evd});
    unmake_evd();
    unmake_ia();
}

static DAT_RETURN post_event(void) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    return dat_evd_post_se(evd, &event);
}

TEST(evd_post_se__needs_no_memory) {
    ia = open_ia(NULL);
    evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    for (int i = 0; i < EVD_QLEN; ++i) allocates_nothing((Sweep){.call = post_event});
    unmake_evd();
    unmake_ia();
}

static DAT_RETURN make_cno(void) { return dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno); }
static DAT_RETURN make_fd_cno(void) {
    DAT_FD fd;
    return dat_cno_fd_create(ia, &fd, &cno);
}
static void ignore(DAT_PVOID instance, DAT_EVD_HANDLE from) {
    (void)instance;
    (void)from;
}
static DAT_RETURN make_cno_with_agent(void) {
    return dat_cno_create(ia, (DAT_OS_WAIT_PROXY_AGENT){memory, ignore}, &cno);
}
static void unmake_cno(void) { CHECK_OK(dat_cno_free(cno)); }

TEST(cno_create) {
    ia = open_ia(NULL);
    allocates((Sweep){.call = make_cno, .undo = unmake_cno});
    allocates((Sweep){.call = make_cno_with_agent, .undo = unmake_cno});
    unmake_ia();
}

TEST(cno_fd_create) {
    NEED(dat_cno_fd_create);
    ia = open_ia(NULL);
    allocates((Sweep){.call = make_fd_cno, .undo = unmake_cno});
    unmake_ia();
}

static DAT_RETURN make_pz(void) { return dat_pz_create(ia, &pz); }
static void unmake_pz(void) { CHECK_OK(dat_pz_free(pz)); }

TEST(pz_create) {
    ia = open_ia(NULL);
    allocates((Sweep){.call = make_pz, .undo = unmake_pz});
    unmake_ia();
}

static DAT_RETURN make_lmr(void) {
    DAT_LMR_CONTEXT context;
    DAT_RMR_CONTEXT rmr_context;
    return register_virtual(ia, pz, memory, sizeof memory, DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, &rmr_context);
}
static void unmake_lmr(void) { CHECK_OK(dat_lmr_free(lmr)); }
static DAT_RETURN make_rmr(void) { return dat_rmr_create(pz, &rmr); }
static void unmake_rmr(void) { CHECK_OK(dat_rmr_free(rmr)); }
static DAT_RETURN make_srq(void) {
    DAT_SRQ_ATTR attributes = {64, 2, 0};
    return dat_srq_create(ia, pz, &attributes, &srq);
}
static void unmake_srq(void) { CHECK_OK(dat_srq_free(srq)); }

static void open_zone(void) {
    ia = open_ia(NULL);
    pz = new_pz(ia);
}
static void close_zone(void) {
    unmake_pz();
    unmake_ia();
}

TEST(lmr_create) {
    open_zone();
    allocates((Sweep){.call = make_lmr, .undo = unmake_lmr});
    close_zone();
}

TEST(rmr_create) {
    open_zone();
    CHECK_OK(dat_rmr_free(new_rmr(pz)));
    allocates((Sweep){.call = make_rmr, .undo = unmake_rmr});
    close_zone();
}

static DAT_RETURN make_rmr_for_ep(void) { return dat_rmr_create_for_ep(pz, &rmr); }

TEST(rmr_create_for_ep) {
    NEED(dat_rmr_create_for_ep);
    open_zone();
    CHECK_OK(dat_rmr_free(new_rmr(pz)));
    allocates((Sweep){.call = make_rmr_for_ep, .undo = unmake_rmr});
    close_zone();
}

TEST(srq_create) {
    open_zone();
    allocates((Sweep){.call = make_srq, .undo = unmake_srq});
    close_zone();
}

static DAT_COUNT srq_length = 64;

static DAT_RETURN lengthen_srq(void) { return dat_srq_resize(srq, srq_length += 64); }

TEST(srq_resize) {
    open_zone();
    CHECK_OK(make_srq());
    if (on_loopback()) {
        allocates_nothing((Sweep){.call = lengthen_srq});
    } else {
        may_allocate((Sweep){.call = lengthen_srq});
    }
    unmake_srq();
    close_zone();
}

/* ---- Endpoints and connections ----------------------------------------------------------------------------------- */

static Pair pair;

static DAT_RETURN make_ep(void) {
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    const DAT_EVD_HANDLE *evds = pair.client->evds;
    return dat_ep_create(pair.client->ia, pair.client->pz, evds[RECV], evds[REQUEST], evds[CONN], &attributes, &ep);
}
static void unmake_ep(void) { CHECK_OK(dat_ep_free(ep)); }

static DAT_RETURN make_ep_with_srq(void) {
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    const Side *side = pair.client;
    return dat_ep_create_with_srq(side->ia, side->pz, side->evds[RECV], side->evds[REQUEST], side->evds[CONN],
                                  side->srq, &attributes, &ep);
}

static DAT_RETURN make_psp(void) {
    return dat_psp_create(pair.client->ia, pair.client->qual, pair.client->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp);
}
static void unmake_psp(void) { CHECK_OK(dat_psp_free(psp)); }

TEST(ep_create) {
    pair.client = new_side(NULL);
    side_open(pair.client, (Options){0});
    allocates((Sweep){.call = make_ep, .undo = unmake_ep});
    side_close(pair.client);
}

TEST(ep_create_with_srq) {
    pair.client = new_side(NULL);
    side_open(pair.client, (Options){.srq = true});
    allocates((Sweep){.call = make_ep_with_srq, .undo = unmake_ep});
    side_close(pair.client);
}

TEST(psp_create) {
    pair.client = new_side(NULL);
    side_open(pair.client, (Options){0});
    allocates((Sweep){.call = make_psp, .undo = unmake_psp});
    side_close(pair.client);
}

static DAT_RETURN make_psp_anywhere(void) {
    DAT_CONN_QUAL qual;
    return dat_psp_create_any(pair.client->ia, &qual, pair.client->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp);
}

TEST(psp_create_any) {
    pair.client = new_side(NULL);
    side_open(pair.client, (Options){0});
    allocates((Sweep){.call = make_psp_anywhere, .undo = unmake_psp});
    side_close(pair.client);
}

static DAT_RSP_HANDLE rsp;

static DAT_RETURN make_rsp(void) {
    return dat_rsp_create(pair.client->ia, pair.client->qual, pair.client->ep, pair.client->evds[CR], &rsp);
}
static void unmake_rsp(void) { CHECK_OK(dat_rsp_free(rsp)); }

TEST(rsp_create) {
    pair.client = new_side(NULL);
    side_open(pair.client, (Options){0});
    allocates((Sweep){.call = make_rsp, .undo = unmake_rsp});
    side_close(pair.client);
}

static DAT_CSP_HANDLE csp;

static struct sockaddr_storage address_of(const Side *side) {
    struct sockaddr_storage address = side->address;
    in_port_t *port = address.ss_family == AF_INET6 ? &((struct sockaddr_in6 *)&address)->sin6_port
                                                    : &((struct sockaddr_in *)&address)->sin_port;
    *port = htons((uint16_t)side->qual);
    return address;
}
static DAT_RETURN make_csp(void) {
    struct sockaddr_storage address = address_of(pair.client);
    DAT_COMM tcp = {address.ss_family, SOCK_STREAM, 0};
    return dat_csp_create(pair.client->ia, &tcp, (DAT_IA_ADDRESS_PTR)&address, pair.client->evds[CR], &csp);
}
static void unmake_csp(void) { CHECK_OK(dat_csp_free(csp)); }

TEST(csp_create) {
    NEED(dat_csp_create);
    pair.client = new_side(NULL);
    side_open(pair.client, (Options){0});
    allocates((Sweep){.call = make_csp, .undo = unmake_csp});
    side_close(pair.client);
}

/* A connection each time: what fails leaves the endpoint free to be used again, and perhaps a request at the server
 * that nobody waits for any more. */
static DAT_RETURN request(void) { return connect_to(pair.client, pair.server, NULL, 0); }

static bool accept_next(void) {
    take_request(pair.server);
    CHECK_OK(accept_request(pair.server, NULL, 0));
    DAT_EVENT event = next_event(pair.server, CONN);
    if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) return true;
    CHECK_EQ(event.event_number, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
    CHECK_OK(dat_ep_reset(pair.server->ep));
    return false;
}

static void answer(void) {
    while (!accept_next()) continue;
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(dat_ep_reset(pair.client->ep));
    CHECK_OK(dat_ep_reset(pair.server->ep));
}

TEST(ep_connect) {
    pair = open_pair_here((Options){0});
    allocates((Sweep){.call = request, .undo = answer});
    side_close(pair.server);
    side_close(pair.client);
}

/* A request that could not be answered waits for another try. */
static void await_request(void) {
    if (pair.server->cr != DAT_HANDLE_NULL) return;
    CHECK_OK(request());
    take_request(pair.server);
}

static DAT_RETURN accept_awaited(void) {
    DAT_RETURN rc = accept_request(pair.server, NULL, 0);
    if (rc == DAT_SUCCESS) pair.server->cr = DAT_HANDLE_NULL;
    return rc;
}

static void hang_up(void) {
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(dat_ep_reset(pair.client->ep));
    CHECK_OK(dat_ep_reset(pair.server->ep));
}

TEST(cr_accept) {
    pair = open_pair_here((Options){0});
    (on_loopback() ? allocates
                   : may_allocate)((Sweep){.prepare = await_request, .call = accept_awaited, .undo = hang_up});
    side_close(pair.server);
    side_close(pair.client);
}

static DAT_RETURN reject_awaited(void) {
    DAT_RETURN rc = reject_request(pair.server);
    if (rc == DAT_SUCCESS) pair.server->cr = DAT_HANDLE_NULL;
    return rc;
}

static void hear_rejection(void) {
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
    CHECK_OK(dat_ep_reset(pair.client->ep));
}

TEST(cr_reject) {
    pair = open_pair_here((Options){0});
    may_allocate((Sweep){.prepare = await_request, .call = reject_awaited, .undo = hear_rejection});
    side_close(pair.server);
    side_close(pair.client);
}

static DAT_EP_HANDLE original;

static DAT_RETURN duplicate(void) {
    return dat_ep_dup_connect(pair.client->ep, original, DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT);
}

TEST(ep_dup_connect) {
    const Pair first = connected_pair_here((Options){0});
    Side server = *first.server;
    server.ep = new_ep(first.server, (Options){0});
    original = first.client->ep;
    pair = (Pair){new_side(NULL), &server};
    side_open_beside(pair.client, first.client, (Options){0});
    allocates((Sweep){.call = duplicate, .undo = answer});
    CHECK_EQ(ep_state(first.client), DAT_EP_STATE_CONNECTED);
}

static DAT_RETURN request_in_common(void) {
    struct sockaddr_storage address = address_of(pair.server);
    return dat_ep_common_connect(pair.client->ep, (DAT_IA_ADDRESS_PTR)&address, DAT_TIMEOUT_INFINITE, 0, NULL);
}

TEST(ep_common_connect) {
    NEED(dat_ep_common_connect);
    pair = open_pair_here((Options){0});
    allocates((Sweep){.call = request_in_common, .undo = answer});
    side_close(pair.server);
    side_close(pair.client);
}

static DAT_RETURN send_message(void) { return post(pair.client, (Work){.operation = SEND, .length = 8, .cookie = 1}); }
static DAT_RETURN receive_message(void) {
    return post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 2});
}
static DAT_RETURN take_completion(void) {
    DAT_EVENT event;
    return await_event(pair.server->evds[RECV], long_us(), &event);
}

TEST(post__needs_no_memory) {
    pair = connected_pair_here((Options){0});
    allocates_nothing((Sweep){.call = receive_message});
    allocates_nothing((Sweep){.call = send_message});
    allocates_nothing((Sweep){.call = take_completion});
    EXPECT_DONE(pair.client, 1);
    pair_close(&pair);
}

enum { MANY = 300 }; /* more than an EVD has room for at first */

static DAT_RETURN await_many(void) {
    DAT_EVENT event;
    DAT_COUNT more;
    return dat_evd_wait(pair.client->evds[REQUEST], 0, MANY, &event, &more);
}

TEST(evd_wait__keeps_the_completions_that_it_counts) {
    if (!on_loopback()) skip("completions are not there at once");
    if (UNDER_SANITIZER) skip("a sanitizer has taken malloc");
    pair = connected_pair_here((Options){.evd_qlen = MANY, .request_dtos = MANY});
    for (unsigned i = 0; i < MANY; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = i}));
    fail_calls_of_thread(CALL_malloc, 1, true);
    const DAT_RETURN rc = await_many();
    CHECK(restore_calls() > 0);
    CHECK_RC(rc, DAT_TIMEOUT_EXPIRED);
    CHECK_OK(await_many());
    for (unsigned i = 1; i < MANY; ++i) EXPECT_DONE(pair.client, i);
    pair_close(&pair);
}

static void write_often(unsigned count, DAT_UINT64 cookie, DAT_COMPLETION_FLAGS flags) {
    for (unsigned i = 0; i < count; ++i)
        CHECK_OK(post(pair.client,
                      (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = cookie, .flags = flags}));
}

/* What is kept of a request is not kept for ever where it does not complete. */
TEST(suppress__leaves_nothing_behind) {
    if (!on_loopback()) skip("suppressed work may fill its queue");
    if (UNDER_SANITIZER) skip("a sanitizer has taken malloc");
    pair = connected_pair_here((Options){.request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    write_often(1, 1, DAT_COMPLETION_DEFAULT_FLAG);
    write_often(1000, 2, DAT_COMPLETION_SUPPRESS_FLAG);
    const long before = heap_blocks();
    write_often(100000, 3, DAT_COMPLETION_SUPPRESS_FLAG);
    CHECK(heap_blocks() < before + 100);
    EXPECT_DONE(pair.client, 1);
    write_often(1, 4, DAT_COMPLETION_DEFAULT_FLAG);
    EXPECT_DONE(pair.client, 4);
    pair_close(&pair);
}
