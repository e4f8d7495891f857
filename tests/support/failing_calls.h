/* SPDX-License-Identifier: BSD-3-Clause
 * Calls of other libraries that fail on demand. If this is linked before all other libraries, or into the program, it
 * replaces malloc, sendmsg and so on in the program and in the libraries that it loads. It also counts what the process
 * holds of the heap.
 *
 * With sanitizers, which have their own malloc, no allocation fails, and none is counted.
 */
#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

#include <stdbool.h>

/* A kind is a function: X(kind, what it returns if it fails, errno). */
#define SYSTEM_CALLS(X)                \
    X(mmap, -1, ENOMEM)                \
    X(mremap, -1, ENOMEM)              \
    X(madvise, -1, EAGAIN)             \
    X(memfd_create, -1, EMFILE)        \
    X(ftruncate, -1, ENOSPC)           \
    X(linkat, -1, ENOSPC)              \
    X(socket, -1, EMFILE)              \
    X(bind, -1, ENOMEM)                \
    X(listen, -1, ENOBUFS)             \
    X(accept4, -1, EMFILE)             \
    X(connect, -1, ENOMEM)             \
    X(getsockopt, -1, ENOMEM)          \
    X(getsockname, -1, ENOBUFS)        \
    X(getpeername, -1, ENOBUFS)        \
    X(getifaddrs, -1, ENOMEM)          \
    X(getaddrinfo, EAI_MEMORY, ENOMEM) \
    X(send, -1, ENOBUFS)               \
    X(sendmsg, -1, ENOBUFS)            \
    X(recv, -1, ENOMEM)                \
    X(recvmsg, -1, ENOMEM)             \
    X(eventfd, -1, EMFILE)             \
    X(signalfd, -1, EMFILE)            \
    X(timerfd_create, -1, EMFILE)      \
    X(epoll_create1, -1, EMFILE)       \
    X(getrandom, -1, ENOMEM)           \
    X(pthread_create, EAGAIN, EAGAIN)  \
    X(process_vm_readv, -1, EPERM)     \
    X(process_vm_writev, -1, EPERM)

/* Of the backend tcp. They leave an error in the queue of OpenSSL. */
#define OPENSSL_CALLS(X)       \
    X(SSL_CTX_new_ex, 0, 0)    \
    X(SSL_new, 0, 0)           \
    X(SSL_SESSION_new, 0, 0)   \
    X(BIO_new, 0, 0)           \
    X(EVP_Digest, 0, 0)        \
    X(SSL_do_handshake, -1, 0) \
    X(SSL_read, -1, 0)         \
    X(SSL_write, -1, 0)

/* Of the backend verbs. */
#define RDMA_CALLS(X)                       \
    X(ibv_get_device_list, 0, ENOMEM)       \
    X(ibv_open_device, 0, ENOMEM)           \
    X(ibv_query_device, ENOMEM, ENOMEM)     \
    X(ibv_query_port, ENOMEM, ENOMEM)       \
    X(ibv_alloc_pd, 0, ENOMEM)              \
    X(ibv_reg_mr, 0, ENOMEM)                \
    X(ibv_reg_mr_iova2, 0, ENOMEM)          \
    X(ibv_create_comp_channel, 0, EMFILE)   \
    X(ibv_create_cq, 0, ENOMEM)             \
    X(ibv_resize_cq, ENOMEM, ENOMEM)        \
    X(ibv_create_srq, 0, ENOMEM)            \
    X(ibv_create_qp, 0, ENOMEM)             \
    X(ibv_modify_qp, ENOMEM, ENOMEM)        \
    X(rdma_create_event_channel, 0, EMFILE) \
    X(rdma_create_id, -1, ENOMEM)           \
    X(rdma_migrate_id, -1, ENOMEM)          \
    X(rdma_bind_addr, -1, ENOMEM)           \
    X(rdma_listen, -1, ENOMEM)              \
    X(rdma_resolve_addr, -1, ENOMEM)        \
    X(rdma_resolve_route, -1, ENOMEM)       \
    X(rdma_init_qp_attr, -1, ENOMEM)        \
    X(rdma_connect, -1, ENOMEM)             \
    X(rdma_accept, -1, ENOMEM)              \
    X(rdma_establish, -1, ENOMEM)           \
    X(rdma_reject, -1, ENOMEM)

/* These kinds are several functions, or some calls of one. */
#define CALL_KINDS(X)         \
    X(malloc, 0, ENOMEM)      \
    X(open, 0, EMFILE)        \
    X(fcntl, -1, EMFILE)      \
    X(epoll_ctl, -1, ENOSPC)  \
    X(pidfd_open, -1, EMFILE) \
    X(membarrier, -1, ENOMEM) \
    X(msync, -1, EIO)         \
    SYSTEM_CALLS(X)           \
    OPENSSL_CALLS(X)          \
    RDMA_CALLS(X)

typedef enum {
#define X(kind, result, code) CALL_##kind,
    CALL_KINDS(X)
#undef X
        CALL_NONE
} CallKind;

/* Only one kind of call fails at a time. Makes the nth call of this kind fail, counted from 1. `onwards`: all later
 * ones fail, too. CALL_NONE: only counts. */
void fail_calls(CallKind kind, long nth, bool onwards);

/* The same, only for calls of this thread. */
void fail_calls_of_thread(CallKind kind, long nth, bool onwards);

/* Stops making calls fail. Returns how many have failed. */
long restore_calls(void);

/* Returns the number of calls of a kind between fail_calls() and restore_calls(). */
long calls_made(CallKind kind);

const char* call_name(CallKind kind);

/* Returns the number of blocks that were allocated and not freed. */
long heap_blocks(void);

#endif
