/* SPDX-License-Identifier: BSD-3-Clause
 * What a CNO notifies besides its waiters: a proxy agent (dat_cno_create, dat_cno_modify_agent) or a file descriptor
 * (dat_cno_fd_create, dat_cno_trigger).
 */
#include "side.h"
#include "waiter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <time.h>

#pragma weak dat_cno_fd_create
#pragma weak dat_cno_trigger

typedef struct {
    sem_t called;
    DAT_EVD_HANDLE evd;
} Instance;

static void agent_function(DAT_PVOID data, DAT_EVD_HANDLE evd) {
    Instance *instance = data;
    instance->evd = evd;
    sem_post(&instance->called);
}

static DAT_OS_WAIT_PROXY_AGENT agent_of(Instance *instance) {
    instance->evd = DAT_HANDLE_NULL;
    CHECK(sem_init(&instance->called, 0, 0) == 0);
    return (DAT_OS_WAIT_PROXY_AGENT){instance, agent_function};
}

/* Whether the agent is called within the time. */
static bool is_called(Instance *instance, unsigned long ms) {
    struct timespec end;
    int rc;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += (time_t)(ms / 1000);
    end.tv_nsec += (long)(ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) end.tv_sec += 1, end.tv_nsec -= 1000000000;
    while ((rc = sem_timedwait(&instance->called, &end)) != 0 && errno == EINTR) continue;
    return rc == 0;
}

static void post_event(DAT_EVD_HANDLE evd) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    CHECK_OK(dat_evd_post_se(evd, &event));
}

static DAT_EVD_HANDLE new_evd_with(DAT_IA_HANDLE ia, DAT_CNO_HANDLE cno) {
    DAT_EVD_HANDLE evd;
    CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
    return evd;
}

static void free_all(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno, DAT_IA_HANDLE ia) {
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(cno_create__its_agent_is_called) {
    Instance instance;
    DAT_CNO_HANDLE cno;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(ia, agent_of(&instance), &cno));
    DAT_EVD_HANDLE evd = new_evd_with(ia, cno);
    CHECK(!is_called(&instance, SHORT_MS));
    post_event(evd);
    CHECK(is_called(&instance, LONG_MS));
    CHECK(instance.evd == evd);
    free_all(evd, cno, ia);
}

TEST(cno_create__an_agent_is_called_once_for_a_completion) {
    Instance instance;
    DAT_CNO_HANDLE cno;
    Pair pair = connected_pair((Options){0});
    CHECK_OK(dat_cno_create(pair.client->ia, agent_of(&instance), &cno));
    CHECK_OK(dat_evd_modify_cno(pair.client->evds[RECV], cno));
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 2}));
    CHECK(is_called(&instance, LONG_MS));
    CHECK(instance.evd == pair.client->evds[RECV]);
    CHECK(!is_called(&instance, SHORT_MS));
    EXPECT_RECEIVED(pair.client, 1);
    EXPECT_DONE(pair.server, 2);
    CHECK_OK(dat_evd_modify_cno(pair.client->evds[RECV], DAT_HANDLE_NULL));
    CHECK_OK(dat_cno_free(cno));
    pair_close(&pair);
}

TEST(cno_modify_agent__to_another) {
    Instance first, second;
    DAT_CNO_HANDLE cno;
    DAT_CNO_PARAM param;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(ia, agent_of(&first), &cno));
    DAT_EVD_HANDLE evd = new_evd_with(ia, cno);
    CHECK_OK(dat_cno_modify_agent(cno, agent_of(&second)));
    CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    CHECK(param.proxy.agent.instance_data == &second);
    post_event(evd);
    CHECK(is_called(&second, LONG_MS));
    CHECK(!is_called(&first, 0));
    free_all(evd, cno, ia);
}

