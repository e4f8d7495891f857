/* SPDX-License-Identifier: BSD-3-Clause
 * dat_evd_wait, dat_evd_dequeue, dat_evd_set_unwaitable, dat_evd_clear_unwaitable: timeouts, thresholds, waiters.
 */
#include "side.h"
#include "waiter.h"

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE evd;

static void make_evd(void) {
    ia = open_ia(NULL);
    evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
}

static void free_evd(void) {
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static void post_events(uintptr_t first, uintptr_t count) {
    for (uintptr_t i = first; i < first + count; ++i) {
        DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
        event.event_data.software_event_data.pointer = (DAT_PVOID)i;
        CHECK_OK(dat_evd_post_se(evd, &event));
    }
}

static void check_event(const DAT_EVENT *event, uintptr_t number) {
    CHECK_EQ(event->event_number, DAT_SOFTWARE_EVENT);
    CHECK(event->evd_handle == evd);
    CHECK_EQ((uintptr_t)event->event_data.software_event_data.pointer, number);
}

static void expect_one(uintptr_t number) {
    DAT_EVENT event;
    CHECK_OK(dat_evd_dequeue(evd, &event));
    check_event(&event, number);
}

TEST(evd_dequeue__in_order) {
    DAT_EVENT event;
    make_evd();
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
    post_events(1, 20);
    for (uintptr_t i = 1; i <= 20; ++i) expect_one(i);
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
    free_evd();
}

/* Programs compare the whole return code of EVDs of completions with DAT_QUEUE_EMPTY, which has no class. */
TEST(evd_dequeue__nothing_on_any_stream) {
    DAT_EVENT event;
    DAT_COUNT more;
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    for (int i = ASYNC; i < EVDS; ++i) {
        CHECK_RC(dat_evd_dequeue(side->evds[i], &event), DAT_QUEUE_EMPTY);
        CHECK_RC(dat_evd_wait(side->evds[i], 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    }
    CHECK_EQ(dat_evd_dequeue(side->evds[RECV], &event), DAT_QUEUE_EMPTY);
    CHECK_EQ(dat_evd_dequeue(side->evds[REQUEST], &event), DAT_QUEUE_EMPTY);
    side_close(side);
}

TEST(evd_dequeue__no_place_for_the_event) {
    make_evd();
    post_events(1, 1);
    CHECK_SUB(dat_evd_dequeue(evd, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    expect_one(1);
    free_evd();
}

TEST(evd_dequeue__while_another_waits) {
    DAT_EVENT event;
    make_evd();
    Waiter waiter = {.evd = evd};
    waiter_start(&waiter);
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_INVALID_STATE);
    post_events(7, 1);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    check_event(&waiter.event, 7);
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
    free_evd();
}

TEST(evd_wait__an_event_is_there) {
    DAT_EVENT event;
    DAT_COUNT more = -1;
    make_evd();
    post_events(1, 3);
    CHECK_OK(dat_evd_wait(evd, 0, 1, &event, &more));
    check_event(&event, 1);
    CHECK_EQ(more, 2);
    CHECK_OK(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
    check_event(&event, 2);
    CHECK_EQ(more, 1);
    free_evd();
}

TEST(evd_wait__until_an_event_comes) {
    make_evd();
    Waiter waiter = {.evd = evd, .more = -1};
    waiter_start(&waiter);
    CHECK(still_waiting(&waiter));
    post_events(5, 1);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    check_event(&waiter.event, 5);
    CHECK_EQ(waiter.more, 0);
    free_evd();
}

TEST(evd_wait__time_out) {
    DAT_EVENT event;
    DAT_COUNT more = -1;
    make_evd();
    DAT_TIMEOUT start = clock_us();
    CHECK_RC(dat_evd_wait(evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    CHECK_AT_ONCE(start);
    CHECK_EQ(more, 0);
    more = -1;
    start = clock_us();
    CHECK_RC(dat_evd_wait(evd, SHORT_US, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    CHECK_TOOK(start, SHORT_US);
    CHECK_EQ(more, 0);
    free_evd();
}

TEST(evd_wait__too_few_events_for_the_threshold) {
    DAT_EVENT event;
    DAT_COUNT more = -1;
    make_evd();
    post_events(1, 2);
    const DAT_TIMEOUT start = clock_us();
    CHECK_RC(dat_evd_wait(evd, SHORT_US, 3, &event, &more), DAT_TIMEOUT_EXPIRED);
    CHECK_TOOK(start, SHORT_US);
    CHECK_EQ(more, 2);
    expect_one(1); /* no event was taken */
    expect_one(2);
    free_evd();
}

TEST(evd_wait__threshold) {
    DAT_EVENT event;
    DAT_COUNT more = -1;
    make_evd();
    post_events(1, 4);
    CHECK_OK(dat_evd_wait(evd, 0, 4, &event, &more));
    check_event(&event, 1);
    CHECK_EQ(more, 3);
    CHECK_OK(dat_evd_wait(evd, 0, 2, &event, &more));
    check_event(&event, 2);
    CHECK_EQ(more, 2);
    free_evd();
}

TEST(evd_wait__the_threshold_wakes) {
    make_evd();
    Waiter waiter = {.evd = evd, .threshold = 3};
    waiter_start(&waiter);
    post_events(1, 2);
    CHECK(still_waiting(&waiter));
    post_events(3, 1);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    check_event(&waiter.event, 1);
    CHECK_EQ(waiter.more, 2);
    expect_one(2);
    expect_one(3);
    free_evd();
}

TEST(evd_wait__invalid_threshold) {
    DAT_EVENT event;
    DAT_COUNT more;
    DAT_EVD_PARAM param;
    make_evd();
    CHECK_OK(dat_evd_query(evd, DAT_EVD_FIELD_EVD_QLEN, &param));
    CHECK_SUB(dat_evd_wait(evd, 0, 0, &event, &more), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_SUB(dat_evd_wait(evd, 0, -1, &event, &more), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_SUB(dat_evd_wait(evd, 0, param.evd_qlen + 1, &event, &more), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_RC(dat_evd_wait(evd, 0, param.evd_qlen, &event, &more), DAT_TIMEOUT_EXPIRED);
    free_evd();
}

TEST(evd_wait__no_place_for_results) {
    DAT_EVENT event;
    DAT_COUNT more;
    make_evd();
    post_events(1, 1);
    CHECK_SUB(dat_evd_wait(evd, 0, 1, NULL, &more), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    CHECK_SUB(dat_evd_wait(evd, 0, 1, &event, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    expect_one(1);
    free_evd();
}

TEST(evd_wait__while_another_waits) {
    DAT_EVENT event;
    DAT_COUNT more;
    make_evd();
    Waiter waiter = {.evd = evd};
    waiter_start(&waiter);
    CHECK_RC(dat_evd_wait(evd, 0, 1, &event, &more), DAT_INVALID_STATE);
    post_events(1, 1);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    CHECK_RC(dat_evd_wait(evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED); /* and now it may */
    free_evd();
}

TEST(evd_wait__a_signal_interrupts) {
    make_evd();
    Waiter waiter = {.evd = evd};
    waiter_start(&waiter);
    waiter_interrupt(&waiter);
    CHECK_RC(waiter.rc, DAT_INTERRUPTED_CALL);
    post_events(1, 1);
    expect_one(1);
    free_evd();
}

/* A thread may wait while another one frees what it waits on. */
TEST(evd_wait__the_evd_is_freed) {
    const DAT_EVD_FLAGS flags[] = {DAT_EVD_SOFTWARE_FLAG, DAT_EVD_DTO_FLAG};
    ia = open_ia(NULL);
    for (int i = 0; i < 2; ++i) {
        Waiter waiter = {.evd = new_evd(ia, flags[i])};
        waiter_start(&waiter);
        CHECK_OK(dat_evd_free(waiter.evd));
        waiter_join(&waiter);
        CHECK_RC(waiter.rc, DAT_ABORT);
    }
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(evd_set_unwaitable__waits_fail_and_dequeues_do_not) {
    DAT_EVENT event;
    DAT_COUNT more;
    make_evd();
    CHECK_OK(dat_evd_set_unwaitable(evd));
    CHECK_SUB(dat_evd_wait(evd, 0, 1, &event, &more), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
    post_events(1, 2);
    CHECK_SUB(dat_evd_wait(evd, long_us(), 1, &event, &more), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
    expect_one(1);
    CHECK_OK(dat_evd_clear_unwaitable(evd));
    CHECK_OK(dat_evd_wait(evd, 0, 1, &event, &more));
    check_event(&event, 2);
    free_evd();
}

TEST(evd_set_unwaitable__wakes_who_waits) {
    make_evd();
    Waiter waiter = {.evd = evd};
    waiter_start(&waiter);
    CHECK_OK(dat_evd_set_unwaitable(evd));
    waiter_join(&waiter);
    CHECK_RC(waiter.rc, DAT_INVALID_STATE);
    CHECK_OK(dat_evd_clear_unwaitable(evd));
    Waiter again = {.evd = evd};
    waiter_start(&again);
    CHECK(still_waiting(&again));
    post_events(1, 1);
    waiter_join(&again);
    CHECK_OK(again.rc);
    free_evd();
}

TEST(evd_set_unwaitable__wakes_who_waits_for_completions) {
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    Waiter waiter = {.evd = side->evds[RECV]};
    waiter_start(&waiter);
    CHECK_OK(dat_evd_set_unwaitable(side->evds[RECV]));
    waiter_join(&waiter);
    CHECK_RC(waiter.rc, DAT_INVALID_STATE);
    CHECK_OK(dat_evd_clear_unwaitable(side->evds[RECV]));
    side_close(side);
}

TEST(evd_wait__until_a_completion_comes) {
    Pair pair = connected_pair((Options){0});
    Waiter waiter = {.evd = pair.client->evds[RECV]};
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 77}));
    waiter_start(&waiter);
    CHECK(still_waiting(&waiter));
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 78}));
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    CHECK_EQ(waiter.event.event_number, DAT_DTO_COMPLETION_EVENT);
    CHECK_EQ(waiter.event.event_data.dto_completion_event_data.user_cookie.as_64, 77);
    CHECK(waiter.event.evd_handle == pair.client->evds[RECV]);
    EXPECT_DONE(pair.server, 78);
    pair_close(&pair);
}

TEST(evd_wait__threshold_of_completions) {
    Pair pair = connected_pair((Options){0});
    Waiter waiter = {.evd = pair.client->evds[RECV], .threshold = 3};
    for (unsigned i = 0; i < 3; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
    waiter_start(&waiter);
    for (unsigned i = 0; i < 2; ++i) {
        CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = i}));
        EXPECT_DONE(pair.server, i);
    }
    CHECK(still_waiting(&waiter));
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 2}));
    EXPECT_DONE(pair.server, 2);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    CHECK_EQ(waiter.event.event_data.dto_completion_event_data.user_cookie.as_64, 0);
    CHECK_EQ(waiter.more, 2);
    EXPECT_RECEIVED(pair.client, 1);
    EXPECT_RECEIVED(pair.client, 2);
    pair_close(&pair);
}

TEST(evd_wait__a_threshold_where_the_sender_decides) {
    DAT_EVENT event;
    DAT_COUNT more;
    Side *side = new_side(NULL);
    side_open(side, (Options){.recv_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG,
                              .request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    CHECK_RC(dat_evd_wait(side->evds[RECV], 0, 2, &event, &more), DAT_INVALID_STATE);
    CHECK_RC(dat_evd_wait(side->evds[REQUEST], 0, 2, &event, &more), DAT_INVALID_STATE);
    CHECK_RC(dat_evd_wait(side->evds[RECV], 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    side_close(side);
}

/* Whoever asks how many receives have not completed takes no event from who waits for one. */
TEST(evd_wait__completions_while_receives_are_counted) {
    Pair pair = connected_pair((Options){0});
    Waiter waiter = {.evd = pair.client->evds[RECV]};
    DAT_COUNT count = 1;
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    waiter_start(&waiter);
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 2}));
    while (count == 1) CHECK_OK(dat_ep_recv_query(pair.client->ep, &count, NULL));
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    CHECK_EQ(waiter.event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
    EXPECT_DONE(pair.server, 2);
    pair_close(&pair);
}

/* ---- Which completions wake, once endpoints have changed ----------------------------------------------------------
 */

static void expect_that_a_message_wakes(const Pair *pair) {
    Waiter waiter = {.evd = pair->server->evds[RECV]};
    pair_connect(pair);
    CHECK_OK(post(pair->server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    waiter_start(&waiter);
    CHECK_OK(post(pair->client, (Work){.operation = SEND, .length = 8, .cookie = 2}));
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    EXPECT_DONE(pair->client, 2);
}

TEST(evd_wait__after_an_endpoint_where_the_sender_decides) {
    Pair pair = open_pair_here((Options){.recv_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG});
    CHECK_OK(dat_ep_free(pair.server->ep));
    pair.server->ep = new_ep(pair.server, (Options){0});
    expect_that_a_message_wakes(&pair);
    pair_close(&pair);
}

TEST(evd_wait__where_the_sender_does_not_decide_any_more) {
    Pair pair = open_pair_here((Options){.recv_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG});
    DAT_EP_PARAM param;
    memset(&param, 0, sizeof param);
    param.ep_attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
    CHECK_OK(dat_ep_modify(pair.server->ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param));
    expect_that_a_message_wakes(&pair);
    pair_close(&pair);
}

/* "The Consumer cannot specify" other flags than those of the endpoints that share the EVD; stock does not mind. */
TEST(evd_wait__where_endpoints_differ) {
    Pair pair = open_pair_here((Options){.recv_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG});
    DAT_EP_HANDLE first = pair.server->ep, second = DAT_HANDLE_NULL;
    const DAT_EVD_HANDLE *evds = pair.server->evds;
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_RETURN rc =
        dat_ep_create(pair.server->ia, pair.server->pz, evds[RECV], evds[REQUEST], evds[CONN], &attributes, &second);
    if (rc != DAT_SUCCESS) {
        CHECK_RC(rc, DAT_INVALID_PARAMETER);
        return;
    }
    pair.server->ep = second;
    expect_that_a_message_wakes(&pair);
    CHECK_OK(dat_ep_free(first));
    pair_close(&pair);
}
