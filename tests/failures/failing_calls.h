/* SPDX-License-Identifier: BSD-3-Clause
 * C library calls that fail on demand, in all threads of the process. If this library is linked before all others,
 * it replaces malloc, sendmsg and so on in the program and in the libraries that it loads.
 *
 * With sanitizers, which have their own malloc, no allocation fails.
 */
#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

#include <stdbool.h>

/* Only one kind of call fails at a time: X(kind, errno). */
#define CALL_KINDS(X)          \
    X(malloc, ENOMEM)          \
    X(mmap, ENOMEM)            \
    X(memfd_create, EMFILE)    \
    X(ftruncate, ENOSPC)       \
    X(fcntl, EMFILE)           \
    X(open, EMFILE)            \
    X(socket, EMFILE)          \
    X(bind, ENOMEM)            \
    X(listen, ENOBUFS)         \
    X(accept4, EMFILE)         \
    X(connect, ENOMEM)         \
    X(sendmsg, ENOBUFS)        \
    X(recvmsg, ENOMEM)         \
    X(eventfd, EMFILE)         \
    X(epoll_create1, EMFILE)   \
    X(epoll_ctl, ENOSPC)       \
    X(pidfd_open, EMFILE)      \
    X(pthread_create, EAGAIN)  \
    X(process_vm_readv, EPERM) \
    X(process_vm_writev, EPERM)

typedef enum {
#define X(kind, code) CALL_##kind,
    CALL_KINDS(X)
#undef X
        CALL_NONE
} CallKind;

/* Makes the nth call of this kind fail, counted from 1. `onwards`: all later ones fail, too. CALL_NONE: only counts. */
void fail_calls(CallKind kind, long nth, bool onwards);

/* Stops making calls fail. Returns how many have failed. */
long restore_calls(void);

/* Returns the number of calls of a kind between fail_calls() and restore_calls(). */
long calls_made(CallKind kind);

const char* call_name(CallKind kind);

#endif
