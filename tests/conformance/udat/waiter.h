/* SPDX-License-Identifier: BSD-3-Clause
 * A thread that waits on an EVD or a CNO, for the conformance programs.
 */
#ifndef WAITER_H
#define WAITER_H

#include "../support/sleeper.h"
#include "conformance.h"

typedef struct {
    DAT_EVD_HANDLE evd; /* to wait on, or */
    DAT_CNO_HANDLE cno;
    DAT_COUNT threshold; /* 0 is 1 */
    DAT_RETURN rc;
    DAT_EVENT event; /* what dat_evd_wait gives */
    DAT_COUNT more;
    DAT_EVD_HANDLE notified; /* what dat_cno_wait gives */
    Sleeper sleeper;
} Waiter;

/* Waits in the calling thread. */
void waiter_wait(Waiter *waiter);

/* Starts the thread, and returns once it sleeps. */
void waiter_start(Waiter *waiter);

/* Waits until the call of the thread has returned. */
void waiter_join(Waiter *waiter);

/* Whether its call has not returned; gives it some time to, if it should not. */
bool still_waiting(const Waiter *waiter);

/* Sends it signals until its call has returned. */
void waiter_interrupt(Waiter *waiter);

#endif
