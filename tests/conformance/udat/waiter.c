/* SPDX-License-Identifier: BSD-3-Clause
 * A thread that waits on an EVD or a CNO, for the conformance programs.
 */
#include "waiter.h"

#include <signal.h>
#include <time.h>

static void pause_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

void waiter_wait(Waiter *waiter) {
    if (waiter->evd != DAT_HANDLE_NULL) {
        DAT_COUNT threshold = waiter->threshold > 0 ? waiter->threshold : 1;
        waiter->rc = dat_evd_wait(waiter->evd, DAT_TIMEOUT_INFINITE, threshold, &waiter->event, &waiter->more);
    } else {
        waiter->rc = dat_cno_wait(waiter->cno, DAT_TIMEOUT_INFINITE, &waiter->notified);
    }
}

static void run_waiter(void *waiter) { waiter_wait(waiter); }

void waiter_start(Waiter *waiter) { sleeper_start(&waiter->sleeper, run_waiter, waiter); }

void waiter_join(Waiter *waiter) { CHECK(!sleeper_join(&waiter->sleeper)); }

bool still_waiting(const Waiter *waiter) {
    for (unsigned ms = 0; ms < SHORT_MS && !waiter->sleeper.returned; ++ms) pause_ms(1);
    return !waiter->sleeper.returned;
}

void waiter_interrupt(Waiter *waiter) {
    count_signals(SIGUSR1, 0);
    sleeper_interrupt(&waiter->sleeper, SIGUSR1);
}
