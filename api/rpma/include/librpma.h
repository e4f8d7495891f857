/*
 * librpma.h - remote persistent memory access, by Viaduct
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Declares what librpma 1.2.0 declares: 84 functions with their types and values. The binary interface is the same,
 * so programs build without changes, and programs that are linked with librpma.so.0 run with this library in its
 * place. The header compiles on its own as C11 and C++17.
 *
 * Conventions for all functions, unless their comment says otherwise:
 *   - A function returns 0 or one of the negative RPMA_E_ values. It writes outputs only on success.
 *   - RPMA_E_INVAL: a required pointer is NULL, or an object is not, or no longer, of the expected kind. Invalid
 *     objects are detected without a crash.
 *   - RPMA_E_NOMEM: out of memory. RPMA_E_PROVIDER: the layer below failed; the log gives the reason.
 *   - Functions whose names end in _delete, _dereg or _shutdown take the address of the object's pointer and set the
 *     pointer to NULL. They accept a pointer that is already NULL.
 *   - Sizes, offsets and lengths are in bytes, times in milliseconds, queue sizes in entries.
 *   - All functions are thread-safe, with one exception: an object must not be deleted during a call that uses it,
 *     except for calls that wait: they return RPMA_E_INVAL then. Signals interrupt calls that wait only if their
 *     handler was installed without SA_RESTART.
 *   - After fork(), objects of the parent are not valid in the child, which may create its own.
 *   - Each function has a manual page; librpma(7) is an overview.
 */
#ifndef LIBRPMA_H
#define LIBRPMA_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __has_include
#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>
#else
#include "viaduct/ibv_types.h"
#endif
#else
#include "viaduct/ibv_types.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

#define RPMA_E_UNKNOWN (-100000)         /* other error */
#define RPMA_E_NOSUPP (-100001)          /* not supported */
#define RPMA_E_PROVIDER (-100002)        /* the layer below failed */
#define RPMA_E_NOMEM (-100003)           /* out of memory */
#define RPMA_E_INVAL (-100004)           /* invalid argument */
#define RPMA_E_NO_COMPLETION (-100005)   /* no completion is available */
#define RPMA_E_NO_EVENT (-100006)        /* no event or request is available */
#define RPMA_E_AGAIN (-100007)           /* temporary failure; try again */
#define RPMA_E_SHARED_CHANNEL (-100008)  /* the queue shares its completion channel: use rpma_conn_wait() */
#define RPMA_E_NOT_SHARED_CHNL (-100009) /* the connection has no shared completion channel */

/* Returns a description of an error, never NULL. */
const char* rpma_err_2str(int ret);

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

#define RPMA_DEFAULT_TIMEOUT_MS 1000

/* Declared by librpma 1.2.0 but not used by any function. */
#define RPMA_W_WAIT_FOR_COMPLETION (1)

enum rpma_util_ibv_context_type {
    RPMA_UTIL_IBV_CONTEXT_LOCAL, /* the device that has the address */
    RPMA_UTIL_IBV_CONTEXT_REMOTE /* the device that reaches the address */
};

/*
 * Finds a device by a host name, an IPv4 address or an IPv6 address. The library owns the context, which can only be
 * passed to functions of this library. RPMA_E_INVAL: unknown type. RPMA_E_PROVIDER: no device has or reaches the
 * address.
 */
int rpma_utils_get_ibv_context(const char* addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context** ibv_ctx_ptr);

/* Returns 1 if regions can be registered without pinning their memory (on-demand paging), otherwise 0. */
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context* ibv_ctx, int* is_odp_capable);

/* ---- Peer configurations: what peers tell each other ------------------------------------------------------------- */

struct rpma_peer_cfg;

/* Creates a configuration with the default: no direct write to persistent memory. The caller deletes it. */
int rpma_peer_cfg_new(struct rpma_peer_cfg** pcfg_ptr);
int rpma_peer_cfg_delete(struct rpma_peer_cfg** pcfg_ptr);

