/* SPDX-License-Identifier: BSD-3-Clause
 */
#include "sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void need_malloc(void) {
    if (UNDER_SANITIZER) skip("a sanitizer has taken malloc");
}

/* Returns the number of failures after which the call succeeded, and how often the call failed. */
static long sweep_with(bool onwards, Sweep under_test, long *refusals) {
    need_malloc();
    for (long n = 0;; ++n) {
        if (under_test.prepare != NULL) under_test.prepare();
        fail_calls_of_thread(CALL_malloc, n + 1, onwards);
        const Return rc = under_test.call();
        const long failures = restore_calls();
        if (rc == under_test.usual && under_test.undo != NULL) under_test.undo();
        if (failures == 0) {
            CHECK_RC(rc, under_test.usual);
            return n;
        }
        /* The C library can do without some of its buffers. If the call succeeds nevertheless, nothing is wrong. */
        if (rc == under_test.usual || (under_test.also != 0 && rc == under_test.also) || IS_UNCLEAR(rc, NO_MEMORY))
            continue;
        CHECK_RC(rc, NO_MEMORY);
        ++*refusals;
    }
}

static long sweep(Sweep under_test, long *refusals) {
    if (!under_test.once) sweep_with(false, under_test, refusals);
    return sweep_with(true, under_test, refusals);
}

void allocates(Sweep under_test) {
    long refusals = 0;
    CHECK(sweep(under_test, &refusals) > 0);
    CHECK(refusals > 0);
}

void may_allocate(Sweep under_test) {
    long refusals = 0;
    sweep(under_test, &refusals);
}

/* If the first and all following allocations may fail, so may each single one. */
void allocates_nothing(Sweep under_test) {
    long refusals = 0;
    CHECK_EQ(sweep_with(true, under_test, &refusals), 0);
}

void succeeds_without_memory(Return (*call)(void)) {
    need_malloc();
    fail_calls_of_thread(CALL_malloc, 1, true);
    const Return rc = call();
    restore_calls();
    CHECK_RC(rc, 0);
}

/* ---- File descriptors -------------------------------------------------------------------------------------------- */

enum { LIMIT = 400 };

static int hoard[LIMIT];
static int hoarded;

void leave_descriptors(int count) {
    struct rlimit limit;
    if (UNDER_SANITIZER) skip("a sanitizer needs file descriptors of its own");
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = LIMIT;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) hoard[hoarded++] = fd;
    CHECK(errno == EMFILE);
    for (; count > 0; --count) close(hoard[--hoarded]);
}

void give_descriptors_back(void) {
    while (hoarded > 0) close(hoard[--hoarded]);
}

int sweep_descriptors(Sweep under_test) {
    for (int count = 0;; ++count) {
        if (under_test.prepare != NULL) under_test.prepare();
        leave_descriptors(count);
        const Return rc = under_test.call();
        give_descriptors_back();
        if (rc == under_test.usual) {
            if (under_test.undo != NULL) under_test.undo();
            return count;
        }
        if (!IS_UNCLEAR(rc, NO_DESCRIPTORS)) CHECK_RC(rc, NO_DESCRIPTORS);
    }
}
