/* SPDX-License-Identifier: BSD-3-Clause
 * dat_evd_create, dat_evd_query, dat_evd_free, dat_evd_resize: every stream and pair of streams, states, lengths.
 */
#include "scene.h"

#pragma weak dat_csp_free

enum { STREAMS = 6 };

/* In the order of evd_stream_merging_supported. */
static const DAT_EVD_FLAGS streams[STREAMS] = {DAT_EVD_SOFTWARE_FLAG,   DAT_EVD_CR_FLAG,       DAT_EVD_DTO_FLAG,
                                               DAT_EVD_CONNECTION_FLAG, DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG};

static void close_ia(DAT_IA_HANDLE ia) { CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)); }

static DAT_EVD_PARAM query(DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask) {
    DAT_EVD_PARAM param;
    memset(&param, 0xff, sizeof param); /* contradictory states, and no valid value of another parameter */
    CHECK_OK(dat_evd_query(evd, mask, &param));
    return param;
}

static void post_event(DAT_EVD_HANDLE evd, uintptr_t number) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    event.event_data.software_event_data.pointer = (DAT_PVOID)number;
    CHECK_OK(dat_evd_post_se(evd, &event));
}

static void expect_software_event(DAT_EVD_HANDLE evd, uintptr_t number) {
    DAT_EVENT event;
    CHECK_OK(dat_evd_dequeue(evd, &event));
    CHECK_EQ(event.event_number, DAT_SOFTWARE_EVENT);
    CHECK_EQ((uintptr_t)event.event_data.software_event_data.pointer, number);
}

TEST(evd_create__each_stream) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    for (int i = 0; i < STREAMS; ++i) {
        DAT_EVD_HANDLE evd = new_evd(ia, streams[i]);
        DAT_EVD_PARAM param = query(evd, DAT_EVD_FIELD_ALL);
        DAT_EVENT event;
        CHECK(param.ia_handle == ia && param.cno_handle == DAT_HANDLE_NULL);
        CHECK(param.evd_qlen >= EVD_QLEN);
        CHECK_EQ(param.evd_flags, streams[i]);
        CHECK_RC(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
        CHECK_OK(dat_evd_free(evd));
    }
    close_ia(ia);
}

/* Streams that the provider says can be merged can; the others cannot. */
TEST(evd_create__each_pair_of_streams) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_PROVIDER_ATTR attributes;
    CHECK_OK(dat_ia_query(ia, &evd, 0, NULL, DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED, &attributes));
    for (int i = 0; i < STREAMS; ++i) {
        for (int j = 0; j < STREAMS; ++j) {
            DAT_RETURN rc = dat_evd_create(ia, 8, DAT_HANDLE_NULL, streams[i] | streams[j], &evd);
            CHECK((rc == DAT_SUCCESS) == (attributes.evd_stream_merging_supported[i][j] == DAT_TRUE));
            if (rc == DAT_SUCCESS) CHECK_EQ(query(evd, DAT_EVD_FIELD_ALL).evd_flags, streams[i] | streams[j]);
            if (rc == DAT_SUCCESS) CHECK_OK(dat_evd_free(evd));
        }
    }
    close_ia(ia);
}

TEST(evd_create__all_streams) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG);
    post_event(evd, 1);
    expect_software_event(evd, 1);
    CHECK_OK(dat_evd_free(evd));
    close_ia(ia);
}

TEST(evd_create__unknown_stream) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd;
    const DAT_EVD_FLAGS flags[] = {0, 0x2, DAT_EVD_DTO_FLAG | 0x2, 0x200};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; ++i)
        CHECK_SUB(dat_evd_create(ia, 8, DAT_HANDLE_NULL, flags[i], &evd), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    close_ia(ia);
}

