/* SPDX-License-Identifier: BSD-3-Clause
 * A thread that waits on an EVD or a CNO, for the conformance programs.
 */
#include "waiter.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

static void pause_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void *run_waiter(void *argument) {
    Waiter *waiter = argument;
    waiter->tid = gettid();
    if (waiter->evd != DAT_HANDLE_NULL) {
        DAT_COUNT threshold = waiter->threshold > 0 ? waiter->threshold : 1;
        waiter->rc = dat_evd_wait(waiter->evd, DAT_TIMEOUT_INFINITE, threshold, &waiter->event, &waiter->more);
    } else {
        waiter->rc = dat_cno_wait(waiter->cno, DAT_TIMEOUT_INFINITE, &waiter->notified);
    }
    waiter->done = true;
    return NULL;
}

void waiter_start(Waiter *waiter) {
    CHECK(pthread_create(&waiter->thread, NULL, run_waiter, waiter) == 0);
    while (waiter->tid == 0) sched_yield();
    while (!thread_sleeps(waiter->tid) && !waiter->done) sched_yield();
}

void waiter_join(Waiter *waiter) { CHECK(pthread_join(waiter->thread, NULL) == 0); }

bool still_waiting(const Waiter *waiter) {
    for (unsigned ms = 0; ms < SHORT_MS && !waiter->done; ++ms) pause_ms(1);
    return !waiter->done;
}

static void do_nothing(int number) { (void)number; }

void waiter_interrupt(Waiter *waiter) {
    struct sigaction action = {.sa_handler = do_nothing};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    while (!waiter->done) {
        pthread_kill(waiter->thread, SIGUSR1);
        pause_ms(1);
    }
    waiter_join(waiter);
}
