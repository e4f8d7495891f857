/* SPDX-License-Identifier: BSD-3-Clause
 * C library calls that fail on demand; see failing_calls.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "failing_calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_bool armed;
static atomic_long calls[CALL_NONE];
static atomic_long failures;
static _Atomic CallKind failing_kind; /* atomic, because other threads may be in such calls */
static atomic_long first_failure;
static atomic_bool all_from_there;

void fail_calls(CallKind kind, long nth, bool onwards) {
    for (int i = 0; i < CALL_NONE; ++i) calls[i] = 0;
    failures = 0;
    failing_kind = kind;
    first_failure = nth;
    all_from_there = onwards;
    armed = true;
}

long restore_calls(void) {
    armed = false;
    return failures;
}

long calls_made(CallKind kind) { return calls[kind]; }

static const struct {
    const char* name;
    int code;
} kinds[] = {
#define X(kind, code) [CALL_##kind] = {#kind, code},
    CALL_KINDS(X)
#undef X
};

const char* call_name(CallKind kind) { return kinds[kind].name; }

/* Counts a call. Returns whether it fails, and sets errno. */
static bool refuse(CallKind kind) {
    if (!armed) return false;
    long call = atomic_fetch_add(&calls[kind], 1) + 1;
    if (kind != failing_kind || call < first_failure || (call > first_failure && !all_from_there)) return false;
    ++failures;
    errno = kinds[kind].code;
    return true;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
void* memalign(size_t alignment, size_t size);

void* malloc(size_t size) { return refuse(CALL_malloc) ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return refuse(CALL_malloc) ? NULL : __libc_calloc(count, size); }
void* realloc(void* memory, size_t size) { return refuse(CALL_malloc) ? NULL : __libc_realloc(memory, size); }
void* memalign(size_t alignment, size_t size) { return refuse(CALL_malloc) ? NULL : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
    *memory = memalign(alignment, size);
    return *memory == NULL ? ENOMEM : 0;
}
#endif

/* ---- System calls ------------------------------------------------------------------------------------------------ */

/* Looks up the real function, which must happen while no call fails. Libraries that are loaded earlier may call
   before. */
#define NEXT(name)                                                                \
    static __typeof__(&(name)) next_##name;                                       \
    __attribute__((constructor)) static void find_##name(void) {                  \
        if (next_##name == NULL) *(void**)&next_##name = dlsym(RTLD_NEXT, #name); \
    }

/* PASS(result, failure, kind, name, (parameters), (arguments)): a call that fails or is forwarded. */
#define PASS(result, failure, kind, name, parameters, arguments) \
    NEXT(name)                                                   \
    result name parameters {                                     \
        if (refuse(CALL_##kind)) return failure;                 \
        find_##name();                                           \
        return next_##name arguments;                            \
    }

PASS(void*, MAP_FAILED, mmap, mmap, (void* at, size_t size, int rights, int flags, int fd, off_t offset),
     (at, size, rights, flags, fd, offset))
PASS(int, -1, memfd_create, memfd_create, (const char* name, unsigned flags), (name, flags))
PASS(int, -1, ftruncate, ftruncate, (int fd, off_t size), (fd, size))
PASS(FILE*, NULL, open, fopen, (const char* path, const char* mode), (path, mode))
PASS(DIR*, NULL, open, opendir, (const char* path), (path))
PASS(int, -1, socket, socket, (int domain, int type, int protocol), (domain, type, protocol))
PASS(int, -1, bind, bind, (int fd, __CONST_SOCKADDR_ARG address, socklen_t size), (fd, address, size))
PASS(int, -1, listen, listen, (int fd, int backlog), (fd, backlog))
PASS(int, -1, accept4, accept4, (int fd, __SOCKADDR_ARG address, socklen_t* size, int flags),
     (fd, address, size, flags))
PASS(int, -1, connect, connect, (int fd, __CONST_SOCKADDR_ARG address, socklen_t size), (fd, address, size))
PASS(ssize_t, -1, sendmsg, sendmsg, (int fd, const struct msghdr* message, int flags), (fd, message, flags))
PASS(ssize_t, -1, recvmsg, recvmsg, (int fd, struct msghdr* message, int flags), (fd, message, flags))
PASS(int, -1, eventfd, eventfd, (unsigned count, int flags), (count, flags))
PASS(int, -1, epoll_create1, epoll_create1, (int flags), (flags))
PASS(int, EAGAIN, pthread_create, pthread_create,
     (pthread_t * thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument),
     (thread, attributes, run, argument))
PASS(ssize_t, -1, process_vm_readv, process_vm_readv,
     (pid_t process, const struct iovec* here, unsigned long count, const struct iovec* there, unsigned long pieces,
      unsigned long flags),
     (process, here, count, there, pieces, flags))
PASS(ssize_t, -1, process_vm_writev, process_vm_writev,
     (pid_t process, const struct iovec* here, unsigned long count, const struct iovec* there, unsigned long pieces,
      unsigned long flags),
     (process, here, count, there, pieces, flags))

/* Operations that remove something cannot fail. */
NEXT(epoll_ctl)
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event* event) {
    if (operation != EPOLL_CTL_DEL && refuse(CALL_epoll_ctl)) return -1;
    find_epoll_ctl();
    return next_epoll_ctl(epoll, operation, fd, event);
}

/* Operations that only query cannot fail. */
NEXT(fcntl)
int fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    if ((command == F_DUPFD_CLOEXEC || command == F_ADD_SEALS) && refuse(CALL_fcntl)) return -1;
    find_fcntl();
    return next_fcntl(fd, command, argument);
}

NEXT(open)
int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    unsigned mode = va_arg(arguments, unsigned);
    va_end(arguments);
    if (refuse(CALL_open)) return -1;
    find_open();
    return next_open(path, flags, mode);
}

NEXT(syscall)
long syscall(long number, ...) {
    long given[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; ++i) given[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_pidfd_open && refuse(CALL_pidfd_open)) return -1;
    find_syscall();
    return next_syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