TEST(evd_create__invalid_length) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd;
    CHECK_SUB(dat_evd_create(ia, 0, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_evd_create(ia, -5, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    close_ia(ia);
}

/* The most that the IA supports; without a limit the case is skipped. */
static DAT_COUNT max_length(DAT_IA_HANDLE ia) {
    DAT_EVD_HANDLE evd;
    DAT_IA_ATTR attributes;
    CHECK_OK(dat_ia_query(ia, &evd, DAT_IA_FIELD_IA_MAX_EVD_QLEN, &attributes, 0, NULL));
    CHECK(!on_loopback() || attributes.max_evd_qlen < INT32_MAX);
    if (attributes.max_evd_qlen == INT32_MAX) skip("EVDs may have any length");
    return attributes.max_evd_qlen;
}

TEST(evd_create__too_long) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd;
    DAT_COUNT length = max_length(ia);
    CHECK_RC(dat_evd_create(ia, length + 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd), DAT_INSUFFICIENT_RESOURCES);
    if (on_loopback()) {
        CHECK_OK(dat_evd_create(ia, length, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
        CHECK_OK(dat_evd_free(evd));
    }
    close_ia(ia);
}

TEST(evd_create__no_place_for_the_handle) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_SUB(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    close_ia(ia);
}

TEST(evd_query__a_new_evd_is_enabled_and_waitable) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    DAT_EVD_STATE state = query(evd, DAT_EVD_FIELD_EVD_STATE).evd_state;
    CHECK((state & DAT_EVD_STATE_ENABLED) && !(state & DAT_EVD_STATE_DISABLED));
    CHECK((state & DAT_EVD_STATE_WAITABLE) && !(state & DAT_EVD_STATE_UNWAITABLE));
    CHECK_OK(dat_evd_free(evd));
    close_ia(ia);
}

TEST(evd_query__tells_states) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    for (int i = 0; i < 2; ++i) { /* the second time is no-op */
        CHECK_OK(dat_evd_disable(evd));
        CHECK_OK(dat_evd_set_unwaitable(evd));
        DAT_EVD_STATE state = query(evd, DAT_EVD_FIELD_EVD_STATE).evd_state;
        CHECK((state & DAT_EVD_STATE_DISABLED) && !(state & DAT_EVD_STATE_ENABLED));
        CHECK((state & DAT_EVD_STATE_UNWAITABLE) && !(state & DAT_EVD_STATE_WAITABLE));
    }
    for (int i = 0; i < 2; ++i) {
        CHECK_OK(dat_evd_enable(evd));
        CHECK_OK(dat_evd_clear_unwaitable(evd));
        DAT_EVD_STATE state = query(evd, DAT_EVD_FIELD_EVD_STATE).evd_state;
        CHECK((state & DAT_EVD_STATE_ENABLED) && !(state & DAT_EVD_STATE_DISABLED));
        CHECK((state & DAT_EVD_STATE_WAITABLE) && !(state & DAT_EVD_STATE_UNWAITABLE));
    }
    CHECK_OK(dat_evd_free(evd));
    close_ia(ia);
}

TEST(evd_query__every_set) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE evd;
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
    const DAT_EVD_PARAM all = query(evd, DAT_EVD_FIELD_ALL);
    CHECK_EQ(all.evd_state & 0xf, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
    CHECK(all.ia_handle == ia && all.evd_qlen >= 8 && all.cno_handle == cno);
    CHECK_EQ(all.evd_flags, DAT_EVD_SOFTWARE_FLAG);
    for (int mask = 0; mask <= DAT_EVD_FIELD_ALL; ++mask) {
        const DAT_EVD_PARAM some = query(evd, (DAT_EVD_PARAM_MASK)mask);
        if ((mask & DAT_EVD_FIELD_IA_HANDLE) != 0) CHECK(some.ia_handle == ia);
        if ((mask & DAT_EVD_FIELD_EVD_QLEN) != 0) CHECK_EQ(some.evd_qlen, all.evd_qlen);
        if ((mask & DAT_EVD_FIELD_EVD_STATE) != 0) CHECK_EQ(some.evd_state, all.evd_state);
        if ((mask & DAT_EVD_FIELD_CNO) != 0) CHECK(some.cno_handle == cno);
        if ((mask & DAT_EVD_FIELD_EVD_FLAGS) != 0) CHECK_EQ(some.evd_flags, all.evd_flags);
    }
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(dat_cno_free(cno));
    close_ia(ia);
}

TEST(evd_query__unknown_parameter) {
    DAT_EVD_PARAM param;
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    CHECK_SUB(dat_evd_query(evd, (DAT_EVD_PARAM_MASK)0x20, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_evd_free(evd));
    close_ia(ia);
}

TEST(evd_query__no_place_for_parameters) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    CHECK_SUB(dat_evd_query(evd, DAT_EVD_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_OK(dat_evd_free(evd));
    close_ia(ia);
}

TEST(evd_free__events_are_lost) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    for (uintptr_t i = 0; i < 5; ++i) post_event(evd, i);
    CHECK_OK(dat_evd_free(evd));
    close_ia(ia);
}

/* Nobody can answer a request whose event is lost. Its client is told, and no object is left that the IA would wait
 * for: the consumer has created none. */
TEST(evd_free__requests_are_refused) {
    const Pair pair = open_pair((Options){0});
    Side *server = pair.client, *client = pair.server; /* the other way round: the server is here */
    DAT_EVENT event;
    DAT_COUNT requests = 0;
    listen_at(server);
    CHECK_OK(connect_to(client, server, NULL, 0));
    while (requests == 0) CHECK_RC(dat_evd_wait(server->evds[CR], SHORT_US, 2, &event, &requests), DAT_TIMEOUT_EXPIRED);
    CHECK_OK(dat_psp_free(server->psp));
    server->psp = DAT_HANDLE_NULL;
    side_close(server);
    event = next_event(client, CONN);
    CHECK(event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
          (event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED && !on_loopback()));
    side_close(client);
}

TEST(evd_free__fed_by_an_endpoint) {
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    CHECK_SUB(dat_evd_free(side->evds[RECV]), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    CHECK_SUB(dat_evd_free(side->evds[REQUEST]), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    CHECK_SUB(dat_evd_free(side->evds[CONN]), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    expect_nothing(side); /* they are all alive */
    side_close(side);
}

TEST(evd_free__fed_by_a_service_point) {
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    listen_at(side);
    CHECK_SUB(dat_evd_free(side->evds[CR]), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    side_close(side);
}

TEST(evd_free__fed_by_a_reserved_service_point) {
    Side *side = new_side(NULL);
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    side_open(side, (Options){0});
    CHECK_OK(dat_rsp_create(side->ia, unused_qual(), side->ep, side->evds[CR], &rsp));
    CHECK_SUB(dat_evd_free(side->evds[CR]), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    CHECK_OK(dat_rsp_free(rsp));
    side_close(side);
}

TEST(evd_free__fed_by_a_common_service_point) {
    Side *side = new_side(NULL);
    NEED(dat_csp_free);
    side_open(side, (Options){0});
    DAT_CSP_HANDLE csp = new_csp(side, unused_qual());
    CHECK_SUB(dat_evd_free(side->evds[CR]), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    CHECK_OK(dat_csp_free(csp));
    side_close(side);
}

TEST(evd_free__of_the_ia) {
    DAT_EVD_HANDLE evd;
    DAT_IA_HANDLE ia = open_ia(&evd);
    CHECK_RC(dat_evd_free(evd), DAT_INVALID_STATE);
    close_ia(ia);
}

TEST(evd_resize__keeps_events) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd;
    CHECK_OK(dat_evd_create(ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
    for (uintptr_t i = 0; i < 3; ++i) post_event(evd, i);
    expect_software_event(evd, 0);
    CHECK_OK(dat_evd_resize(evd, 100));
    CHECK(query(evd, DAT_EVD_FIELD_ALL).evd_qlen >= 100);
    for (uintptr_t i = 3; i < 101; ++i) post_event(evd, i);
    for (uintptr_t i = 1; i < 101; ++i) expect_software_event(evd, i);
    CHECK_OK(dat_evd_free(evd));
    close_ia(ia);
}

/* It returns DAT_INVALID_STATE, or stays longer than it was asked to be; either way nothing is lost. */
TEST(evd_resize__below_what_is_queued) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    for (uintptr_t i = 0; i < 10; ++i) post_event(evd, i);
    CHECK_RC(dat_evd_resize(evd, 9), DAT_INVALID_STATE);
    CHECK(query(evd, DAT_EVD_FIELD_ALL).evd_qlen >= EVD_QLEN);
    CHECK_OK(dat_evd_resize(evd, 10));
    for (uintptr_t i = 0; i < 10; ++i) expect_software_event(evd, i);
    CHECK_OK(dat_evd_free(evd));
    close_ia(ia);
}

TEST(evd_resize__with_completions) {
    Pair pair = connected_pair_here((Options){0});
    for (unsigned i = 0; i < 4; ++i) {
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = i}));
    }
    CHECK_OK(dat_evd_resize(pair.client->evds[REQUEST], 2 * EVD_QLEN));
    for (unsigned i = 0; i < 4; ++i) EXPECT_DONE(pair.client, i);
    tell(pair.client, pair.server);
    pair_close(&pair);
}

TEST(evd_resize__invalid_length) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    CHECK_SUB(dat_evd_resize(evd, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_evd_resize(evd, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_evd_free(evd));
    close_ia(ia);
}

TEST(evd_resize__too_long) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    DAT_COUNT length = max_length(ia);
    CHECK_EITHER(dat_evd_resize(evd, length + 1), DAT_INSUFFICIENT_RESOURCES, DAT_INVALID_PARAMETER);
    CHECK(query(evd, DAT_EVD_FIELD_ALL).evd_qlen >= EVD_QLEN);
    CHECK_OK(dat_evd_free(evd));
    close_ia(ia);
}
