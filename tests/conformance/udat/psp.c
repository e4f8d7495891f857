/* SPDX-License-Identifier: BSD-3-Clause
 * Public service points: dat_psp_create, dat_psp_create_any, dat_psp_query, dat_psp_free.
 */
#include "scene.h"

#include <stdlib.h>
#include <sys/resource.h>

static Side *open_side(void) {
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    return side;
}

static DAT_RETURN create(const Side *side, DAT_CONN_QUAL qual, DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp) {
    return dat_psp_create(side->ia, qual, side->evds[CR], flags, psp);
}

/* Two endpoints, one connected to the qualifier and one that accepts it, and disconnected again. */
static void check_reachable(const Side *side, DAT_CONN_QUAL qual) {
    DAT_EP_HANDLE active = new_ep(side, (Options){0}), passive = new_ep(side, (Options){0});
    CHECK_OK(request_to(side, active, qual));
    CHECK_OK(dat_cr_accept(request_on(side->evds[CR]), passive, 0, NULL));
    for (int i = 0; i < 2; ++i) {
        DAT_EVENT event = WAIT_ON(side->evds[CONN], DAT_CONNECTION_EVENT_ESTABLISHED);
        DAT_EP_HANDLE ep = event.event_data.connect_event_data.ep_handle;
        CHECK(ep == active || ep == passive);
    }
    CHECK_OK(dat_ep_disconnect(active, DAT_CLOSE_ABRUPT_FLAG));
    for (int i = 0; i < 2; ++i) WAIT_ON(side->evds[CONN], DAT_CONNECTION_EVENT_DISCONNECTED);
    CHECK_OK(dat_ep_free(active));
    CHECK_OK(dat_ep_free(passive));
}

static void check_unreachable(const Side *side, DAT_CONN_QUAL qual) {
    DAT_EP_HANDLE ep = new_ep(side, (Options){0});
    CHECK_OK(request_to(side, ep, qual));
    WAIT_ON(side->evds[CONN], DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    CHECK_OK(dat_ep_free(ep));
}

/* ---- dat_psp_create ---------------------------------------------------------------------------------------------- */

TEST(psp_create__takes_requests) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_OK(create(side, side->qual, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK(psp != DAT_HANDLE_NULL);
    check_reachable(side, side->qual);
}

/* "Persistent": it generates many requests. */
TEST(psp_create__takes_many_requests) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_OK(create(side, side->qual, DAT_PSP_CONSUMER_FLAG, &psp));
    for (int i = 0; i < 4; ++i) check_reachable(side, side->qual);
}

TEST(psp_create__what_an_arrival_says) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    DAT_EVENT event = WAIT_ON(pair.server->evds[CR], DAT_CONNECTION_REQUEST_EVENT);
    const DAT_CR_ARRIVAL_EVENT_DATA *arrival = &event.event_data.cr_arrival_event_data;
    CHECK(event.evd_handle == pair.server->evds[CR]);
    CHECK(arrival->sp_handle.psp_handle == pair.server->psp);
    CHECK_EQ(arrival->conn_qual, pair.server->qual);
    CHECK(arrival->local_ia_address_ptr != NULL);
    CHECK(memcmp(arrival->local_ia_address_ptr, &pair.server->address, sizeof(struct sockaddr)) == 0);
    CHECK_EQ(arrival->truncate_flag, DAT_FALSE);
}

TEST(psp_create__several_on_one_evd) {
    Side *side = open_side();
    DAT_PSP_HANDLE first = DAT_HANDLE_NULL, second = DAT_HANDLE_NULL;
    DAT_CONN_QUAL other = unused_qual();
    CHECK_OK(create(side, side->qual, DAT_PSP_CONSUMER_FLAG, &first));
    CHECK_OK(create(side, other, DAT_PSP_CONSUMER_FLAG, &second));
    CHECK(first != second);
    check_reachable(side, other);
    check_reachable(side, side->qual);
}

TEST(psp_create__from_another_process) {
    const Pair pair = connected_pair((Options){0});
    tell(pair.client, pair.server);
    pair_close(&pair);
}

