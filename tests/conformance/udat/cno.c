/* SPDX-License-Identifier: BSD-3-Clause
 * dat_cno_create, dat_cno_query, dat_cno_wait, dat_cno_free, and which EVDs trigger a CNO.
 */
#include "side.h"
#include "waiter.h"

static DAT_IA_HANDLE ia;
static DAT_CNO_HANDLE cno;
static DAT_EVD_HANDLE evd;

static void make_cno(void) {
    ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
}

static void free_cno(void) {
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static void post_event(DAT_EVD_HANDLE to) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    CHECK_OK(dat_evd_post_se(to, &event));
}

static void take_event(DAT_EVD_HANDLE from) {
    DAT_EVENT event;
    CHECK_OK(dat_evd_dequeue(from, &event));
}

/* Waits for a notification, and returns its EVD. */
static DAT_EVD_HANDLE notified_on(DAT_CNO_HANDLE waited) {
    DAT_EVD_HANDLE hint = DAT_HANDLE_NULL;
    CHECK_OK(dat_cno_wait(waited, long_us(), &hint));
    return hint;
}

static void expect_none_on(DAT_CNO_HANDLE waited) {
    DAT_EVD_HANDLE hint = evd;
    CHECK_RC(dat_cno_wait(waited, SHORT_US, &hint), DAT_QUEUE_EMPTY);
    CHECK(hint == DAT_HANDLE_NULL);
}

static void ignore(DAT_PVOID instance, DAT_EVD_HANDLE from) {
    (void)instance;
    (void)from;
}

