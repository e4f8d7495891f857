/* SPDX-License-Identifier: BSD-3-Clause
 * A thread that waits on an EVD or a CNO, for the conformance programs.
 */
#include "waiter.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
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

/* As the kernel has it: the letter behind the name, which is in parentheses. */
static char state_of_thread(int tid) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "r");
    if (file == NULL) return '?';
    char *read = fgets(line, sizeof line, file);
    fclose(file);
    char *end = read != NULL ? strrchr(line, ')') : NULL;
    return end != NULL ? end[2] : '?';
}

void waiter_start(Waiter *waiter) {
    CHECK(pthread_create(&waiter->thread, NULL, run_waiter, waiter) == 0);
    while (waiter->tid == 0) sched_yield();
    /* It may sleep for a moment on its way, too. */
    for (int asleep = 0; asleep < 10 && !waiter->done;) {
        asleep = state_of_thread(waiter->tid) == 'S' ? asleep + 1 : 0;
        pause_ms(1);
    }
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
