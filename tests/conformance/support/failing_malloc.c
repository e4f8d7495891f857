/* SPDX-License-Identifier: BSD-3-Clause
 * A malloc that fails on demand; see failing_malloc.h.
 */
#include "failing_malloc.h"

#include "harness.h"

#include <errno.h>

static _Thread_local long allocations_left = -1; /* negative: no limit */
static _Thread_local int only_one;               /* only one allocation fails */
static _Thread_local long failures;

static void set_limit(long count, int one) {
    failures = 0;
    only_one = one;
    allocations_left = count;
}

void limit_allocations(long count) { set_limit(count, 0); }
void fail_one_allocation(long count) { set_limit(count, 1); }

long lift_allocation_limit(void) {
    allocations_left = -1;
    return failures;
}

#if !UNDER_SANITIZER
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static int refuse(void) {
    if (allocations_left < 0) return 0;
    if (allocations_left > 0) {
        --allocations_left;
        return 0;
    }
    ++failures;
    if (only_one) allocations_left = -1;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);
void *memalign(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **memory, size_t alignment, size_t size);

void *malloc(size_t size) { return refuse() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return refuse() ? NULL : __libc_calloc(count, size); }
void *realloc(void *memory, size_t size) { return refuse() ? NULL : __libc_realloc(memory, size); }
void *memalign(size_t alignment, size_t size) { return refuse() ? NULL : __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
    *memory = memalign(alignment, size);
    return *memory == NULL ? ENOMEM : 0;
}
#endif