TEST(cno_create__alone) {
    ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK(cno != DAT_HANDLE_NULL);
    expect_none_on(cno);
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* Every function, or none, with every instance data, which only the function knows. */
TEST(cno_create__every_agent) {
    DAT_CNO_PARAM param;
    static const DAT_AGENT_FUNC functions[] = {NULL, ignore};
    const DAT_PVOID data[] = {NULL, &param, (DAT_PVOID)(uintptr_t)1, (DAT_PVOID) ~(uintptr_t)0};
    ia = open_ia(NULL);
    for (size_t i = 0; i < 2 * sizeof data / sizeof *data; ++i) {
        DAT_OS_WAIT_PROXY_AGENT agent = {data[i / 2], functions[i % 2]};
        CHECK_OK(dat_cno_create(ia, agent, &cno));
        CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
        CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
        CHECK_EQ(param.proxy_type, agent.proxy_agent_func != NULL ? DAT_PROXY_TYPE_AGENT : DAT_PROXY_TYPE_NONE);
        post_event(evd);
        CHECK(notified_on(cno) == evd); /* in addition to the agent */
        take_event(evd);
        CHECK_OK(dat_cno_modify_agent(cno, agent));
        CHECK_OK(dat_evd_free(evd));
        CHECK_OK(dat_cno_free(cno));
    }
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(cno_create__no_place_for_the_handle) {
    ia = open_ia(NULL);
    CHECK_SUB(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(cno_query__without_agent) {
    DAT_CNO_PARAM param;
    make_cno();
    CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    CHECK(param.ia_handle == ia);
    CHECK_EQ(param.proxy_type, DAT_PROXY_TYPE_NONE);
    free_cno();
}

TEST(cno_query__with_agent) {
    DAT_CNO_PARAM param;
    DAT_OS_WAIT_PROXY_AGENT agent = {&param, ignore};
    ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(ia, agent, &cno));
    CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    CHECK_EQ(param.proxy_type, DAT_PROXY_TYPE_AGENT);
    CHECK(param.proxy.agent.instance_data == &param && param.proxy.agent.proxy_agent_func == ignore);
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(cno_query__each_parameter_alone) {
    DAT_CNO_PARAM param;
    DAT_OS_WAIT_PROXY_AGENT agent = {&param, ignore};
    ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(ia, agent, &cno));
    memset(&param, 0xa5, sizeof param);
    CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_IA_HANDLE, &param));
    CHECK(param.ia_handle == ia);
    memset(&param, 0xa5, sizeof param);
    CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_PROXY_TYPE, &param));
    CHECK_EQ(param.proxy_type, DAT_PROXY_TYPE_AGENT);
    memset(&param, 0xa5, sizeof param);
    CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_PROXY, &param));
    CHECK(param.proxy.agent.proxy_agent_func == ignore);
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(cno_query__unknown_parameter) {
    DAT_CNO_PARAM param;
    make_cno();
    CHECK_SUB(dat_cno_query(cno, (DAT_CNO_PARAM_MASK)0x10, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    free_cno();
}

TEST(cno_query__no_place_for_parameters) {
    make_cno();
    CHECK_SUB(dat_cno_query(cno, DAT_CNO_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    free_cno();
}

TEST(cno_wait__time_out) {
    DAT_EVD_HANDLE hint = evd;
    make_cno();
    DAT_TIMEOUT start = clock_us();
    CHECK_RC(dat_cno_wait(cno, 0, &hint), DAT_QUEUE_EMPTY);
    CHECK_AT_ONCE(start);
    start = clock_us();
    CHECK_RC(dat_cno_wait(cno, SHORT_US, &hint), DAT_QUEUE_EMPTY);
    CHECK_TOOK(start, SHORT_US);
    expect_none_on(cno);
    free_cno();
}

TEST(cno_wait__no_place_for_the_evd) {
    make_cno();
    CHECK_SUB(dat_cno_wait(cno, 0, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    free_cno();
}

TEST(cno_wait__an_event_has_come) {
    make_cno();
    post_event(evd);
    CHECK(notified_on(cno) == evd);
    take_event(evd);
    expect_none_on(cno);
    post_event(evd); /* again */
    CHECK(notified_on(cno) == evd);
    free_cno();
}

TEST(cno_wait__until_an_event_comes) {
    make_cno();
    Waiter waiter = {.cno = cno};
    waiter_start(&waiter);
    CHECK(still_waiting(&waiter));
    post_event(evd);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    CHECK(waiter.notified == evd);
    take_event(evd);
    free_cno();
}

TEST(cno_wait__a_signal_interrupts) {
    make_cno();
    Waiter waiter = {.cno = cno};
    waiter_start(&waiter);
    waiter_interrupt(&waiter);
    CHECK_RC(waiter.rc, DAT_INTERRUPTED_CALL);
    free_cno();
}

/* The EVD given is only a hint: both must be looked at. */
TEST(cno_wait__several_evds) {
    DAT_EVD_HANDLE second;
    make_cno();
    CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &second));
    post_event(evd);
    post_event(second);
    DAT_EVD_HANDLE hint = notified_on(cno);
    CHECK(hint == evd || hint == second);
    take_event(evd);
    take_event(second);
    while (dat_cno_wait(cno, SHORT_US, &hint) == DAT_SUCCESS) continue; /* perhaps one for each */
    post_event(second);
    CHECK(notified_on(cno) == second);
    CHECK_OK(dat_evd_free(second));
    free_cno();
}

TEST(cno_wait__completions) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(dat_cno_create(pair.client->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_evd_modify_cno(pair.client->evds[RECV], cno));
    for (unsigned i = 0; i < 3; ++i) {
        Waiter waiter = {.cno = cno};
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
        waiter_start(&waiter);
        CHECK(still_waiting(&waiter));
        CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = i}));
        waiter_join(&waiter);
        CHECK_OK(waiter.rc);
        CHECK(waiter.notified == pair.client->evds[RECV]);
        EXPECT_RECEIVED(pair.client, i);
        EXPECT_DONE(pair.server, i);
    }
    CHECK_OK(dat_evd_modify_cno(pair.client->evds[RECV], DAT_HANDLE_NULL));
    CHECK_OK(dat_cno_free(cno));
    pair_close(&pair);
}

/* A program that takes the events of which dat_evd_wait() tells hears of those for which the EVD had no room. */
TEST(cno_wait__more_completions_than_were_told) {
    enum { COUNT = 10 };
    Pair pair = open_pair_here((Options){0});
    DAT_EVENT event;
    DAT_COUNT more = 0;
    CHECK_OK(dat_cno_create(pair.client->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    evd = DAT_HANDLE_NULL;
    CHECK_OK(dat_evd_create(pair.client->ia, 2, cno, DAT_EVD_DTO_FLAG, &evd));
    pair.client->evds[REQUEST] = evd;
    pair.client->ep = new_ep(pair.client, (Options){0});
    pair_connect(&pair);
    for (unsigned i = 0; i < COUNT; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = i}));
    for (int taken = 0; taken < COUNT;) {
        CHECK(notified_on(cno) == evd);
        if (dat_evd_wait(evd, 0, 1, &event, &more) != DAT_SUCCESS) continue;
        for (++taken; more > 0; --more, ++taken) CHECK_OK(dat_evd_dequeue(evd, &event));
    }
    CHECK_OK(dat_ia_close(pair.client->ia, DAT_CLOSE_ABRUPT_FLAG));
}

TEST(cno_wait__completions_while_receives_are_counted) {
    Pair pair = connected_pair((Options){0});
    const DAT_EVD_HANDLE recv_evd = pair.client->evds[RECV];
    DAT_COUNT count = 1;
    CHECK_OK(dat_cno_create(pair.client->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_evd_modify_cno(recv_evd, cno));
    Waiter waiter = {.cno = cno};
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    waiter_start(&waiter);
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 2}));
    while (count == 1) CHECK_OK(dat_ep_recv_query(pair.client->ep, &count, NULL));
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    CHECK(waiter.notified == recv_evd);
    EXPECT_RECEIVED(pair.client, 1);
    EXPECT_DONE(pair.server, 2);
    CHECK_OK(dat_evd_modify_cno(recv_evd, DAT_HANDLE_NULL));
    CHECK_OK(dat_cno_free(cno));
    pair_close(&pair);
}