/*
 * Whether data that reach the peer's persistent memory are persistent without action by the peer. Required for
 * RPMA_FLUSH_TYPE_PERSISTENT.
 */
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg* pcfg, bool supported);
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg* pcfg, bool* supported);

/*
 * Convert the configuration to rpma_peer_cfg_get_descriptor_size() bytes (1) at `desc`, to be sent to other hosts,
 * and back. rpma_peer_cfg_from_descriptor() also returns RPMA_E_INVAL if desc_size is 0. Check bytes from untrusted
 * sources.
 */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg* pcfg, void* desc);
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg* pcfg, size_t* desc_size);
int rpma_peer_cfg_from_descriptor(const void* desc, size_t desc_size, struct rpma_peer_cfg** pcfg_ptr);

/* ---- Peers: a device and a protection domain --------------------------------------------------------------------- */

struct rpma_peer;

/* Creates a peer on a device. The caller deletes it after everything created with it. */
int rpma_peer_new(struct ibv_context* ibv_ctx, struct rpma_peer** peer_ptr);

/*
 * RPMA_E_PROVIDER: the peer still has regions, requests, connections, endpoints or shared receive queues. They keep
 * working, but the peer is deleted and *peer_ptr is NULL in this case, too.
 */
int rpma_peer_delete(struct rpma_peer** peer_ptr);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

struct rpma_mr_local;  /* memory of this process that is registered with a peer */
struct rpma_mr_remote; /* the description of a region of another process */

/* The uses of a region, in any combination. */
#define RPMA_MR_USAGE_READ_SRC (1 << 0)              /* peers read from it */
#define RPMA_MR_USAGE_READ_DST (1 << 1)              /* rpma_read() puts data into it */
#define RPMA_MR_USAGE_WRITE_SRC (1 << 2)             /* rpma_write() takes data from it */
#define RPMA_MR_USAGE_WRITE_DST (1 << 3)             /* peers write to it */
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY (1 << 4) /* peers flush their writes to make them visible */
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT (1 << 5) /* peers flush their writes to make them persistent */
#define RPMA_MR_USAGE_SEND (1 << 6)                  /* rpma_send() takes messages from it */
#define RPMA_MR_USAGE_RECV (1 << 7)                  /* rpma_recv() puts messages into it */

/*
 * Registers memory. The caller keeps ownership of it and must keep it mapped until rpma_mr_dereg(). RPMA_E_INVAL:
 * size is 0, or usage is 0 or has unknown bits. RPMA_E_PROVIDER: the memory is not mapped, or the device is out of
 * resources.
 */
int rpma_mr_reg(struct rpma_peer* peer, void* ptr, size_t size, int usage, struct rpma_mr_local** mr_ptr);

/* Ends all use of the memory, also by peers. Operations in progress fail. */
int rpma_mr_dereg(struct rpma_mr_local** mr_ptr);

/*
 * Convert the region to rpma_mr_get_descriptor_size() bytes (21) at `desc`, to be sent to other hosts, and back. The
 * bytes are the address and the size (8 bytes each), the key (4) and the usage (1), little-endian. The caller
 * may delete the description at any time. rpma_mr_remote_from_descriptor() also returns RPMA_E_INVAL if desc_size is
 * too small or the usage is 0. The descriptor gives access to the memory: send it over trusted channels.
 */
int rpma_mr_get_descriptor(const struct rpma_mr_local* mr, void* desc);
int rpma_mr_get_descriptor_size(const struct rpma_mr_local* mr, size_t* desc_size);
int rpma_mr_remote_from_descriptor(const void* desc, size_t desc_size, struct rpma_mr_remote** mr_ptr);
int rpma_mr_remote_delete(struct rpma_mr_remote** mr_ptr);

/* The values that a region was registered with, or that a description contains. flush_type:
   RPMA_MR_USAGE_FLUSH_TYPE_ bits. */
int rpma_mr_get_ptr(const struct rpma_mr_local* mr, void** ptr);
int rpma_mr_get_size(const struct rpma_mr_local* mr, size_t* size);
int rpma_mr_remote_get_size(const struct rpma_mr_remote* mr, size_t* size);
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote* mr, int* flush_type);

