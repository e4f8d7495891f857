/* SPDX-License-Identifier: BSD-3-Clause
 * Calls of the C library that fail on demand, in all threads of the process. A program that links this library before
 * all others has no other malloc, sendmsg and so on, and neither have the libraries that it loads.
 *
 * Under a sanitizer, which takes malloc for itself, no allocation fails.
 */
#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

#include <stdbool.h>

/* One kind of calls fails at a time: X(kind, errno). */
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

/* From now on the nth call of this kind fails, counted from 1; `onwards`: and all after it. CALL_NONE only counts. */
void fail_calls(CallKind kind, long nth, bool onwards);

/* No call fails any more. Returns how many have failed. */
long restore_calls(void);

/* How many calls of a kind there were between the two. */
long calls_made(CallKind kind);

const char* call_name(CallKind kind);

#endif