TEST(cno_wait__connections_and_requests) {
    Pair pair = open_pair((Options){0});
    CHECK_OK(dat_cno_create(pair.client->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_evd_modify_cno(pair.client->evds[CONN], cno));
    CHECK_OK(dat_evd_modify_cno(pair.client->evds[CR], cno));
    listen_at(pair.client);
    CHECK_OK(connect_to(pair.server, pair.client, NULL, 0));
    CHECK(notified_on(cno) == pair.client->evds[CR]);
    take_request(pair.client);
    CHECK_OK(accept_request(pair.client, NULL, 0));
    CHECK(notified_on(cno) == pair.client->evds[CONN]);
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_OK(dat_evd_modify_cno(pair.client->evds[CONN], DAT_HANDLE_NULL));
    CHECK_OK(dat_evd_modify_cno(pair.client->evds[CR], DAT_HANDLE_NULL));
    CHECK_OK(dat_cno_free(cno));
    pair_close(&pair);
}

TEST(cno_wait__a_waiter_on_the_evd_goes_first) {
    make_cno();
    Waiter waiter = {.evd = evd};
    waiter_start(&waiter);
    post_event(evd);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    expect_none_on(cno);
    free_cno();
}

TEST(cno_wait__the_last_evd_is_freed) {
    DAT_EVD_HANDLE second;
    make_cno();
    CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &second));
    Waiter waiter = {.cno = cno, .notified = evd};
    waiter_start(&waiter);
    CHECK_OK(dat_evd_free(second));
    CHECK(still_waiting(&waiter));
    CHECK_OK(dat_evd_free(evd));
    waiter_join(&waiter);
    CHECK(waiter.notified == DAT_HANDLE_NULL);
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* All who wait are told, although the first of them waits again. */
static void wait_twice(void *first) {
    Waiter *waiter = first;
    waiter_wait(waiter);
    if (waiter->notified == DAT_HANDLE_NULL) (void)dat_cno_wait(waiter->cno, SHORT_US, &waiter->notified);
}

TEST(cno_wait__the_last_evd_is_freed_and_one_waits_again) {
    make_cno();
    Waiter waiters[2] = {{.cno = cno, .notified = evd}, {.cno = cno, .notified = evd}};
    for (unsigned i = 0; i < 2; ++i) sleeper_start(&waiters[i].sleeper, wait_twice, &waiters[i]);
    CHECK_OK(dat_evd_free(evd));
    for (unsigned i = 0; i < 2; ++i) {
        waiter_join(&waiters[i]);
        CHECK_OK(waiters[i].rc);
    }
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(cno_free__an_evd_refers_to_it) {
    make_cno();
    CHECK_SUB(dat_cno_free(cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
    post_event(evd);
    CHECK(notified_on(cno) == evd); /* it is alive */
    free_cno();
}

/* The way to wake who waits that the page on dat_cno_free gives. */
TEST(cno_free__somebody_waits) {
    make_cno();
    CHECK_OK(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
    Waiter waiter = {.cno = cno};
    waiter_start(&waiter);
    CHECK_SUB(dat_cno_free(cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
    CHECK(still_waiting(&waiter));
    CHECK_OK(dat_evd_modify_cno(evd, cno));
    post_event(evd);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    free_cno();
}

TEST(evd_modify_cno__from_one_to_another) {
    DAT_CNO_HANDLE second;
    DAT_EVD_PARAM param;
    make_cno();
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &second));
    CHECK_OK(dat_evd_modify_cno(evd, second));
    CHECK_OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    CHECK(param.cno_handle == second);
    post_event(evd);
    CHECK(notified_on(second) == evd);
    expect_none_on(cno);
    CHECK_OK(dat_cno_free(cno));
    cno = second;
    free_cno();
}

TEST(evd_modify_cno__to_none) {
    DAT_EVD_PARAM param;
    make_cno();
    CHECK_OK(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
    CHECK_OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    CHECK(param.cno_handle == DAT_HANDLE_NULL);
    post_event(evd);
    expect_none_on(cno);
    take_event(evd);
    free_cno();
}

/* Only "when all EVDs the CNO is associated with are freed" are waiters unblocked without an event: here, none was. */
static void check_moved(DAT_CNO_HANDLE elsewhere) {
    Waiter waiter = {.cno = cno};
    waiter_start(&waiter);
    CHECK(still_waiting(&waiter));
    CHECK_OK(dat_evd_modify_cno(evd, elsewhere));
    CHECK(still_waiting(&waiter));
    CHECK_OK(dat_evd_modify_cno(evd, cno));
    post_event(evd);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    CHECK(waiter.notified == evd);
}

TEST(evd_modify_cno__who_waits_goes_on_waiting) {
    DAT_CNO_HANDLE second;
    make_cno();
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &second));
    check_moved(second);
    take_event(evd);
    check_moved(DAT_HANDLE_NULL);
    CHECK_OK(dat_cno_free(second));
    free_cno();
}

/* "Repeat for other CNOs that have blocked waiters" (dat_cno_free): the notification stays with the CNO that got it,
 * also if it has other EVDs. */
TEST(evd_modify_cno__a_notification_from_before) {
    DAT_CNO_HANDLE second;
    DAT_EVD_HANDLE other, hint;
    make_cno();
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &second));
    CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &other));
    post_event(evd);
    CHECK_OK(dat_evd_modify_cno(evd, second));
    CHECK(notified_on(cno) == evd);
    expect_none_on(cno);
    take_event(evd);
    while (dat_cno_wait(second, SHORT_US, &hint) == DAT_SUCCESS) continue; /* perhaps, too */
    post_event(evd);
    CHECK(notified_on(second) == evd);
    CHECK_OK(dat_evd_free(other));
    CHECK_OK(dat_cno_free(cno));
    cno = second;
    free_cno();
}

