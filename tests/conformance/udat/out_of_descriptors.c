/* SPDX-License-Identifier: BSD-3-Clause
 * DAT_INSUFFICIENT_RESOURCES of calls that lack file descriptors.
 */
#include "../support/sweep.h"
#include "side.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#pragma weak dat_cno_fd_create

/* ---- Calls that make something ----------------------------------------------------------------------------------- */

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE evd;
static DAT_CNO_HANDLE cno;
static DAT_PSP_HANDLE psp;
static Pair pair;

static DAT_RETURN make_ia(void) {
    evd = DAT_HANDLE_NULL;
    return dat_ia_open(test_ia(), EVD_QLEN, &evd, &ia);
}
static void unmake_ia(void) { CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)); }

/* The library of the provider is loaded before. */
TEST(ia_open) {
    if (!on_loopback()) skip("libibverbs does not survive it");
    DAT_IA_HANDLE first = open_ia(NULL);
    sweep_descriptors((Sweep){.call = make_ia, .undo = unmake_ia});
    ia = first;
    unmake_ia();
}

static DAT_PROVIDER_INFO provider;
static DAT_COUNT provider_count;

static DAT_RETURN list_providers(void) {
    return dat_registry_list_providers(1, &provider_count, &(DAT_PROVIDER_INFO *){&provider});
}
static void check_list(void) { CHECK(provider_count >= 1); }

TEST(registry_list_providers) { CHECK(sweep_descriptors((Sweep){.call = list_providers, .undo = check_list}) > 0); }

/* A file that cannot be read for lack of a descriptor is not missing: it is read as soon as that is possible. */
TEST(registry_list_providers__of_the_file) {
    char path[] = "/tmp/dat.conf.XXXXXX";
    if (UNDER_SANITIZER) skip("a sanitizer needs file descriptors of its own");
    int file = mkstemp(path);
    CHECK(file >= 0 && dprintf(file, "first u2.0 nonthreadsafe default none.so test.1.2 \"\" \"\"\n") > 0);
    CHECK(close(file) == 0 && setenv("DAT_OVERRIDE", path, 1) == 0);
    leave_descriptors(0);
    const DAT_RETURN rc = list_providers();
    const DAT_RETURN opened = make_ia();
    give_descriptors_back();
    const DAT_RETURN again = list_providers();
    unlink(path);
    CHECK_RC(rc, DAT_INSUFFICIENT_RESOURCES);
    CHECK_RC(opened, DAT_INSUFFICIENT_RESOURCES);
    CHECK_OK(again);
    CHECK(strcmp(provider.ia_name, "first") == 0);
}

/* Neither is the library of the provider. */
TEST(ia_open__loads_the_provider) {
    if (!on_loopback()) skip("libibverbs does not survive it");
    CHECK_OK(list_providers());
    leave_descriptors(0);
    const DAT_RETURN rc = make_ia();
    give_descriptors_back();
    CHECK_RC(rc, DAT_INSUFFICIENT_RESOURCES);
    CHECK_OK(make_ia());
    unmake_ia();
}

static DAT_RETURN make_evd(void) { return dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd); }
static void unmake_evd(void) { CHECK_OK(dat_evd_free(evd)); }

TEST(evd_create) {
    ia = open_ia(NULL);
    sweep_descriptors((Sweep){.call = make_evd, .undo = unmake_evd});
    unmake_ia();
}

static DAT_RETURN make_fd_cno(void) {
    DAT_FD fd;
    return dat_cno_fd_create(ia, &fd, &cno);
}
static void unmake_cno(void) { CHECK_OK(dat_cno_free(cno)); }

TEST(cno_fd_create) {
    NEED(dat_cno_fd_create);
    ia = open_ia(NULL);
    CHECK(sweep_descriptors((Sweep){.call = make_fd_cno, .undo = unmake_cno}) > 0);
    unmake_ia();
}

static void ignore(DAT_PVOID instance, DAT_EVD_HANDLE from) {
    (void)instance;
    (void)from;
}
static DAT_RETURN make_cno(void) { return dat_cno_create(ia, (DAT_OS_WAIT_PROXY_AGENT){&ia, ignore}, &cno); }

TEST(cno_create) {
    ia = open_ia(NULL);
    sweep_descriptors((Sweep){.call = make_cno, .undo = unmake_cno});
    unmake_ia();
}

static DAT_RETURN make_psp(void) {
    return dat_psp_create(pair.client->ia, pair.client->qual, pair.client->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp);
}
static void unmake_psp(void) { CHECK_OK(dat_psp_free(psp)); }

TEST(psp_create) {
    pair.client = new_side(NULL);
    side_open(pair.client, (Options){0});
    CHECK(sweep_descriptors((Sweep){.call = make_psp, .undo = unmake_psp}) > 0);
    side_close(pair.client);
}

/* The server has descriptors: it is a process of its own. */
static DAT_RETURN request(void) { return connect_to(pair.client, pair.server, NULL, 0); }

static void answer(void) {
    take_request(pair.server);
    CHECK_OK(accept_request(pair.server, NULL, 0));
    EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST(ep_connect) {
    pair = open_pair((Options){0});
    sweep_descriptors((Sweep){.call = request, .undo = answer});
    pair_close(&pair);
}

/* A thread that waits needs none that it does not have. */
TEST(evd_wait__needs_none) {
    DAT_EVENT event;
    DAT_COUNT more;
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    CHECK_RC(dat_evd_wait(side->evds[RECV], 1, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    leave_descriptors(0);
    CHECK_RC(dat_evd_wait(side->evds[RECV], SHORT_US, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    give_descriptors_back();
    side_close(side);
}

TEST(cno_wait__for_the_first_time) {
    DAT_EVD_HANDLE found;
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    ia = open_ia(NULL);
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
    leave_descriptors(0);
    const DAT_RETURN late = dat_cno_wait(cno, SHORT_US, &found);
    const DAT_RETURN posted = dat_evd_post_se(evd, &event);
    const DAT_RETURN rc = dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &found);
    give_descriptors_back();
    CHECK_RC(late, DAT_QUEUE_EMPTY);
    CHECK_OK(posted);
    CHECK_OK(rc);
    CHECK(found == evd);
    unmake_evd();
    unmake_cno();
    unmake_ia();
}

static void *wait_for_ever(void *result) {
    DAT_EVENT event;
    DAT_COUNT more;
    *(DAT_RETURN *)result = dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
    return NULL;
}

/* A thread that waits for the first time when there are none left still hears of what comes. */
static void check_first_wait(DAT_EVD_FLAGS flags) {
    pthread_t thread;
    DAT_RETURN rc = DAT_SUCCESS;
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    ia = open_ia(NULL);
    evd = new_evd(ia, flags);
    leave_descriptors(0);
    CHECK(pthread_create(&thread, NULL, wait_for_ever, &rc) == 0);
    while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_INVALID_STATE) continue;
    CHECK(poll(NULL, 0, (int)SHORT_MS) == 0);
    event.event_number = DAT_SOFTWARE_EVENT;
    CHECK_OK(dat_evd_post_se(evd, &event));
    CHECK(pthread_join(thread, NULL) == 0);
    give_descriptors_back();
    CHECK_OK(rc);
    unmake_evd();
    unmake_ia();
}

TEST(evd_wait__for_the_first_time) { check_first_wait(DAT_EVD_SOFTWARE_FLAG); }

TEST(evd_wait__for_the_first_time_with_completions) { check_first_wait(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG); }
