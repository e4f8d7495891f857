/* SPDX-License-Identifier: BSD-3-Clause
 */
#include "sleeper.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

static void check_mask(const sigset_t *before) {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int number = 1; number < NSIG; ++number) CHECK(sigismember(&now, number) == sigismember(before, number));
}

static void *run_sleeper(void *argument) {
    Sleeper *sleeper = argument;
    sigset_t mask;
    const int state = sleeper->uncancellable ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;
    int state_after = state;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    pthread_setcancelstate(state, NULL);
    sleeper->tid = gettid();
    sleeper->call(sleeper->argument);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_after);
    CHECK_EQ(state_after, state);
    check_mask(&mask);
    sleeper->returned = true;
    if (sleeper->uncancellable) {
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        pthread_testcancel();
    }
    return NULL;
}

void sleeper_start(Sleeper *sleeper, void (*call)(void *argument), void *argument) {
    sleeper->call = call;
    sleeper->argument = argument;
    sleeper->tid = 0;
    sleeper->returned = false;
    CHECK(pthread_create(&sleeper->thread, NULL, run_sleeper, sleeper) == 0);
    while (sleeper->tid == 0) sched_yield();
    (void)sleeps_on(sleeper);
}

bool sleeps_on(const Sleeper *sleeper) {
    while (!sleeper->returned && !thread_sleeps(sleeper->tid)) sched_yield();
    return !sleeper->returned;
}

bool sleeper_join(Sleeper *sleeper) {
    void *result = NULL;
    CHECK(pthread_join(sleeper->thread, &result) == 0);
    return result == PTHREAD_CANCELED;
}

bool sleeper_cancel(Sleeper *sleeper) {
#ifdef __SANITIZE_THREAD__
    skip("the thread sanitizer does not see that a cancelled thread closes descriptors");
#endif
    CHECK(pthread_cancel(sleeper->thread) == 0);
    return sleeper_join(sleeper);
}

typedef struct {
    void (*run)(void *argument);
    void *argument;
    int times;
    bool done;
} Working;

static void *work_while_cancelled(void *argument) {
    Working *working = argument;
    int state = PTHREAD_CANCEL_DISABLE;
    CHECK(pthread_cancel(pthread_self()) == 0);
    for (int i = 0; i < working->times; ++i) {
        working->run(working->argument);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
        CHECK_EQ(state, PTHREAD_CANCEL_ENABLE);
    }
    working->done = true;
    pthread_testcancel();
    return NULL;
}

void run_while_cancelled(void (*run)(void *argument), void *argument, int times) {
    Working working = {.run = run, .argument = argument, .times = times};
    Sleeper worker = {0};
    CHECK(pthread_create(&worker.thread, NULL, work_while_cancelled, &working) == 0);
    CHECK(sleeper_join(&worker) && working.done);
}

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

static _Atomic unsigned counts[NSIG];

static void count_one(int number) { ++counts[number]; }

void count_signals(int number, int flags) {
    struct sigaction action = {.sa_handler = count_one, .sa_flags = flags};
    CHECK(sigaction(number, &action, NULL) == 0);
}

void block_signal(int number) {
    sigset_t blocked;
    count_signals(number, 0);
    CHECK(sigemptyset(&blocked) == 0 && sigaddset(&blocked, number) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
}

unsigned sleeper_disturb(const Sleeper *sleeper, int number) {
    const unsigned before = counts[number];
    for (int i = 0; i < 5; ++i) {
        CHECK(pthread_kill(sleeper->thread, number) == 0);
        CHECK(sleeps_on(sleeper));
    }
    return counts[number] - before;
}

void sleeper_interrupt(Sleeper *sleeper, int number) {
    const struct timespec pause = {0, 1000000};
    while (!sleeper->returned) {
        CHECK(pthread_kill(sleeper->thread, number) == 0);
        nanosleep(&pause, NULL);
    }
    CHECK(!sleeper_join(sleeper));
}
