/* SPDX-License-Identifier: BSD-3-Clause
 * Calls that fail on demand; see failing_calls.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "failing_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/eventpoll.h>
#include <linux/fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

static atomic_bool armed;
static atomic_long calls[CALL_NONE];
static atomic_long failures;
static _Atomic CallKind failing_kind; /* atomic, because other threads may be in such calls */
static atomic_long first_failure;
static atomic_bool all_from_there;
static atomic_bool of_one_thread;
static _Thread_local bool in_the_thread __attribute__((tls_model("initial-exec"))); /* which needs no malloc */

static void arm(CallKind kind, long nth, bool onwards, bool in_thread) {
    for (int i = 0; i < CALL_NONE; ++i) calls[i] = 0;
    failures = 0;
    failing_kind = kind;
    first_failure = nth;
    all_from_there = onwards;
    in_the_thread = of_one_thread = in_thread;
    armed = true;
}

void fail_calls(CallKind kind, long nth, bool onwards) { arm(kind, nth, onwards, false); }
void fail_calls_of_thread(CallKind kind, long nth, bool onwards) { arm(kind, nth, onwards, true); }

long restore_calls(void) {
    armed = false;
    return failures;
}

long calls_made(CallKind kind) { return calls[kind]; }

static const struct {
    const char* name;
    int code;
} kinds[] = {
#define X(kind, result, code) [CALL_##kind] = {#kind, code},
    CALL_KINDS(X)
#undef X
};

const char* call_name(CallKind kind) { return kinds[kind].name; }

/* Counts a call. Returns whether it fails, and sets errno. */
static bool refuse(CallKind kind) {
    if (!armed || (of_one_thread && !in_the_thread)) return false;
    long call = atomic_fetch_add(&calls[kind], 1) + 1;
    if (kind != failing_kind || call < first_failure || (call > first_failure && !all_from_there)) return false;
    ++failures;
    errno = kinds[kind].code;
    return true;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static atomic_long blocks;

long heap_blocks(void) { return blocks; }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void* memory);
void* memalign(size_t alignment, size_t size);

static void* counted(void* memory) {
    blocks += memory != NULL;
    return memory;
}

void* malloc(size_t size) { return refuse(CALL_malloc) ? NULL : counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return refuse(CALL_malloc) ? NULL : counted(__libc_calloc(count, size)); }
void* realloc(void* memory, size_t size) {
    if (memory == NULL) return malloc(size);
    if (size == 0) --blocks;
    return size != 0 && refuse(CALL_malloc) ? NULL : __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
    return refuse(CALL_malloc) ? NULL : counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
    *memory = memalign(alignment, size);
    return *memory == NULL ? ENOMEM : 0;
}
void free(void* memory) {
    blocks -= memory != NULL;
    __libc_free(memory);
}
#endif

/* ---- Functions --------------------------------------------------------------------------------------------------- */

/* Stands for all functions with up to six arguments, which are numbers or pointers: the processors that we know pass
   these in the same registers, whatever their types. Hence the headers of the functions are not included. */
typedef long Function(long, long, long, long, long, long);
#define PARAMETERS long a, long b, long c, long d, long e, long f
#define ARGUMENTS a, b, c, d, e, f

static void* look_up(void* library, const char* name) {
    static void* (*system_dlsym)(void*, const char*);
    if (system_dlsym == NULL) *(void**)&system_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    return system_dlsym(library, name);
}

/* Looks up the real function, which must happen while no call fails. Libraries that are loaded earlier may call
   before. The functions of libraries that are loaded later are looked up when they are called. */
#define NEXT(name)                                                                  \
    static Function* next_##name;                                                   \
    __attribute__((constructor)) static void find_##name(void) {                    \
        if (next_##name == NULL) *(void**)&next_##name = look_up(RTLD_NEXT, #name); \
    }

/* A function whose calls count as calls of the kind if the condition is true. */
#define FORWARD(name, kind, condition, result)                                         \
    NEXT(name)                                                                         \
    long name(PARAMETERS);                                                             \
    long name(PARAMETERS) {                                                            \
        find_##name();                                                                 \
        return (condition) && refuse(CALL_##kind) ? (result) : next_##name(ARGUMENTS); \
    }

enum { EAI_MEMORY = -10, ERR_LIB_SSL = 20, ERR_R_MALLOC_FAILURE = 256 | (1 << 18 | 2 << 18) };

#define X(kind, result, code) FORWARD(kind, kind, true, result)
SYSTEM_CALLS(X)
#undef X
FORWARD(open, open, true, -1)
FORWARD(fopen, open, true, 0)
FORWARD(opendir, open, true, 0)
/* What only queries, changes or removes something cannot fail. */
FORWARD(epoll_ctl, epoll_ctl, (int)b == EPOLL_CTL_ADD, -1)
FORWARD(fcntl, fcntl, (int)b == F_DUPFD_CLOEXEC || (int)b == F_ADD_SEALS, -1)

NEXT(syscall)
long syscall(long number, ...);
long syscall(long number, ...) {
    long given[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; ++i) given[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_pidfd_open && refuse(CALL_pidfd_open)) return -1;
    if (number == SYS_membarrier && refuse(CALL_membarrier)) return -1;
    if (number == SYS_msync && refuse(CALL_msync)) return -1;
    find_syscall();
    return ((long (*)(long, ...))next_syscall)(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

/* ---- Functions of libraries that are loaded when they are needed ------------------------------------------------- */

/* Not with the sanitizers, which look up the functions that they intercept, and would find their own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void (*new_error)(void);
static void (*set_error)(int library, int reason, const char* format, ...);

/* A call of OpenSSL that fails says why. */
static bool refuse_with_error(CallKind kind) {
    if (!refuse(kind)) return false;
    new_error();
    set_error(ERR_LIB_SSL, ERR_R_MALLOC_FAILURE, NULL);
    return true;
}

#define REPLACE(name, refuses, result) \
    static Function* next_##name;      \
    static long fail_##name(PARAMETERS) { return refuses(CALL_##name) ? (result) : next_##name(ARGUMENTS); }
#define X(name, result, code) REPLACE(name, refuse_with_error, result)
OPENSSL_CALLS(X)
#undef X
#define X(name, result, code) REPLACE(name, refuse, result)
RDMA_CALLS(X)
#undef X

static const struct {
    const char* name;
    Function **next, *replacement;
} replaced[] = {
#define X(name, result, code) {#name, &next_##name, fail_##name},
    OPENSSL_CALLS(X) RDMA_CALLS(X)
#undef X
};

void* dlsym(void* library, const char* name) {
    void* found = look_up(library, name);
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; ++i) {
        if (found == NULL || strcmp(replaced[i].name, name) != 0) continue;
        *(void**)replaced[i].next = found;
        found = *(void* const*)&replaced[i].replacement;
    }
    if (found != NULL && strncmp(name, "SSL_", 4) == 0) {
        *(void**)&new_error = look_up(library, "ERR_new");
        *(void**)&set_error = look_up(library, "ERR_set_error");
    }
    return found;
}
#endif
