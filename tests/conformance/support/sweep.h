/* SPDX-License-Identifier: BSD-3-Clause
 * Calls that run out of memory or file descriptors: for every n, until the call succeeds, the n-th allocation in the
 * call fails, or the process has only n descriptors left.
 *
 * Compiled for each suite. Its conformance.h defines the type of return codes, `Return`, where 0 is success; the codes
 * for these failures, NO_MEMORY and NO_DESCRIPTORS; and IS_UNCLEAR(rc, expected), whether a device may return `rc`
 * instead. With sanitizers, which have their own malloc and use descriptors, the cases are skipped.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "../../support/failing_calls.h"
#include "conformance.h"

/* A call under test, and functions that prepare and undo it, which may be NULL. */
typedef struct {
    void (*prepare)(void);
    Return (*call)(void);
    void (*undo)(void);
    Return usual; /* the usual result */
    Return also;  /* another allowed result when memory runs out, instead of NO_MEMORY; 0: none */
    int once;     /* it succeeds only once: omits the second sweep, in which single allocations fail */
} Sweep;

/* The call allocates memory and reports a lack of it; may allocate; does not allocate. */
void allocates(Sweep under_test);
void may_allocate(Sweep under_test);
void allocates_nothing(Sweep under_test);

/* The call may allocate memory for later, but succeeds without it. */
void succeeds_without_memory(Return (*call)(void));

/* Returns the number of file descriptors that the call needs. */
int sweep_descriptors(Sweep under_test);

/* Uses up all file descriptors except this many, and frees them again. */
void leave_descriptors(int count);
void give_descriptors_back(void);

#endif