/*
 * Announces that a part of the region will be used soon; see ibv_advise_mr(3) for `advice` and `flags`.
 * RPMA_E_INVAL: the part is not in the region, the usage does not allow the advice, or a flag is unknown.
 * RPMA_E_NOSUPP: unknown advice.
 */
int rpma_mr_advise(struct rpma_mr_local* mr, size_t offset, size_t len, int advice, uint32_t flags);

/* ---- Shared receive queues: receives for several connections ----------------------------------------------------- */

struct rpma_cq;
struct rpma_srq_cfg;
struct rpma_srq;

/* Creates a configuration with the defaults: both sizes are 20. The caller deletes it. Calls that use it copy it. */
int rpma_srq_cfg_new(struct rpma_srq_cfg** cfg_ptr);
int rpma_srq_cfg_delete(struct rpma_srq_cfg** cfg_ptr);

/* The number of receives that the queue can hold. */
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg* cfg, uint32_t rq_size);
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg* cfg, uint32_t* rq_size);

/* The size of the completion queue for the receives. 0: none; completions go to the queues of the connections. */
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg* cfg, uint32_t rcq_size);
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg* cfg, uint32_t* rcq_size);

/*
 * Creates a queue. cfg may be NULL for the defaults. The caller deletes the queue after the connections that use it.
 * RPMA_E_PROVIDER: a size is above the limit of the device, or rq_size is 0.
 */
int rpma_srq_new(struct rpma_peer* peer, struct rpma_srq_cfg* cfg, struct rpma_srq** srq_ptr);

/* RPMA_E_PROVIDER: connections still use the queue. They keep working, but the object is deleted and *srq_ptr is
   NULL in this case, too. */
int rpma_srq_delete(struct rpma_srq** srq_ptr);

/* Like rpma_recv(), for a message of any connection that uses the queue. */
int rpma_srq_recv(struct rpma_srq* srq, struct rpma_mr_local* dst, size_t offset, size_t len, const void* op_context);

/* Returns the completion queue of the receives, or NULL if there is none. The shared receive queue owns it. */
int rpma_srq_get_rcq(const struct rpma_srq* srq, struct rpma_cq** rcq_ptr);

/* ---- Connection configurations ----------------------------------------------------------------------------------- */

struct rpma_conn_cfg;

/*
 * Creates a configuration with the defaults: timeout RPMA_DEFAULT_TIMEOUT_MS, sizes 10, no receive completion queue,
 * no shared completion channel, no shared receive queue. The caller deletes it. Calls that use it copy it.
 */
int rpma_conn_cfg_new(struct rpma_conn_cfg** cfg_ptr);
int rpma_conn_cfg_delete(struct rpma_conn_cfg** cfg_ptr);

/*
 * How long establishing a connection may take. If the timeout was never set, an unanswered request fails after about
 * a minute. RPMA_E_INVAL: timeout_ms is negative.
 */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg* cfg, int timeout_ms);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg* cfg, int* timeout_ms);

/* The size of the main completion queue: at least 1. */
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg* cfg, uint32_t cq_size);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg* cfg, uint32_t* cq_size);

/* The size of a separate completion queue for receives. 0: none; the main queue serves both. */
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg* cfg, uint32_t rcq_size);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg* cfg, uint32_t* rcq_size);

/* The maximum number of operations and of receives that are posted and whose completions have not been taken. */
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg* cfg, uint32_t sq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg* cfg, uint32_t* sq_size);
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg* cfg, uint32_t rq_size);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg* cfg, uint32_t* rq_size);

/* Whether both completion queues share one descriptor; see rpma_conn_wait(). */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg* cfg, bool shared);
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg* cfg, bool* shared);

/* The shared receive queue that the connection takes its receives from. rpma_conn_cfg_get_srq() returns NULL if none
   was set. */
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg* cfg, struct rpma_srq* srq);
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg* cfg, struct rpma_srq** srq_ptr);

/* ---- Connections ------------------------------------------------------------------------------------------------- */

struct rpma_conn;

