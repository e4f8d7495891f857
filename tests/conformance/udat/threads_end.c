/* SPDX-License-Identifier: BSD-3-Clause
 * Objects that end, in one thread, while others are at what they told last. A sanitizer sees more of it.
 */
#include "scene.h"

#include <pthread.h>
#include <sched.h>

static unsigned rounds(void) { return on_loopback() ? 60 : 5; }

static pthread_t started(void *(*function)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    return thread;
}

static void joined(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0); }

/* A thread that takes events of an EVD until it is told to stop. */
typedef struct {
    DAT_EVD_HANDLE evd;
    _Atomic unsigned taken;
    _Atomic bool stop;
    pthread_t thread;
} Taker;

static void *take_events(void *argument) {
    Taker *taker = argument;
    DAT_EVENT event;
    while (!taker->stop) {
        if (dat_evd_dequeue(taker->evd, &event) == DAT_SUCCESS) {
            ++taker->taken;
        } else {
            sched_yield();
        }
    }
    return NULL;
}

static void taker_start(Taker *taker) { taker->thread = started(take_events, taker); }

static void taker_stop(Taker *taker) {
    taker->stop = true;
    joined(taker->thread);
}

/* ---- Endpoints and windows --------------------------------------------------------------------------------------- */

TEST(ends__endpoints_whose_failure_is_taken) {
    const Pair pair = open_pair_here((Options){0});
    Taker taker = {.evd = pair.client->evds[CONN]};
    const DAT_CONN_QUAL qual = unused_qual();
    taker_start(&taker);
    for (unsigned i = 0; i < rounds(); ++i) {
        DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
        CHECK_OK(request_to(pair.client, ep, qual));
        for (unsigned turn = 0; turn < i % 4; ++turn) sched_yield();
        CHECK_OK(dat_ep_free(ep));
    }
    taker_stop(&taker);
    side_close(pair.server);
    side_close(pair.client);
}

/* Completions that may wake nobody are looked at as they are taken. */
TEST(ends__endpoints_whose_completions_are_taken) {
    const Options options = {.request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG,
                             .recv_flags = DAT_COMPLETION_UNSIGNALLED_FLAG};
    Side *side = new_side(NULL);
    side_open(side, options);
    Taker taker = {.evd = side->evds[RECV]};
    const DAT_CONN_QUAL qual = unused_qual();
    taker_start(&taker);
    for (unsigned i = 0; i < rounds(); ++i) {
        DAT_EP_HANDLE ep = side->ep;
        for (int n = 0; n < 4; ++n) CHECK_OK(post(side, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8}));
        CHECK_OK(request_to(side, ep, qual));
        DAT_EVENT event = next_event(side, CONN); /* the receives are flushed by then */
        CHECK(event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED);
        side->ep = new_ep(side, options);
        CHECK_OK(dat_ep_free(ep));
    }
    taker_stop(&taker);
    side_close(side);
}