TEST(cno_modify_agent__to_none) {
    Instance instance;
    DAT_CNO_HANDLE cno;
    DAT_CNO_PARAM param;
    DAT_EVD_HANDLE hint;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(ia, agent_of(&instance), &cno));
    DAT_EVD_HANDLE evd = new_evd_with(ia, cno);
    CHECK_OK(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
    CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    CHECK_EQ(param.proxy_type, DAT_PROXY_TYPE_NONE);
    post_event(evd);
    CHECK_OK(dat_cno_wait(cno, long_us(), &hint));
    CHECK(!is_called(&instance, SHORT_MS));
    free_all(evd, cno, ia);
}

TEST(cno_modify_agent__from_none) {
    Instance instance;
    DAT_CNO_HANDLE cno;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    DAT_EVD_HANDLE evd = new_evd_with(ia, cno);
    CHECK_OK(dat_cno_modify_agent(cno, agent_of(&instance)));
    post_event(evd);
    CHECK(is_called(&instance, LONG_MS));
    CHECK(instance.evd == evd);
    free_all(evd, cno, ia);
}

/* Once it has been called the agent is no longer associated, until it is set again. */
TEST(cno_modify_agent__again_after_a_call) {
    Instance instance;
    DAT_EVENT event;
    DAT_CNO_HANDLE cno;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(ia, agent_of(&instance), &cno));
    DAT_EVD_HANDLE evd = new_evd_with(ia, cno);
    for (int i = 0; i < 3; ++i) {
        post_event(evd);
        CHECK(is_called(&instance, LONG_MS));
        CHECK_OK(dat_evd_dequeue(evd, &event));
        CHECK_OK(dat_cno_modify_agent(cno, agent_of(&instance)));
    }
    free_all(evd, cno, ia);
}

static bool readable(DAT_FD fd, unsigned long ms) {
    struct pollfd polled = {fd, POLLIN, 0};
    int count = poll(&polled, 1, (int)ms);
    CHECK(count >= 0);
    return count == 1 && (polled.revents & POLLIN) != 0;
}

TEST(cno_fd_create__readable_when_triggered) {
    NEED(dat_cno_fd_create);
    DAT_FD fd = -1;
    DAT_EVENT event;
    DAT_CNO_HANDLE cno;
    DAT_CNO_PARAM param;
    DAT_EVD_HANDLE hint = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(dat_cno_fd_create(ia, &fd, &cno));
    CHECK(fcntl(fd, F_GETFD) >= 0);
    CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    CHECK_EQ(param.proxy_type, DAT_PROXY_TYPE_FD);
    CHECK_EQ(param.proxy.fd, fd);
    DAT_EVD_HANDLE evd = new_evd_with(ia, cno);
    for (int i = 0; i < 3; ++i) {
        CHECK(!readable(fd, SHORT_MS));
        post_event(evd);
        CHECK(readable(fd, LONG_MS));
        CHECK_OK(dat_cno_trigger(cno, &hint));
        CHECK(hint == evd);
        CHECK_OK(dat_evd_dequeue(evd, &event));
    }
    free_all(evd, cno, ia);
    CHECK(fcntl(fd, F_GETFD) < 0); /* it goes with the CNO */
}

TEST(cno_fd_create__readable_for_completions) {
    NEED(dat_cno_fd_create);
    DAT_FD fd = -1;
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE hint = DAT_HANDLE_NULL;
    Pair pair = connected_pair((Options){0});
    CHECK_OK(dat_cno_fd_create(pair.client->ia, &fd, &cno));
    CHECK_OK(dat_evd_modify_cno(pair.client->evds[RECV], cno));
    for (unsigned i = 0; i < 3; ++i) {
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
        CHECK(!readable(fd, 0));
        CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = i}));
        CHECK(readable(fd, LONG_MS));
        CHECK_OK(dat_cno_trigger(cno, &hint));
        CHECK(hint == pair.client->evds[RECV]);
        EXPECT_RECEIVED(pair.client, i);
        EXPECT_DONE(pair.server, i);
    }
    CHECK_OK(dat_evd_modify_cno(pair.client->evds[RECV], DAT_HANDLE_NULL));
    CHECK_OK(dat_cno_free(cno));
    pair_close(&pair);
}

