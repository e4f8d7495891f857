/* SPDX-License-Identifier: BSD-3-Clause
 * Several threads at work at once, with objects of their own and with shared ones, where the provider is thread-safe.
 */
#include "../support/sleeper.h"
#include "scene.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

enum { THREADS = 6 };

static unsigned rounds(void) { return !on_loopback() ? 5 : UNDER_SANITIZER ? 20 : 100; }

static void run_all(void *(*function)(void *), void *arguments, size_t size) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; ++i)
        CHECK(pthread_create(&threads[i], NULL, function, (char *)arguments + i * size) == 0);
    for (size_t i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void need_thread_safety(void) {
    DAT_EVD_HANDLE evd;
    DAT_PROVIDER_ATTR attributes;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(dat_ia_query(ia, &evd, 0, NULL, DAT_PROVIDER_FIELD_IS_THREAD_SAFE, &attributes));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    if (attributes.is_thread_safe == DAT_FALSE) skip("the provider is not thread-safe");
}

static void *make_everything(void *unused) {
    (void)unused;
    uint8_t memory[256];
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE evd;
    DAT_LMR_CONTEXT context;
    for (unsigned i = 0; i < rounds(); ++i) {
        DAT_IA_HANDLE ia = open_ia(NULL);
        DAT_PZ_HANDLE pz = new_pz(ia);
        DAT_LMR_HANDLE lmr = new_lmr(ia, pz, memory, sizeof memory, &context);
        CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
        CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_DTO_FLAG, &evd));
        CHECK_OK(dat_evd_free(evd));
        CHECK_OK(dat_cno_free(cno));
        CHECK_OK(dat_lmr_free(lmr));
        CHECK_OK(dat_pz_free(pz));
        CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    }
    return NULL;
}

TEST(threads__ias_of_their_own) {
    char unused[THREADS];
    need_thread_safety();
    run_all(make_everything, unused, 1);
}

/* ---- A waiter that comes and goes -------------------------------------------------------------------------------- */

/* A thread that waits once in each round, for next to no time. */
typedef struct {
    DAT_EVD_HANDLE evd;
    unsigned rounds;
    pthread_barrier_t gate; /* before each wait, and after it */
    DAT_RETURN rc;          /* of the last one */
} Guest;

static void *wait_for_a_moment(void *argument) {
    Guest *guest = argument;
    for (unsigned i = 0; i < guest->rounds; ++i) {
        DAT_EVENT event;
        DAT_COUNT more;
        pthread_barrier_wait(&guest->gate);
        guest->rc = dat_evd_wait(guest->evd, 1, 1, &event, &more);
        pthread_barrier_wait(&guest->gate);
    }
    return NULL;
}

