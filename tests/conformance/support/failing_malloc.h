/* SPDX-License-Identifier: BSD-3-Clause
 * A malloc that fails on demand, in the calling thread. A program that links it has no other malloc.
 *
 * Under a sanitizer, which takes malloc for itself, nothing ever fails.
 */
#ifndef FAILING_MALLOC_H
#define FAILING_MALLOC_H

/* From now on this many allocations succeed and the next ones fail; negative: none fails. */
void limit_allocations(long count);

/* The same, but for one failure: this many allocations succeed, the next one fails, and those behind it succeed. */
void fail_one_allocation(long count);

/* Lifts either, and returns how many allocations have failed since it was set. */
long lift_allocation_limit(void);

#endif