TEST(cno_trigger__nothing_has_come) {
    NEED(dat_cno_trigger);
    DAT_FD fd = -1;
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE hint;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(dat_cno_fd_create(ia, &fd, &cno));
    hint = ia;
    CHECK_RC(dat_cno_trigger(cno, &hint), DAT_QUEUE_EMPTY);
    CHECK(hint == DAT_HANDLE_NULL);
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(cno_fd_create__no_place_for_results) {
    NEED(dat_cno_fd_create);
    DAT_FD fd = -1;
    DAT_CNO_HANDLE cno;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_SUB(dat_cno_fd_create(ia, NULL, &cno), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_cno_fd_create(ia, &fd, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_OK(dat_cno_fd_create(ia, &fd, &cno));
    CHECK_SUB(dat_cno_trigger(cno, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_cno_free(cno));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

typedef struct {
    Instance instance;
    DAT_CNO_HANDLE cno;
} OwnCno;

/* "After it is invoked, it is no longer associated with the CNO", where it sees to that itself. */
static void agent_that_takes_itself_away(DAT_PVOID data, DAT_EVD_HANDLE evd) {
    OwnCno *own = data;
    CHECK_OK(dat_cno_modify_agent(own->cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
    agent_function(&own->instance, evd);
}

TEST(cno_modify_agent__to_none_by_the_agent) {
    OwnCno own;
    DAT_EVENT event;
    DAT_EVD_HANDLE hint;
    DAT_IA_HANDLE ia = open_ia(NULL);
    agent_of(&own.instance);
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &own.cno));
    DAT_EVD_HANDLE evd = new_evd_with(ia, own.cno);
    for (int i = 0; i < 3; ++i) {
        CHECK_OK(dat_cno_modify_agent(own.cno, (DAT_OS_WAIT_PROXY_AGENT){&own, agent_that_takes_itself_away}));
        post_event(evd);
        CHECK(is_called(&own.instance, LONG_MS));
        CHECK_OK(dat_evd_dequeue(evd, &event));
        post_event(evd);
        CHECK(!is_called(&own.instance, SHORT_MS));
        CHECK_OK(dat_cno_wait(own.cno, long_us(), &hint));
        CHECK(hint == evd);
        CHECK_OK(dat_evd_dequeue(evd, &event));
    }
    free_all(evd, own.cno, ia);
}

static void agent_that_frees(DAT_PVOID data, DAT_EVD_HANDLE evd) {
    OwnCno *own = data;
    CHECK_OK(dat_cno_free(own->cno));
    agent_function(&own->instance, evd);
}

/* The agent hears that the last EVD is gone. */
TEST(cno_free__by_the_agent) {
    OwnCno own;
    DAT_IA_HANDLE ia = open_ia(NULL);
    agent_of(&own.instance);
    CHECK_OK(dat_cno_create(ia, (DAT_OS_WAIT_PROXY_AGENT){&own, agent_that_frees}, &own.cno));
    DAT_EVD_HANDLE evd = new_evd_with(ia, own.cno);
    CHECK_OK(dat_evd_free(evd));
    CHECK(is_called(&own.instance, LONG_MS));
    CHECK_RC(dat_cno_free(own.cno), DAT_INVALID_HANDLE);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

typedef struct {
    OwnCno own;
    DAT_IA_HANDLE ia;
    DAT_EVD_HANDLE evd;
} OwnEvd;

static void agent_that_replaces(DAT_PVOID data, DAT_EVD_HANDLE evd) {
    OwnEvd *all = data;
    CHECK_OK(dat_evd_free(all->evd));
    all->evd = new_evd_with(all->ia, all->own.cno);
    agent_function(&all->own.instance, evd);
}

/* When it waits again, the CNO has an EVD. */
TEST(cno_create__its_agent_replaces_the_last_evd) {
    OwnEvd all = {.ia = open_ia(NULL)};
    agent_of(&all.own.instance);
    CHECK_OK(dat_cno_create(all.ia, (DAT_OS_WAIT_PROXY_AGENT){&all, agent_that_replaces}, &all.own.cno));
    DAT_EVD_HANDLE evd = all.evd = new_evd_with(all.ia, all.own.cno);
    post_event(evd);
    CHECK(is_called(&all.own.instance, LONG_MS));
    CHECK(all.own.instance.evd == evd);
    CHECK(!is_called(&all.own.instance, SHORT_MS));
    CHECK_OK(dat_cno_modify_agent(all.own.cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
    free_all(all.evd, all.own.cno, all.ia);
}

/* "Enables the Event Dispatcher so that the arrival of an event can trigger the associated CNO": until then it cannot.
 */
TEST(cno_fd_create__completions_of_a_disabled_evd) {
    NEED(dat_cno_fd_create);
    DAT_FD fd = -1;
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE hint;
    Pair pair = connected_pair((Options){0});
    DAT_EVD_HANDLE evd = pair.client->evds[RECV];
    CHECK_OK(dat_cno_fd_create(pair.client->ia, &fd, &cno));
    CHECK_OK(dat_evd_modify_cno(evd, cno));
    for (unsigned i = 0; i < 4; i += 2) {
        CHECK_OK(dat_evd_disable(evd));
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
        CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = i}));
        EXPECT_DONE(pair.server, i);
        CHECK(!readable(fd, SHORT_MS));
        CHECK_RC(dat_cno_trigger(cno, &hint), DAT_QUEUE_EMPTY);
        EXPECT_RECEIVED(pair.client, i);
        CHECK_OK(dat_evd_enable(evd));
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i + 1}));
        CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = i + 1}));
        EXPECT_DONE(pair.server, i + 1);
        CHECK(readable(fd, LONG_MS));
        CHECK_OK(dat_cno_trigger(cno, &hint));
        CHECK(hint == evd);
        EXPECT_RECEIVED(pair.client, i + 1);
    }
    CHECK_OK(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
    CHECK_OK(dat_cno_free(cno));
    pair_close(&pair);
}