/* Each event is for one who waits for it, or else the CNO tells of it. */
TEST(threads__an_event_that_comes_when_a_waiter_goes) {
    need_thread_safety();
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_CNO_HANDLE cno;
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    Guest guest = {.rounds = 20 * rounds()};
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, &guest.evd));
    pthread_t thread;
    CHECK(pthread_barrier_init(&guest.gate, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, wait_for_a_moment, &guest) == 0);
    for (unsigned i = 0; i < guest.rounds; ++i) {
        DAT_EVD_HANDLE told = DAT_HANDLE_NULL;
        pthread_barrier_wait(&guest.gate);
        for (volatile unsigned work = i * 7919 % 20000; work > 0; --work) {
        }
        CHECK_OK(dat_evd_post_se(guest.evd, &event));
        pthread_barrier_wait(&guest.gate);
        if (DAT_GET_TYPE(guest.rc) == DAT_TIMEOUT_EXPIRED) {
            CHECK_OK(dat_cno_wait(cno, long_us(), &told));
            CHECK(told == guest.evd);
            CHECK_OK(dat_evd_dequeue(guest.evd, &event));
        } else {
            CHECK_OK(guest.rc);
            (void)dat_cno_wait(cno, 0, &told); /* where the event was there before the waiter */
        }
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

static DAT_IA_HANDLE shared_ia;

static void *make_in_shared_ia(void *unused) {
    (void)unused;
    uint8_t memory[256];
    DAT_LMR_CONTEXT context;
    for (unsigned i = 0; i < 5 * rounds(); ++i) {
        DAT_PZ_HANDLE pz = new_pz(shared_ia);
        DAT_LMR_HANDLE lmr = new_lmr(shared_ia, pz, memory, sizeof memory, &context);
        DAT_EVD_HANDLE evd = new_evd(shared_ia, DAT_EVD_CONNECTION_FLAG);
        CHECK_OK(dat_evd_free(evd));
        CHECK_OK(dat_lmr_free(lmr));
        CHECK_OK(dat_pz_free(pz));
    }
    return NULL;
}

TEST(threads__one_ia) {
    char unused[THREADS];
    need_thread_safety();
    shared_ia = open_ia(NULL);
    run_all(make_in_shared_ia, unused, 1);
    CHECK_OK(dat_ia_close(shared_ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static void *ask_shared_ia(void *unused) {
    (void)unused;
    DAT_PROVIDER_ATTR attributes;
    CHECK_OK(dat_ia_query(shared_ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attributes));
    for (DAT_COUNT i = 0; i < attributes.num_provider_specific_attr; ++i)
        CHECK(attributes.provider_specific_attr[i].name[0] != '\0');
    return NULL;
}

TEST(threads__attributes_of_one_ia) {
    char unused[THREADS];
    need_thread_safety();
    for (unsigned i = 0; i < rounds(); ++i) {
        shared_ia = open_ia(NULL);
        run_all(ask_shared_ia, unused, 1);
        CHECK_OK(dat_ia_close(shared_ia, DAT_CLOSE_GRACEFUL_FLAG));
    }
}

/* Half of the threads post events and the others wait: each event comes to exactly one of them. */
static DAT_EVD_HANDLE shared_evd;
static _Atomic unsigned taken;
static _Atomic unsigned long sum;

static void post_one(uintptr_t number) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    event.event_data.software_event_data.pointer = (DAT_PVOID)number;
    while (DAT_GET_TYPE(dat_evd_post_se(shared_evd, &event)) == DAT_QUEUE_FULL) sched_yield();
}

static void take_one(void) {
    DAT_EVENT event;
    if (dat_evd_dequeue(shared_evd, &event) != DAT_SUCCESS) {
        sched_yield();
        return;
    }
    CHECK_EQ(event.event_number, DAT_SOFTWARE_EVENT);
    sum += (uintptr_t)event.event_data.software_event_data.pointer;
    ++taken;
}

static void *post_or_take(void *argument) {
    bool posts = *(int *)argument % 2 == 0;
    unsigned total = THREADS / 2 * 10 * rounds();
    for (unsigned i = 0; posts && i < 10 * rounds(); ++i) post_one(i + 1);
    while (!posts && taken < total) take_one();
    return NULL;
}

TEST(threads__software_events) {
    int numbers[THREADS];
    need_thread_safety();
    for (int i = 0; i < THREADS; ++i) numbers[i] = i;
    DAT_IA_HANDLE ia = open_ia(NULL);
    shared_evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    run_all(post_or_take, numbers, sizeof *numbers);
    unsigned long each = 10 * rounds();
    CHECK_EQ(taken, THREADS / 2 * each);
    CHECK_EQ(sum, THREADS / 2 * (each * (each + 1) / 2));
    CHECK_OK(dat_evd_free(shared_evd));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* A pair of threads for one connection: one sends, the other receives. */
static Pair pair;

static void *send_all(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < 10 * rounds(); ++i) {
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = i}));
        EXPECT_DONE(pair.client, i);
    }
    return NULL;
}

static void *receive_all(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < 10 * rounds(); ++i) {
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = i}));
        EXPECT_RECEIVED(pair.server, i);
    }
    return NULL;
}

TEST(threads__both_ends_of_a_connection) {
    pthread_t sender, receiver;
    need_thread_safety();
    pair = connected_pair_here((Options){0});
    CHECK(pthread_create(&sender, NULL, send_all, NULL) == 0);
    CHECK(pthread_create(&receiver, NULL, receive_all, NULL) == 0);
    CHECK(pthread_join(sender, NULL) == 0 && pthread_join(receiver, NULL) == 0);
    pair_close(&pair);
}

/* ---- Two threads, of which one succeeds -------------------------------------------------------------------------- */

typedef enum { ACCEPT, REJECT, HANDOFF, CONNECT } Call;
enum { ANSWERS = CONNECT };

typedef struct {
    Call call;
    DAT_CR_HANDLE cr;
    const Side *side;
    DAT_EP_HANDLE ep;
    DAT_CONN_QUAL qual; /* to connect to, or to hand off to */
    DAT_RETURN rc;
    pthread_barrier_t *gate;
} Rival;

static void *make_call(void *argument) {
    Rival *rival = argument;
    pthread_barrier_wait(rival->gate);
    switch (rival->call) {
        case ACCEPT: rival->rc = dat_cr_accept(rival->cr, rival->ep, 0, NULL); break;
        case REJECT: rival->rc = dat_cr_reject(rival->cr, 0, NULL); break;
        case HANDOFF: rival->rc = dat_cr_handoff(rival->cr, rival->qual); break;
        case CONNECT: rival->rc = request_to(rival->side, rival->ep, rival->qual); break;
    }
    return NULL;
}

