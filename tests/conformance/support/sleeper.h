/* SPDX-License-Identifier: BSD-3-Clause
 * Threads that wait in a call of the library, for cases about what ends the call: an event, cancellation, a signal.
 */
#ifndef SLEEPER_H
#define SLEEPER_H

#include "harness.h"

#include <pthread.h>

typedef struct {
    bool uncancellable; /* cancellation of the thread is disabled during the call */
    void (*call)(void *argument);
    void *argument;
    pthread_t thread;
    _Atomic pid_t tid;
    _Atomic bool returned;
} Sleeper;

/* Starts a thread that makes the call, and returns once it sleeps, or its call has returned. After the call, the thread
 * must have the same cancellation state and signal mask as before. */
void sleeper_start(Sleeper *sleeper, void (*call)(void *argument), void *argument);

/* Whether its call has not returned and will not do so by itself. */
bool sleeps_on(const Sleeper *sleeper);

/* Waits until the thread has ended. Returns whether it was cancelled: in the call or, if uncancellable, after it. */
bool sleeper_join(Sleeper *sleeper);

/* Cancels the thread and joins it. */
bool sleeper_cancel(Sleeper *sleeper);

/* Runs something several times in a thread with a pending request for cancellation, which must have no effect. */
void run_while_cancelled(void (*run)(void *argument), void *argument, int times);

/* Installs a handler that counts its signals. The flags are those of sigaction(2). */
void count_signals(int number, int flags);

/* Installs one, and blocks the signal in this thread and in those that it starts. */
void block_signal(int number);

/* Sends the thread a signal several times, during which it must sleep on. Returns how often the handler ran. */
unsigned sleeper_disturb(const Sleeper *sleeper, int number);

/* Sends it signals until its call has returned: the first ones may come before it sleeps. */
void sleeper_interrupt(Sleeper *sleeper, int number);

#endif