/* No CNO tells of an EVD that is gone, wherever it was. */
TEST(evd_modify_cno__a_notification_of_an_evd_that_is_freed) {
    DAT_EVD_HANDLE moved;
    make_cno();
    CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &moved));
    post_event(moved);
    CHECK_OK(dat_evd_modify_cno(moved, DAT_HANDLE_NULL));
    CHECK_OK(dat_evd_free(moved));
    expect_none_on(cno);
    post_event(evd);
    CHECK(notified_on(cno) == evd);
    free_cno();
}

TEST(evd_disable__events_do_not_trigger) {
    make_cno();
    CHECK_OK(dat_evd_disable(evd));
    post_event(evd);
    expect_none_on(cno);
    take_event(evd); /* they come all the same */
    CHECK_OK(dat_evd_enable(evd));
    post_event(evd);
    CHECK(notified_on(cno) == evd);
    free_cno();
}

TEST(evd_disable__waiters_on_the_evd_are_woken) {
    make_cno();
    CHECK_OK(dat_evd_disable(evd));
    Waiter waiter = {.evd = evd};
    waiter_start(&waiter);
    post_event(evd);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    free_cno();
}

TEST(evd_set_unwaitable__events_still_trigger) {
    make_cno();
    CHECK_OK(dat_evd_set_unwaitable(evd));
    post_event(evd);
    CHECK(notified_on(cno) == evd);
    CHECK_OK(dat_evd_clear_unwaitable(evd));
    take_event(evd);
    post_event(evd);
    CHECK(notified_on(cno) == evd);
    free_cno();
}

/* "All the waiters on the CNO ... are unblocked with the NULL handle returns ... when all EVDs the CNO is associated
 * with are freed." */
TEST(cno_wait__the_last_evd_is_freed_for_all) {
    Waiter waiters[3];
    make_cno();
    for (int i = 0; i < 3; ++i) {
        waiters[i] = (Waiter){.cno = cno, .notified = evd};
        waiter_start(&waiters[i]);
    }
    CHECK_OK(dat_evd_free(evd));
    for (int i = 0; i < 3; ++i) {
        waiter_join(&waiters[i]);
        CHECK_OK(waiters[i].rc);
        CHECK(waiters[i].notified == DAT_HANDLE_NULL);
    }
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* Events that come while a thread waits for more of them do not trigger the CNO. Where that thread leaves without one,
 * they are for the CNO. */
static void check_untold(void (*end)(Waiter *waiter), DAT_RETURN_TYPE rc) {
    make_cno();
    Waiter waiter = {.evd = evd, .threshold = 3};
    waiter_start(&waiter);
    post_event(evd);
    post_event(evd);
    CHECK(still_waiting(&waiter));
    end(&waiter);
    CHECK_RC(waiter.rc, rc);
    CHECK(notified_on(cno) == evd);
    take_event(evd);
    take_event(evd);
    free_cno();
}

static void forbid_waiting(Waiter *waiter) {
    CHECK_OK(dat_evd_set_unwaitable(waiter->evd));
    waiter_join(waiter);
}

TEST(cno_wait__events_of_a_waiter_that_was_interrupted) { check_untold(waiter_interrupt, DAT_INTERRUPTED_CALL); }
TEST(cno_wait__events_of_a_waiter_that_was_sent_away) { check_untold(forbid_waiting, DAT_INVALID_STATE); }