TEST(ends__windows_whose_binds_are_taken) {
    const Pair pair = connected_pair_here((Options){0});
    Taker taker = {.evd = pair.server->evds[REQUEST]};
    const DAT_RMR_COOKIE cookie = {.as_64 = 3};
    taker_start(&taker);
    for (unsigned i = 0; i < rounds(); ++i) {
        DAT_LMR_TRIPLET part = piece(pair.server, 0, 64);
        DAT_RMR_CONTEXT context;
        DAT_RMR_HANDLE rmr = new_rmr(pair.server->pz);
        CHECK_OK(dat_rmr_bind(rmr, pair.server->lmr, &part, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, pair.server->ep,
                              cookie, DAT_COMPLETION_DEFAULT_FLAG, &context));
        while (i % 2 == 0 && taker.taken <= i) sched_yield();
        CHECK_OK(dat_rmr_free(rmr));
        while (taker.taken <= i) sched_yield();
    }
    taker_stop(&taker);
    pair_close(&pair);
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

static void *hang_up(void *ep) {
    CHECK_OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
    return NULL;
}

/* The thread that hears of the end may free the endpoint before the call that made the end has returned. */
TEST(ends__endpoints_by_who_hears_of_the_end_first) {
    const Pair pair = open_pair_here((Options){0});
    for (unsigned i = 0; i < rounds(); ++i) {
        DAT_EP_HANDLE client = new_ep(pair.client, (Options){0});
        DAT_EP_HANDLE server = new_ep(pair.server, (Options){0});
        CHECK_OK(request_to(pair.client, client, pair.server->qual));
        CHECK_OK(dat_cr_accept(request_on(pair.server->evds[CR]), server, 0, NULL));
        EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
        EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
        pthread_t thread = started(hang_up, client);
        EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
        CHECK_OK(dat_ep_free(client));
        joined(thread);
        EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
        CHECK_OK(dat_ep_free(server));
    }
    side_close(pair.server);
    side_close(pair.client);
}

static void *accept_by_its_endpoint(void *cr) {
    CHECK_OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
    return NULL;
}

/* A reserved service point ends with its request, and its endpoint as soon as the consumer likes. */
TEST(ends__endpoints_of_reserved_service_points) {
    const Pair pair = open_pair_here((Options){0});
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_RSP_HANDLE rsp;
    for (unsigned i = 0; i < rounds(); ++i) {
        DAT_EP_HANDLE client = new_ep(pair.client, (Options){0});
        DAT_EP_HANDLE server = new_ep(pair.server, (Options){0});
        CHECK_OK(dat_rsp_create(pair.server->ia, qual, server, pair.server->evds[CR], &rsp));
        CHECK_OK(request_to(pair.client, client, qual));
        pthread_t thread = started(accept_by_its_endpoint, request_on(pair.server->evds[CR]));
        EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
        CHECK_OK(dat_ep_free(server));
        joined(thread);
        EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
        EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
        CHECK_OK(dat_ep_free(client));
    }
    side_close(pair.server);
    side_close(pair.client);
}

/* ---- Service points ---------------------------------------------------------------------------------------------- */

typedef struct {
    const Side *side;
    DAT_CONN_QUAL qual;
    _Atomic bool stop;
} Passing;

static void *come_and_go(void *argument) {
    Passing *passing = argument;
    DAT_PSP_HANDLE psp;
    while (!passing->stop) {
        CHECK_OK(
            dat_psp_create(passing->side->ia, passing->qual, passing->side->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp));
        CHECK_OK(dat_psp_free(psp));
    }
    return NULL;
}

TEST(ends__service_points_that_requests_are_handed_to) {
    const Pair pair = open_pair_here((Options){0});
    Passing passing = {.side = pair.server, .qual = unused_qual()};
    pthread_t thread = started(come_and_go, &passing);
    for (unsigned i = 0; i < rounds(); ++i) {
        DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
        CHECK_OK(request_to(pair.client, ep, pair.server->qual));
        DAT_CR_HANDLE cr = request_on(pair.server->evds[CR]);
        DAT_RETURN rc = dat_cr_handoff(cr, passing.qual);
        if (rc == DAT_SUCCESS) {
            cr = request_on(pair.server->evds[CR]);
        } else {
            CHECK_RC(rc, DAT_INVALID_PARAMETER);
        }
        CHECK_OK(dat_cr_reject(cr, 0, NULL));
        EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
        CHECK_OK(dat_ep_free(ep));
    }
    passing.stop = true;
    joined(thread);
    side_close(pair.server);
    side_close(pair.client);
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

typedef struct {
    DAT_EVD_HANDLE evd;
    _Atomic unsigned returned;
    _Atomic bool stop;
} Waiting;

static void *wait_again_and_again(void *argument) {
    Waiting *waiting = argument;
    DAT_EVENT event;
    DAT_COUNT more;
    for (; !waiting->stop; ++waiting->returned)
        CHECK_SUB(dat_evd_wait(waiting->evd, DAT_TIMEOUT_INFINITE, 1, &event, &more), DAT_INVALID_STATE,
                  DAT_INVALID_STATE_EVD_UNWAITABLE);
    return NULL;
}

/* Whoever begins to wait as the EVD is made unwaitable comes back as well. */
TEST(ends__waiting_as_it_begins) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    Waiting waiting = {.evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG)};
    pthread_t thread = started(wait_again_and_again, &waiting);
    for (unsigned i = 0; i < rounds(); ++i) {
        for (unsigned turn = 0; turn < i % 4; ++turn) sched_yield();
        CHECK_OK(dat_evd_set_unwaitable(waiting.evd));
        const unsigned before = waiting.returned;
        while (waiting.returned == before) sched_yield();
        waiting.stop = i + 1 == rounds();
        CHECK(waiting.stop || dat_evd_clear_unwaitable(waiting.evd) == DAT_SUCCESS);
    }
    joined(thread);
    CHECK_OK(dat_evd_free(waiting.evd));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}