enum rpma_conn_event {
    RPMA_CONN_UNDEFINED = -1,
    RPMA_CONN_ESTABLISHED, /* the connection is established */
    RPMA_CONN_CLOSED,      /* this side or the peer disconnected, or the peer's process ended */
    RPMA_CONN_LOST,        /* the connection failed: an operation failed, or the device was removed */
    RPMA_CONN_REJECTED,    /* the peer rejected the request, or there is no listener */
    RPMA_CONN_UNREACHABLE  /* the peer could not be reached in time */
};

/* Returns the name of an event, never NULL. */
const char* rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

/*
 * Takes the oldest event, or waits for one. RPMA_E_NO_EVENT: there is no event and O_NONBLOCK is set on the
 * descriptor, or a signal interrupted the wait.
 */
int rpma_conn_next_event(struct rpma_conn* conn, enum rpma_conn_event* event);

/* Readable while events are queued. The connection owns the descriptor; the caller may set O_NONBLOCK on it. */
int rpma_conn_get_event_fd(const struct rpma_conn* conn, int* fd);

/* Data sent with a connection request or with its acceptance. */
struct rpma_conn_private_data {
    void* ptr;
    uint8_t len;
};

/*
 * Returns the data that the peer sent. For an outgoing request, they are available after RPMA_CONN_ESTABLISHED was
 * taken. The connection owns them. NULL and 0 if there are none.
 */
int rpma_conn_get_private_data(const struct rpma_conn* conn, struct rpma_conn_private_data* pdata);

/* Applies the peer's configuration to the connection; see rpma_flush(). The configuration may be deleted afterwards. */
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn* conn, const struct rpma_peer_cfg* pcfg);

/* The number of the connection in its completions. Unique in the process while the connection exists. */
int rpma_conn_get_qp_num(const struct rpma_conn* conn, uint32_t* qp_num);

/* Return the main completion queue and the one for receives (NULL if there is none). The connection owns both. */
int rpma_conn_get_cq(const struct rpma_conn* conn, struct rpma_cq** cq_ptr);
int rpma_conn_get_rcq(const struct rpma_conn* conn, struct rpma_cq** rcq_ptr);

/*
 * Waits for completions on either queue of a connection with a shared channel and returns that queue. is_rcq may be
 * NULL. `flags` has no meaning. RPMA_E_NO_COMPLETION: there are no completions and O_NONBLOCK is set on the
 * descriptor, or a signal interrupted the wait. RPMA_E_NOT_SHARED_CHNL: the channel is not shared.
 */
int rpma_conn_wait(struct rpma_conn* conn, int flags, struct rpma_cq** cq, bool* is_rcq);

/* Like rpma_cq_get_fd(), for a shared channel. RPMA_E_NOT_SHARED_CHNL: the channel is not shared. */
int rpma_conn_get_compl_fd(const struct rpma_conn* conn, int* fd);

/*
 * Closes the connection. RPMA_CONN_CLOSED follows, unless it has already been reported. Operations posted before or
 * after this call complete with IBV_WC_WR_FLUSH_ERR.
 */
int rpma_conn_disconnect(struct rpma_conn* conn);

/* Deletes a connection and its completion queues. An established connection is closed. */
int rpma_conn_delete(struct rpma_conn** conn_ptr);

/* ---- Connection requests ----------------------------------------------------------------------------------------- */

struct rpma_conn_req;

/*
 * Prepares a request to the listener at `port` (a number or the name of a service) of `addr`. cfg may be NULL for
 * the defaults. The caller connects or deletes the request. RPMA_E_PROVIDER: the address, the port or the
 * configuration cannot be used. RPMA_E_INVAL: also if a shared channel is combined with a shared receive queue that
 * has a completion queue.
 */
int rpma_conn_req_new(struct rpma_peer* peer, const char* addr, const char* port, const struct rpma_conn_cfg* cfg,
                      struct rpma_conn_req** req_ptr);

/* Withdraws an outgoing request or rejects an incoming one. */
int rpma_conn_req_delete(struct rpma_conn_req** req_ptr);

