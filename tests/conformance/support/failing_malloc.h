/* SPDX-License-Identifier: BSD-3-Clause
 * A malloc that fails on demand, in the calling thread. It replaces malloc in programs that link it.
 *
 * With sanitizers, which have their own malloc, no allocation fails.
 */
#ifndef FAILING_MALLOC_H
#define FAILING_MALLOC_H

/* Makes allocations fail after this many have succeeded. Negative: none fails. */
void limit_allocations(long count);

/* Makes one allocation fail after this many have succeeded. Later ones succeed. */
void fail_one_allocation(long count);

/* Removes the limit and returns the number of allocations that have failed since it was set. */
long lift_allocation_limit(void);

#endif
