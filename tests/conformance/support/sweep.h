/* SPDX-License-Identifier: BSD-3-Clause
 * Calls that run out of memory or of file descriptors: the n-th allocation inside the call fails, or the process has n
 * descriptors left, for every n until the call succeeds.
 *
 * Compiled for each suite, whose conformance.h has the type of return codes, `Return`, of which 0 is success; what a
 * call gives then, NO_MEMORY and NO_DESCRIPTORS; and IS_UNCLEAR(rc, expected), whether a device may say that instead.
 * Under a sanitizer, which takes malloc and descriptors for itself, the cases are skipped.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "conformance.h"
#include "failing_malloc.h"

/* A call under test, what makes it ready and what undoes it; both of them may be NULL. */
typedef struct {
    void (*prepare)(void);
    Return (*call)(void);
    void (*undo)(void);
    Return usual; /* what the call gives where it lacks nothing */
    Return also;  /* what it may give for want of memory instead of NO_MEMORY, unless 0 */
    int once;     /* it succeeds once: no second sweep, in which one allocation fails alone */
} Sweep;

/* The call needs memory, and says so; perhaps; it needs none. */
void allocates(Sweep under_test);
void may_allocate(Sweep under_test);
void allocates_nothing(Sweep under_test);

/* The call may want memory for what comes later, and does without. */
void succeeds_without_memory(Return (*call)(void));

/* How many file descriptors the call needs. */
int sweep_descriptors(Sweep under_test);

/* Takes all file descriptors except this many, and gives them back. */
void leave_descriptors(int count);
void give_descriptors_back(void);

#endif