/* The provider makes an endpoint for each request; rejected, it is the provider's again. */
TEST(psp_create__endpoints_of_the_provider) {
    const Scene scene = scene_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    CHECK(scene.ep != DAT_HANDLE_NULL);
    CHECK_OK(dat_cr_reject(scene.cr, 0, NULL));
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

TEST(psp_create__an_endpoint_of_the_provider_returns_to_it__invalid_handle) {
    const Scene scene = scene_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    DAT_EP_PARAM param;
    CHECK_OK(dat_cr_reject(scene.cr, 0, NULL));
    CHECK_SUB(dat_ep_query(scene.ep, DAT_EP_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

TEST(psp_create__a_qualifier_in_use) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL, second = DAT_HANDLE_NULL;
    CHECK_OK(create(side, side->qual, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_RC(create(side, side->qual, DAT_PSP_CONSUMER_FLAG, &second), DAT_CONN_QUAL_IN_USE);
    check_reachable(side, side->qual);
}

TEST(psp_create__a_qualifier_in_use_in_another_process) {
    const Pair pair = open_pair((Options){0});
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_RC(create(pair.client, pair.server->qual, DAT_PSP_CONSUMER_FLAG, &psp), DAT_CONN_QUAL_IN_USE);
    pair_connect(&pair);
    pair_close(&pair);
}

TEST(psp_create__a_qualifier_of_a_reserved_point) {
    const Scene scene = scene_in(DAT_EP_STATE_RESERVED);
    DAT_RSP_PARAM param;
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_OK(dat_rsp_query(scene.rsp, DAT_RSP_FIELD_ALL, &param));
    CHECK_RC(create(scene.pair.server, param.conn_qual, DAT_PSP_CONSUMER_FLAG, &psp), DAT_CONN_QUAL_IN_USE);
}

/* Qualifiers have 64 bits. Those of more than 16 stand for a port each, but for a few that share one. */
TEST(psp_create__a_large_qualifier) {
    Side *side = open_side();
    const DAT_CONN_QUAL large = UINT64_C(0x100000000) + side->qual;
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_PSP_PARAM param;
    CHECK_OK(create(side, large, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_OK(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
    CHECK_EQ(param.conn_qual, large);
    check_reachable(side, large);
}

TEST(psp_create__unknown_flags) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_SUB(create(side, side->qual, (DAT_PSP_FLAGS)2, &psp), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    CHECK_SUB(create(side, side->qual, (DAT_PSP_FLAGS)7, &psp), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
}

TEST(psp_create__nowhere_to_put_the_handle) {
    Side *side = open_side();
    CHECK_SUB(create(side, side->qual, DAT_PSP_CONSUMER_FLAG, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
}

TEST(psp_create__an_evd_without_requests) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_SUB(dat_psp_create(side->ia, side->qual, side->evds[CONN], DAT_PSP_CONSUMER_FLAG, &psp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_CR);
}

TEST(psp_create__objects_of_another_kind) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_SUB(dat_psp_create(side->pz, side->qual, side->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_IA);
    CHECK_SUB(dat_psp_create(side->ia, side->qual, side->pz, DAT_PSP_CONSUMER_FLAG, &psp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_CR);
}

TEST(psp_create__no_object__invalid_handle) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_BAD_HANDLES(dat_psp_create(bad, side->qual, side->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_BAD_HANDLES(dat_psp_create(side->ia, side->qual, bad, DAT_PSP_CONSUMER_FLAG, &psp));
}

TEST(psp_create__holds_its_evd) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_OK(create(side, side->qual, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_SUB(dat_evd_free(side->evds[CR]), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    CHECK_OK(dat_psp_free(psp));
    side_close(side);
}

/* ---- dat_psp_create_any ------------------------------------------------------------------------------------------ */

static DAT_RETURN create_any(const Side *side, DAT_CONN_QUAL *qual, DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp) {
    return dat_psp_create_any(side->ia, qual, side->evds[CR], flags, psp);
}

TEST(psp_create_any__finds_a_qualifier) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_PSP_PARAM param;
    DAT_CONN_QUAL qual = 0;
    CHECK_OK(create_any(side, &qual, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK(psp != DAT_HANDLE_NULL);
    CHECK(qual >= (on_loopback() ? 49152 : 1024)); /* "from nonprivileged ports" */
    CHECK_OK(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
    CHECK_EQ(param.conn_qual, qual);
    check_reachable(side, qual);
}

TEST(psp_create_any__finds_another_each_time) {
    Side *side = open_side();
    DAT_PSP_HANDLE psps[4];
    DAT_CONN_QUAL quals[4];
    for (int i = 0; i < 4; ++i) CHECK_OK(create_any(side, &quals[i], DAT_PSP_CONSUMER_FLAG, &psps[i]));
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < i; ++j) CHECK(quals[i] != quals[j] && psps[i] != psps[j]);
    }
    for (int i = 0; i < 4; ++i) check_reachable(side, quals[i]);
    for (int i = 0; i < 4; ++i) CHECK_OK(dat_psp_free(psps[i]));
}

TEST(psp_create_any__endpoints_of_the_provider) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_CONN_QUAL qual = 0;
    DAT_CR_PARAM param;
    CHECK_OK(create_any(side, &qual, DAT_PSP_PROVIDER_FLAG, &psp));
    CHECK_OK(request_to(side, side->ep, qual));
    CHECK_OK(dat_cr_query(request_on(side->evds[CR]), DAT_CR_FIELD_ALL, &param));
    CHECK_EQ(state_of(param.local_ep_handle), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
}

typedef struct {
    DAT_CONN_QUAL first, end;
} Quals;

static void do_listen_at_each(Side *side, void *argument) {
    const Quals *quals = argument;
    struct rlimit limit;
    DAT_PSP_HANDLE psp;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (DAT_CONN_QUAL qual = quals->first; qual < quals->end; ++qual) {
        DAT_RETURN rc = dat_psp_create(side->ia, qual, side->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp);
        if (DAT_GET_TYPE(rc) == DAT_INSUFFICIENT_RESOURCES) skip("the limit of file descriptors is too low");
        CHECK_OK(rc);
    }
}

/* Helper processes listen at all qualifiers that the call may choose, on a device that no other program uses. */
TEST(psp_create_any__all_are_in_use) {
    enum { FIRST = 49152, END = 65535, PROCESSES = 3 };
    if (!on_loopback()) skip("ports of a device are those of its host");
    CHECK(setenv("CONFORMANCE_IA", "viaduct-lo6", 1) == 0);
    Peer *processes[PROCESSES];
    for (int i = 0; i < PROCESSES; ++i) processes[i] = peer_start();
    for (DAT_CONN_QUAL i = 0; i < PROCESSES; ++i) {
        Quals quals = {FIRST + i * (END - FIRST) / PROCESSES, FIRST + (i + 1) * (END - FIRST) / PROCESSES};
        Side *listener = new_side(processes[i]);
        side_open(listener, (Options){0});
        at(listener, do_listen_at_each, &quals, sizeof quals);
    }
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_CONN_QUAL qual = 0;
    CHECK_RC(create_any(side, &qual, DAT_PSP_CONSUMER_FLAG, &psp), DAT_CONN_QUAL_UNAVAILABLE);
    CHECK(psp == DAT_HANDLE_NULL && qual == 0);
    side_close(side);
}

TEST(psp_create_any__invalid_arguments) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_CONN_QUAL qual = 0;
    CHECK_SUB(create_any(side, &qual, (DAT_PSP_FLAGS)2, &psp), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    CHECK_SUB(create_any(side, &qual, (DAT_PSP_FLAGS)7, &psp), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    CHECK_SUB(create_any(side, NULL, DAT_PSP_CONSUMER_FLAG, &psp), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(create_any(side, &qual, DAT_PSP_CONSUMER_FLAG, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
}

TEST(psp_create_any__objects_of_another_kind) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_CONN_QUAL qual = 0;
    CHECK_SUB(dat_psp_create_any(side->pz, &qual, side->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_IA);
    CHECK_SUB(dat_psp_create_any(side->ia, &qual, side->evds[CONN], DAT_PSP_CONSUMER_FLAG, &psp), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EVD_CR);
}

TEST(psp_create_any__no_object__invalid_handle) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_CONN_QUAL qual = 0;
    CHECK_BAD_HANDLES(dat_psp_create_any(bad, &qual, side->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_BAD_HANDLES(dat_psp_create_any(side->ia, &qual, bad, DAT_PSP_CONSUMER_FLAG, &psp));
}

/* ---- dat_psp_query ----------------------------------------------------------------------------------------------- */

TEST(psp_query__what_it_was_made_with) {
    Side *side = open_side();
    const DAT_PSP_FLAGS flags[] = {DAT_PSP_CONSUMER_FLAG, DAT_PSP_PROVIDER_FLAG};
    for (int i = 0; i < 2; ++i) {
        DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
        DAT_PSP_PARAM param;
        CHECK_OK(create(side, side->qual, flags[i], &psp));
        CHECK_OK(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
        CHECK(param.ia_handle == side->ia);
        CHECK_EQ(param.conn_qual, side->qual);
        CHECK(param.evd_handle == side->evds[CR]);
        CHECK_EQ(param.psp_flags, flags[i]);
        for (int mask = 0; mask <= DAT_PSP_FIELD_ALL; ++mask) {
            DAT_PSP_PARAM some;
            memset(&some, 0xa5, sizeof some);
            CHECK_OK(dat_psp_query(psp, (DAT_PSP_PARAM_MASK)mask, &some));
            if ((mask & DAT_PSP_FIELD_IA_HANDLE) != 0) CHECK(some.ia_handle == param.ia_handle);
            if ((mask & DAT_PSP_FIELD_CONN_QUAL) != 0) CHECK_EQ(some.conn_qual, param.conn_qual);
            if ((mask & DAT_PSP_FIELD_EVD_HANDLE) != 0) CHECK(some.evd_handle == param.evd_handle);
            if ((mask & DAT_PSP_FIELD_PSP_FLAGS) != 0) CHECK_EQ(some.psp_flags, param.psp_flags);
        }
        CHECK_OK(dat_psp_free(psp));
    }
    side_close(side);
}

TEST(psp_query__nowhere_to_put_it) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_SUB(dat_psp_query(pair.server->psp, DAT_PSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(psp_query__unknown_fields) {
    const Pair pair = open_pair_here((Options){0});
    DAT_PSP_PARAM param;
    CHECK_SUB(dat_psp_query(pair.server->psp, (DAT_PSP_PARAM_MASK)0x40, &param), DAT_INVALID_PARAMETER,
              DAT_INVALID_ARG2);
}

TEST(psp_query__another_kind_of_object) {
    const Scene scene = scene_in(DAT_EP_STATE_RESERVED);
    DAT_PSP_PARAM param;
    CHECK_SUB(dat_psp_query(scene.rsp, DAT_PSP_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
}

TEST(psp_query__no_object__invalid_handle) {
    DAT_PSP_PARAM param;
    CHECK_BAD_HANDLES(dat_psp_query(bad, DAT_PSP_FIELD_ALL, &param));
}

/* ---- dat_psp_free ------------------------------------------------------------------------------------------------ */

TEST(psp_free__nobody_listens_then) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_OK(create(side, side->qual, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_OK(dat_psp_free(psp));
    check_unreachable(side, side->qual);
}

TEST(psp_free__the_qualifier_is_free_again) {
    Side *side = open_side();
    for (int i = 0; i < 3; ++i) {
        DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
        CHECK_OK(create(side, side->qual, DAT_PSP_CONSUMER_FLAG, &psp));
        check_reachable(side, side->qual);
        CHECK_OK(dat_psp_free(psp));
    }
}

/* "This operation shall have no effect on previously generated Connection Requested Events." */
TEST(psp_free__keeps_requests_that_came) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_OK(dat_psp_free(scene.pair.server->psp));
    CHECK_OK(dat_cr_accept(scene.cr, scene.pair.server->ep, 0, NULL));
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(scene.pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST(psp_free__keeps_requests_whose_event_was_not_taken) {
    const Pair pair = open_pair_here((Options){0});
    Side *client = pair.client, *server = pair.server;
    DAT_EP_HANDLE active[] = {client->ep, new_ep(client, (Options){0})};
    DAT_EP_HANDLE passive[] = {server->ep, new_ep(server, (Options){0})};
    DAT_EVENT event;
    DAT_COUNT more = 0;
    for (int i = 0; i < 2; ++i) CHECK_OK(request_to(server, active[i], server->qual));
    CHECK_OK(dat_evd_wait(server->evds[CR], long_us(), 2, &event, &more));
    CHECK_EQ(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
    CHECK_EQ(more, 1);
    CHECK_OK(dat_psp_free(server->psp));
    CHECK_OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, passive[0], 0, NULL));
    CHECK_OK(dat_cr_accept(request_on(server->evds[CR]), passive[1], 0, NULL));
    for (int i = 0; i < 2; ++i) {
        EXPECT_EVENT(client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
        EXPECT_EVENT(server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    }
}

TEST(psp_free__keeps_connections) {
    const Pair pair = connected_pair_here((Options){0});
    CHECK_OK(dat_psp_free(pair.server->psp));
    pair.server->psp = DAT_HANDLE_NULL;
    tell(pair.client, pair.server);
    pair_close(&pair);
}

TEST(psp_free__another_kind_of_object) {
    const Scene scene = scene_in(DAT_EP_STATE_RESERVED);
    CHECK_SUB(dat_psp_free(scene.rsp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
}

TEST(psp_free__no_object__invalid_handle) { CHECK_BAD_HANDLES(dat_psp_free(bad)); }

TEST(psp_free__twice__invalid_handle) {
    Side *side = open_side();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_PSP_PARAM param;
    CHECK_OK(create(side, side->qual, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_OK(dat_psp_free(psp));
    CHECK_SUB(dat_psp_free(psp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
    CHECK_SUB(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
}