/*
 * Sends an outgoing request or accepts an incoming one, with the data of pdata unless it is NULL. The first event of
 * the connection reports the outcome. The request is consumed in any case: *req_ptr is NULL afterwards, and an
 * incoming request that cannot be accepted is rejected. RPMA_E_INVAL: also if pdata->ptr is NULL or pdata->len is 0.
 * RPMA_E_PROVIDER: also if the requester has given up.
 */
int rpma_conn_req_connect(struct rpma_conn_req** req_ptr, const struct rpma_conn_private_data* pdata,
                          struct rpma_conn** conn_ptr);

/* Like rpma_recv(), before the connection is established. dst must not be NULL. */
int rpma_conn_req_recv(struct rpma_conn_req* req, struct rpma_mr_local* dst, size_t offset, size_t len,
                       const void* op_context);

/* The data of an incoming request. The request owns them. NULL and 0 if there are none. */
int rpma_conn_req_get_private_data(const struct rpma_conn_req* req, struct rpma_conn_private_data* pdata);

/* ---- Endpoints: listening for connection requests ---------------------------------------------------------------- */

struct rpma_ep;

/*
 * Listens on `port` of `addr`, an address of the peer's device or the wildcard address. The caller shuts the endpoint
 * down.
 * RPMA_E_PROVIDER: the address or the port cannot be used, or is already in use.
 */
int rpma_ep_listen(struct rpma_peer* peer, const char* addr, const char* port, struct rpma_ep** ep_ptr);

/* Stops listening. Pending requests are rejected; existing connections are not affected. */
int rpma_ep_shutdown(struct rpma_ep** ep_ptr);

/* Readable while a request may be pending. The endpoint owns the descriptor; the caller may set O_NONBLOCK on it. */
int rpma_ep_get_fd(const struct rpma_ep* ep, int* fd);

/*
 * Takes the next request, or waits for one. cfg is for its connection and may be NULL for the defaults. Errors of
 * the configuration are those of rpma_conn_req_new(); in these cases the request is rejected. The caller connects or
 * deletes the request. RPMA_E_NO_EVENT: there is no request and O_NONBLOCK is set on the descriptor, or a signal
 * interrupted the wait.
 */
int rpma_ep_next_conn_req(struct rpma_ep* ep, const struct rpma_conn_cfg* cfg, struct rpma_conn_req** req_ptr);

/* ---- Operations -------------------------------------------------------------------------------------------------- */

/*
 * All operations are posted and executed later, at the other side in order. op_context is returned in wr_id of the
 * completion, until which the memory must not be changed. The data of a write or send may be fetched before an earlier
 * read has stored its data: to write or send what a read stores, wait for the completion of the read first. Errors of
 * all operations: RPMA_E_INVAL: flags is 0, or len is above 2^32-1 (except for a flush). RPMA_E_PROVIDER: the send
 * queue is full, or the connection is not yet established. Access that the regions do not allow is reported later, by
 * the completion.
 */

#define RPMA_F_COMPLETION_ON_ERROR (1 << 0)                            /* a completion only on failure */
#define RPMA_F_COMPLETION_ALWAYS (1 << 1 | RPMA_F_COMPLETION_ON_ERROR) /* always a completion */

/* Copies data from the peer's memory. For 0 bytes both regions may be NULL if the offsets and len are 0. */
int rpma_read(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t dst_offset, const struct rpma_mr_remote* src,
              size_t src_offset, size_t len, int flags, const void* op_context);

/* Copies data to the peer's memory. For 0 bytes both regions may be NULL if the offsets and len are 0. */
int rpma_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const struct rpma_mr_local* src,
               size_t src_offset, size_t len, int flags, const void* op_context);

/* Like rpma_write(). Afterwards `imm` completes a receive of the peer. */
int rpma_write_with_imm(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                        const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags, uint32_t imm,
                        const void* op_context);

#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

/*
 * Writes 8 bytes atomically for all observers, after the reads and flushes posted before. The call copies `src`.
 * RPMA_E_INVAL: also if dst_offset is not a multiple of RPMA_ATOMIC_WRITE_ALIGNMENT.
 */