/* "Any trigger received by the CNO is also passed to the OS Wait Proxy Agent. This is in addition to any local delivery
 * through the CNO." */
TEST(cno_modify_agent__in_addition_to_who_waits) {
    Instance instance;
    DAT_EVENT event;
    DAT_IA_HANDLE ia = open_ia(NULL);
    Waiter waiter = {0};
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &waiter.cno));
    DAT_EVD_HANDLE evd = new_evd_with(ia, waiter.cno);
    for (int i = 0; i < 3; ++i) {
        CHECK_OK(dat_cno_modify_agent(waiter.cno, agent_of(&instance)));
        waiter_start(&waiter);
        post_event(evd);
        CHECK(is_called(&instance, LONG_MS));
        waiter_join(&waiter);
        CHECK_OK(waiter.rc);
        CHECK(waiter.notified == evd);
        CHECK_OK(dat_evd_dequeue(evd, &event));
    }
    free_all(evd, waiter.cno, ia);
}

/* Who waits for the CNO does not keep an agent from being taken away. */
TEST(cno_modify_agent__to_none_while_another_waits) {
    Instance instance;
    DAT_EVENT event;
    DAT_IA_HANDLE ia = open_ia(NULL);
    Waiter waiter = {0};
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &waiter.cno));
    DAT_EVD_HANDLE evd = new_evd_with(ia, waiter.cno);
    waiter_start(&waiter);
    for (int i = 0; i < 100; ++i) {
        CHECK_OK(dat_cno_modify_agent(waiter.cno, agent_of(&instance)));
        CHECK_OK(dat_cno_modify_agent(waiter.cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
    }
    CHECK(still_waiting(&waiter));
    post_event(evd);
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    CHECK(waiter.notified == evd);
    CHECK_OK(dat_evd_dequeue(evd, &event));
    free_all(evd, waiter.cno, ia);
}