/* Both calls at the same time. Returns which one succeeded. */
static int winner_of(Rival rivals[2]) {
    pthread_barrier_t gate;
    pthread_t threads[2];
    CHECK(pthread_barrier_init(&gate, NULL, 2) == 0);
    for (int i = 0; i < 2; ++i) {
        rivals[i].gate = &gate;
        CHECK(pthread_create(&threads[i], NULL, make_call, &rivals[i]) == 0);
    }
    for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_barrier_destroy(&gate) == 0);
    CHECK_EQ((rivals[0].rc == DAT_SUCCESS) + (rivals[1].rc == DAT_SUCCESS), 1);
    return rivals[0].rc == DAT_SUCCESS ? 0 : 1;
}

static void hang_up(DAT_EP_HANDLE ep, const Pair *ends) {
    CHECK_OK(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_EVENT(ends->client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    EXPECT_EVENT(ends->server, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
}

TEST(threads__two_answers_to_one_request) {
    need_thread_safety();
    const Pair ends = open_pair_here((Options){0});
    const DAT_CONN_QUAL other = unused_qual();
    DAT_PSP_HANDLE psp;
    CHECK_OK(dat_psp_create(ends.server->ia, other, ends.server->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp));
    for (unsigned i = 0; i < 2 * rounds(); ++i) {
        DAT_EP_HANDLE client = new_ep(ends.client, (Options){0});
        CHECK_OK(request_to(ends.client, client, ends.server->qual));
        const DAT_CR_HANDLE cr = request_on(ends.server->evds[CR]);
        Rival rivals[2] = {{.call = i % ANSWERS}, {.call = i / ANSWERS % ANSWERS}};
        for (int k = 0; k < 2; ++k) {
            rivals[k].cr = cr;
            rivals[k].ep = new_ep(ends.server, (Options){0});
            rivals[k].qual = other;
        }
        const int winner = winner_of(rivals);
        CHECK_SUB(rivals[1 - winner].rc, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
        CHECK_EQ(state_of(rivals[1 - winner].ep), DAT_EP_STATE_UNCONNECTED);
        if (rivals[winner].call == HANDOFF) CHECK_OK(dat_cr_reject(request_on(ends.server->evds[CR]), 0, NULL));
        if (rivals[winner].call == ACCEPT) {
            EXPECT_EVENT(ends.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
            EXPECT_EVENT(ends.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
            hang_up(client, &ends);
        } else {
            EXPECT_EVENT(ends.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
        }
        CHECK_OK(dat_ep_free(client));
        for (int k = 0; k < 2; ++k) CHECK_OK(dat_ep_free(rivals[k].ep));
    }
    CHECK_OK(dat_psp_free(psp));
    side_close(ends.server);
    side_close(ends.client);
}

/* What the winner asked for is what happens, and the loser leaves no trace. */
TEST(threads__two_connections_of_one_endpoint) {
    need_thread_safety();
    const Pair ends = open_pair_here((Options){0});
    const Side *server = ends.server;
    const DAT_CONN_QUAL quals[2] = {server->qual, unused_qual()};
    DAT_PSP_HANDLE psp;
    CHECK_OK(dat_psp_create(server->ia, quals[1], server->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp));
    for (unsigned i = 0; i < 2 * rounds(); ++i) {
        const DAT_EP_HANDLE ep = new_ep(server, (Options){0});
        const DAT_EP_HANDLE clients[2] = {new_ep(ends.client, (Options){0}), new_ep(ends.client, (Options){0})};
        Rival rivals[2];
        for (unsigned k = 0; k < 2; ++k) {
            rivals[k] = (Rival){.call = k < i % 3 ? ACCEPT : CONNECT, .side = server, .ep = ep, .qual = quals[k]};
            if (rivals[k].call == CONNECT) continue;
            CHECK_OK(request_to(ends.client, clients[k], server->qual));
            rivals[k].cr = request_on(server->evds[CR]);
        }
        const int winner = winner_of(rivals);
        CHECK_RC(rivals[1 - winner].rc, DAT_INVALID_STATE);
        if (rivals[winner].call == ACCEPT) {
            EXPECT_EVENT(ends.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
            EXPECT_EVENT(ends.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
            hang_up(ep, &ends);
        } else {
            DAT_EVENT event = WAIT_ON(server->evds[CR], DAT_CONNECTION_REQUEST_EVENT);
            DAT_EP_PARAM param;
            CHECK_EQ(event.event_data.cr_arrival_event_data.conn_qual, quals[winner]);
            CHECK_OK(dat_ep_query(ep, DAT_EP_FIELD_REMOTE_PORT_QUAL, &param));
            CHECK_EQ(param.remote_port_qual, quals[winner]);
            CHECK_OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
            EXPECT_EVENT(ends.server, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
        }
        if (rivals[1 - winner].call == ACCEPT) {
            CHECK_OK(dat_cr_reject(rivals[1 - winner].cr, 0, NULL));
            DAT_EVENT event = EXPECT_EVENT(ends.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
            CHECK(event.event_data.connect_event_data.ep_handle == clients[1 - winner]);
        }
        CHECK_OK(dat_ep_free(ep));
        for (int k = 0; k < 2; ++k) CHECK_OK(dat_ep_free(clients[k]));
    }
    expect_nothing(ends.server);
    CHECK_OK(dat_psp_free(psp));
    side_close(ends.server);
    side_close(ends.client);
}

/* ---- Agents of a CNO --------------------------------------------------------------------------------------------- */

typedef struct {
    sem_t called, go_on;
} Place;

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0) continue;
}

static void slow_agent(DAT_PVOID data, DAT_EVD_HANDLE evd) {
    (void)evd;
    Place *place = data;
    CHECK(sem_post(&place->called) == 0);
    wait_for(&place->go_on);
}

static void quick_agent(DAT_PVOID data, DAT_EVD_HANDLE evd) {
    (void)evd;
    CHECK(sem_post(&((Place *)data)->called) == 0);
}

static void make_place(Place *place) {
    CHECK(sem_init(&place->called, 0, 0) == 0);
    CHECK(sem_init(&place->go_on, 0, 0) == 0);
}

static void post_and_take(DAT_EVD_HANDLE evd, Place *heard) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    CHECK_OK(dat_evd_post_se(evd, &event));
    wait_for(&heard->called);
    CHECK_OK(dat_evd_dequeue(evd, &event));
}

static void make_cno(DAT_IA_HANDLE *ia, DAT_CNO_HANDLE *cno, DAT_EVD_HANDLE *evd) {
    *ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(*ia, DAT_OS_WAIT_PROXY_AGENT_NULL, cno));
    CHECK_OK(dat_evd_create(*ia, 8, *cno, DAT_EVD_SOFTWARE_FLAG, evd));
}

static void free_cno(DAT_IA_HANDLE ia, DAT_CNO_HANDLE cno, DAT_EVD_HANDLE evd) {
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

typedef struct {
    DAT_CNO_HANDLE cno;
    DAT_OS_WAIT_PROXY_AGENT agent;
} Change;

static void change_agent(void *argument) {
    const Change *change = argument;
    CHECK_OK(dat_cno_modify_agent(change->cno, change->agent));
}

/* Whoever has set another agent, or none, may destroy what the previous one uses. */
TEST(threads__agents_that_are_replaced_as_they_run) {
    need_thread_safety();
    DAT_IA_HANDLE ia;
    DAT_EVD_HANDLE evd;
    Change change;
    Place slow, quick;
    make_cno(&ia, &change.cno, &evd);
    make_place(&slow);
    make_place(&quick);
    for (int i = 0; i < 4; ++i) {
        Sleeper sleeper = {0};
        CHECK_OK(dat_cno_modify_agent(change.cno, (DAT_OS_WAIT_PROXY_AGENT){&slow, slow_agent}));
        post_and_take(evd, &slow);
        change.agent = i % 2 == 0 ? (DAT_OS_WAIT_PROXY_AGENT){&quick, quick_agent} : DAT_OS_WAIT_PROXY_AGENT_NULL;
        sleeper_start(&sleeper, change_agent, &change);
        CHECK(sleeps_on(&sleeper));
        CHECK(sem_post(&slow.go_on) == 0);
        CHECK(!sleeper_join(&sleeper));
        if (i % 2 == 0) post_and_take(evd, &quick);
    }
    CHECK(sem_trywait(&slow.called) != 0 && sem_trywait(&quick.called) != 0);
    free_cno(ia, change.cno, evd);
}

static void *change_again_and_again(void *argument) {
    Change change = *(Change *)argument;
    const DAT_OS_WAIT_PROXY_AGENT agents[] = {change.agent, DAT_OS_WAIT_PROXY_AGENT_NULL};
    for (unsigned i = 0; i < 4 * rounds(); ++i) {
        change.agent = agents[i % 2];
        change_agent(&change);
    }
    return NULL;
}

TEST(threads__agents_of_one_cno) {
    need_thread_safety();
    DAT_IA_HANDLE ia;
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE evd;
    Place places[THREADS], last;
    Change changes[THREADS];
    make_cno(&ia, &cno, &evd);
    make_place(&last);
    for (int i = 0; i < THREADS; ++i) {
        make_place(&places[i]);
        changes[i] = (Change){cno, {&places[i], quick_agent}};
    }
    run_all(change_again_and_again, changes, sizeof *changes);
    CHECK_OK(dat_cno_modify_agent(cno, (DAT_OS_WAIT_PROXY_AGENT){&last, quick_agent}));
    post_and_take(evd, &last);
    for (int i = 0; i < THREADS; ++i) CHECK(sem_trywait(&places[i].called) != 0);
    free_cno(ia, cno, evd);
}

/* ---- Shared receive queues --------------------------------------------------------------------------------------- */

enum { LONGEST = 200 };

static void *make_longer(void *srq) {
    for (DAT_COUNT length = DTOS; length <= LONGEST; ++length) CHECK_OK(dat_srq_resize(srq, length));
    return NULL;
}

/* There are places for the completions of all receives of the queue and of all requests of the endpoint, although both
 * change meanwhile. */
TEST(threads__a_shared_queue_that_grows_as_endpoints_change) {
    need_thread_safety();
    const Pair pair = open_pair_here((Options){.srq = true, .one_evd = true});
    Side *client = pair.client, *server = pair.server;
    DAT_EP_PARAM param;
    DAT_EVENT event;
    pthread_t thread;
    memset(&param, 0, sizeof param);
    CHECK(pthread_create(&thread, NULL, make_longer, client->srq) == 0);
    for (unsigned i = 0; i < rounds(); ++i) {
        CHECK_OK(dat_ep_free(client->ep));
        client->ep = new_ep(client, (Options){0});
        param.ep_attr.max_request_dtos = (DAT_COUNT)(DTOS + i % 2);
        CHECK_OK(dat_ep_modify(client->ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param));
    }
    CHECK(pthread_join(thread, NULL) == 0);
    server->srq = DAT_HANDLE_NULL; /* its endpoint has a queue of its own */
    CHECK_OK(dat_ep_free(server->ep));
    server->ep = new_ep(server, (Options){.request_dtos = LONGEST});
    pair_connect(&pair);
    for (unsigned i = 0; i < LONGEST; ++i) {
        CHECK_OK(post(client, (Work){.operation = SRQ_RECEIVE, .at = RECV_AT, .length = 8}));
        CHECK_OK(post(server, (Work){.operation = SEND, .length = 8}));
    }
    for (unsigned i = 0; i < LONGEST; ++i) EXPECT_DONE(server, 0);
    for (unsigned i = 0; i < DTOS; ++i)
        CHECK_OK(post(client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = i}));
    for (unsigned i = 0; i < LONGEST + DTOS; ++i) EXPECT_EVENT(client, RECV, DAT_DTO_COMPLETION_EVENT);
    CHECK(!poll_event(client, ASYNC, &event));
    CHECK_OK(dat_ia_close(client->ia, DAT_CLOSE_ABRUPT_FLAG));
}

typedef struct {
    DAT_CNO_HANDLE cno;
    _Atomic bool looks, stop;
} Watcher;

static void *free_when_told(void *argument) {
    Watcher *watcher = argument;
    DAT_EVD_HANDLE told = watcher->cno;
    while (!watcher->stop && dat_cno_wait(watcher->cno, 0, &told) != DAT_SUCCESS) watcher->looks = true;
    CHECK(told == DAT_HANDLE_NULL);
    CHECK_OK(dat_cno_free(watcher->cno));
    return NULL;
}

/* Whoever hears that the last EVD is gone may free the CNO at once. */
TEST(threads__a_cno_that_is_freed_with_its_last_evd) {
    need_thread_safety();
    for (unsigned i = 0; i < 20 * rounds(); ++i) {
        DAT_IA_HANDLE ia;
        DAT_EVD_HANDLE evd;
        pthread_t thread;
        Watcher watcher = {.stop = false};
        make_cno(&ia, &watcher.cno, &evd);
        CHECK(pthread_create(&thread, NULL, free_when_told, &watcher) == 0);
        while (!watcher.looks) sched_yield();
        if (i % 2 == 0) CHECK_OK(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
        CHECK_OK(dat_evd_free(evd));
        watcher.stop = true;
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    }
}