int rpma_atomic_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const char src[8],
                      int flags, const void* op_context);

enum rpma_flush_type {
    RPMA_FLUSH_TYPE_PERSISTENT, /* the writes survive a loss of power */
    RPMA_FLUSH_TYPE_VISIBILITY, /* all observers see the writes */
};

/*
 * Completes when earlier writes to this part of the region are visible or persistent, depending on `type`.
 * RPMA_E_NOSUPP: the usage of the region or, for RPMA_FLUSH_TYPE_PERSISTENT, the applied configuration of the peer
 * does not allow it.
 */
int rpma_flush(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, size_t len,
               enum rpma_flush_type type, int flags, const void* op_context);

/* Sends a message to the peer's oldest receive. The message waits until there is one. src may be NULL if offset and
   len are 0. */
int rpma_send(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
              const void* op_context);

/* Like rpma_send(). `imm` is returned in the completion of the receive. */
int rpma_send_with_imm(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
                       uint32_t imm, const void* op_context);

/*
 * Posts a receive. May be called before RPMA_CONN_ESTABLISHED. dst may be NULL if offset and len are 0.
 * RPMA_E_PROVIDER: the receive queue is full, or the connection uses a shared receive queue.
 */
int rpma_recv(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t offset, size_t len, const void* op_context);

/* ---- Completions ------------------------------------------------------------------------------------------------- */

/*
 * Takes up to num_entries completions, in order, without waiting. num_entries_got may be NULL if num_entries is 1.
 * RPMA_E_INVAL: also if num_entries is less than 1. RPMA_E_NO_COMPLETION: there are none.
 */
int rpma_cq_get_wc(struct rpma_cq* cq, int num_entries, struct ibv_wc* wc, int* num_entries_got);

/*
 * Waits for completions. Take all of them before the next call, which may otherwise report the same ones again.
 * RPMA_E_NO_COMPLETION: there are none and O_NONBLOCK is set on the descriptor, or a signal interrupted the wait.
 * RPMA_E_SHARED_CHANNEL: use rpma_conn_wait().
 */
int rpma_cq_wait(struct rpma_cq* cq);

/* Readable when there are new completions. The queue owns the descriptor; the caller may set O_NONBLOCK on it. */
int rpma_cq_get_fd(const struct rpma_cq* cq, int* fd);

/* ---- The log ----------------------------------------------------------------------------------------------------- */

enum rpma_log_level {
    RPMA_LOG_DISABLED = -1, /* only as a threshold: no messages */
    RPMA_LOG_LEVEL_FATAL,   /* the library cannot continue */
    RPMA_LOG_LEVEL_ERROR,   /* a call failed */
    RPMA_LOG_LEVEL_WARNING, /* a problem that the caller may be able to correct */
    RPMA_LOG_LEVEL_NOTICE,  /* connections are established or closed */
    RPMA_LOG_LEVEL_INFO,    /* details */
    RPMA_LOG_LEVEL_DEBUG,   /* more details */
};

enum rpma_log_threshold {
    RPMA_LOG_THRESHOLD,     /* messages of a less severe level are dropped; the default is RPMA_LOG_LEVEL_WARNING */
    RPMA_LOG_THRESHOLD_AUX, /* the default function also writes messages up to this level to stderr; the default is
                               RPMA_LOG_DISABLED */
    RPMA_LOG_THRESHOLD_MAX
};

/* RPMA_E_INVAL: unknown threshold or level. */
int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);
int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level* level);

/*
 * Receives a message: a printf(3) format with its arguments, and its location in the source (file_name may be NULL
 * if it is unknown). May be called by several threads at the same time, and must not call this library.
 */
typedef void rpma_log_function(enum rpma_log_level level, const char* file_name, const int line_no,
                               const char* function_name, const char* message_format, ...);

#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

/*
 * Sets the function that receives messages. The default function writes to syslog(3) and, up to
 * RPMA_LOG_THRESHOLD_AUX, to stderr.
 */
int rpma_log_set_function(rpma_log_function* log_function);

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_H */
