/* SPDX-License-Identifier: BSD-3-Clause
 * DAT_INSUFFICIENT_RESOURCES of calls that need file descriptors: with none left, with one left, and so on until the
 * call succeeds.
 */
#include "side.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

#pragma weak dat_cno_fd_create

/* ---- The sweep --------------------------------------------------------------------------------------------------- */

enum { LIMIT = 200 };

static int hoard[LIMIT];
static int hoarded;

/* Takes all file descriptors except this many. */
static void leave(int count) {
    struct rlimit limit;
    if (UNDER_SANITIZER) skip("a sanitizer needs file descriptors of its own");
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = LIMIT;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) hoard[hoarded++] = fd;
    CHECK(errno == EMFILE);
    for (; count > 0; --count) close(hoard[--hoarded]);
}

static void give_back(void) {
    while (hoarded > 0) close(hoard[--hoarded]);
}

/* How many descriptors a call needs; what it made is undone. */
static int sweep(DAT_RETURN (*call)(void), void (*undo)(void)) {
    for (int count = 0;; ++count) {
        leave(count);
        DAT_RETURN rc = call();
        give_back();
        if (rc == DAT_SUCCESS) {
            undo();
            return count;
        }
        CHECK_RC(rc, DAT_INSUFFICIENT_RESOURCES);
    }
}

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

/* Without a descriptor to read it by, the list of providers could not be found: it is read before. */
TEST(ia_open) {
    if (!on_loopback()) skip("libibverbs does not survive it");
    DAT_IA_HANDLE first = open_ia(NULL);
    sweep(make_ia, unmake_ia);
    ia = first;
    unmake_ia();
}

static DAT_PROVIDER_INFO provider;
static DAT_COUNT provider_count;

static DAT_RETURN list_providers(void) {
    return dat_registry_list_providers(1, &provider_count, &(DAT_PROVIDER_INFO *){&provider});
}
static void check_list(void) { CHECK(provider_count >= 1); }

TEST(registry_list_providers) { CHECK(sweep(list_providers, check_list) > 0); }

static DAT_RETURN make_evd(void) { return dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd); }
static void unmake_evd(void) { CHECK_OK(dat_evd_free(evd)); }

TEST(evd_create) {
    ia = open_ia(NULL);
    sweep(make_evd, unmake_evd);
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
    CHECK(sweep(make_fd_cno, unmake_cno) > 0);
    unmake_ia();
}

static void ignore(DAT_PVOID instance, DAT_EVD_HANDLE from) {
    (void)instance;
    (void)from;
}
static DAT_RETURN make_cno(void) { return dat_cno_create(ia, (DAT_OS_WAIT_PROXY_AGENT){&ia, ignore}, &cno); }

TEST(cno_create) {
    ia = open_ia(NULL);
    sweep(make_cno, unmake_cno);
    unmake_ia();
}

static DAT_RETURN make_psp(void) {
    return dat_psp_create(pair.client->ia, pair.client->qual, pair.client->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp);
}
static void unmake_psp(void) { CHECK_OK(dat_psp_free(psp)); }

TEST(psp_create) {
    pair.client = new_side(NULL);
    side_open(pair.client, (Options){0});
    CHECK(sweep(make_psp, unmake_psp) > 0);
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
    sweep(request, answer);
    pair_close(&pair);
}

/* A thread that waits needs none that it does not have. */
TEST(evd_wait__needs_none) {
    DAT_EVENT event;
    DAT_COUNT more;
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    CHECK_RC(dat_evd_wait(side->evds[RECV], 1, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    leave(0);
    CHECK_RC(dat_evd_wait(side->evds[RECV], SHORT_US, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    give_back();
    side_close(side);
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
    leave(0);
    CHECK(pthread_create(&thread, NULL, wait_for_ever, &rc) == 0);
    while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_INVALID_STATE) continue;
    CHECK(poll(NULL, 0, (int)SHORT_MS) == 0);
    event.event_number = DAT_SOFTWARE_EVENT;
    CHECK_OK(dat_evd_post_se(evd, &event));
    CHECK(pthread_join(thread, NULL) == 0);
    give_back();
    CHECK_OK(rc);
    unmake_evd();
    unmake_ia();
}

TEST(evd_wait__for_the_first_time) { check_first_wait(DAT_EVD_SOFTWARE_FLAG); }

TEST(evd_wait__for_the_first_time_with_completions) { check_first_wait(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG); }
