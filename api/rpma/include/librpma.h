/*
 * librpma.h - remote persistent memory access, by Viaduct
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Declares what librpma 1.2.0 declares: 84 functions, their types and values, with the same binary interface, so that
 * programs build unmodified and programs that are linked with librpma.so.0 run with this library in its place. The
 * header compiles alone as C11 and C++17.
 *
 * Conventions that hold for every function unless its comment says otherwise:
 *   - The result is 0 or one of the negative RPMA_E_ values. Outputs are written on success only.
 *   - RPMA_E_INVAL: a pointer that must be there is NULL, or an object is not (or no longer) one of its kind. That is
 *     found out without a crash.
 *   - RPMA_E_NOMEM: out of memory. RPMA_E_PROVIDER: the layer below refused; the log says why.
 *   - Functions that end in _delete, _dereg or _shutdown take the address of the object's pointer and set it to NULL.
 *     A pointer that is NULL already is fine.
 *   - Sizes, offsets and lengths are in bytes, times in milliseconds; queue sizes count entries.
 *   - Every function is thread-safe, with one rule: an object must not be deleted while a call that uses it runs.
 *   - Each function has a manual page of its name, librpma(7) tells of the whole.
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

#define RPMA_E_UNKNOWN (-100000)         /* something else */
#define RPMA_E_NOSUPP (-100001)          /* not supported */
#define RPMA_E_PROVIDER (-100002)        /* the layer below refused */
#define RPMA_E_NOMEM (-100003)           /* out of memory */
#define RPMA_E_INVAL (-100004)           /* an argument is wrong */
#define RPMA_E_NO_COMPLETION (-100005)   /* no completion waits */
#define RPMA_E_NO_EVENT (-100006)        /* no event or request waits */
#define RPMA_E_AGAIN (-100007)           /* a passing difficulty; try again */
#define RPMA_E_SHARED_CHANNEL (-100008)  /* the queue shares its completion channel: use rpma_conn_wait() */
#define RPMA_E_NOT_SHARED_CHNL (-100009) /* the connection has no shared completion channel */

/* An error in words; never NULL. */
const char* rpma_err_2str(int ret);

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

#define RPMA_DEFAULT_TIMEOUT_MS 1000

/* Declared by librpma 1.2.0 and used by no function. */
#define RPMA_W_WAIT_FOR_COMPLETION (1)

enum rpma_util_ibv_context_type {
    RPMA_UTIL_IBV_CONTEXT_LOCAL, /* the device that has the address */
    RPMA_UTIL_IBV_CONTEXT_REMOTE /* the device that leads to the address */
};

/*
 * Finds a device by an address: a host name, an IPv4 or an IPv6 address. The context stays the library's; without RDMA
 * hardware it is opaque. RPMA_E_INVAL: the type is unknown. RPMA_E_PROVIDER: the address leads to no device.
 */
int rpma_utils_get_ibv_context(const char* addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context** ibv_ctx_ptr);

/* Tells (1 or 0) whether regions may be registered without pinning their memory. */
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context* ibv_ctx, int* is_odp_capable);

/* ---- Peer configurations: what a peer tells others about itself -------------------------------------------------- */

struct rpma_peer_cfg;

/* Makes a configuration with its defaults: no direct write to persistent memory. The caller deletes it. */
int rpma_peer_cfg_new(struct rpma_peer_cfg** pcfg_ptr);
int rpma_peer_cfg_delete(struct rpma_peer_cfg** pcfg_ptr);

/*
 * Whether what reaches the peer's persistent memory is persistent without its help. RPMA_FLUSH_TYPE_PERSISTENT needs
 * it.
 */
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg* pcfg, bool supported);
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg* pcfg, bool* supported);

/*
 * The configuration as bytes for other hosts: rpma_peer_cfg_get_descriptor_size() bytes (1) at `desc`, and back.
 * rpma_peer_cfg_from_descriptor(): RPMA_E_INVAL also where desc_size is 0. Check bytes that strangers sent.
 */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg* pcfg, void* desc);
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg* pcfg, size_t* desc_size);
int rpma_peer_cfg_from_descriptor(const void* desc, size_t desc_size, struct rpma_peer_cfg** pcfg_ptr);

/* ---- Peers: a use of a device, and the scope of its memory ------------------------------------------------------- */

struct rpma_peer;

/* Makes a peer on a device. The caller deletes it, after everything that was made with it. */
int rpma_peer_new(struct ibv_context* ibv_ctx, struct rpma_peer** peer_ptr);

/*
 * RPMA_E_PROVIDER: regions, requests, connections, endpoints or shared receive queues of the peer exist. They go on
 * working, but the peer is gone and *peer_ptr is NULL then, too.
 */
int rpma_peer_delete(struct rpma_peer** peer_ptr);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

struct rpma_mr_local;  /* memory of this process, registered with a peer */
struct rpma_mr_remote; /* the description of a region of another process */

/* What a region is used for; any combination. */
#define RPMA_MR_USAGE_READ_SRC (1 << 0)              /* others read from it */
#define RPMA_MR_USAGE_READ_DST (1 << 1)              /* rpma_read() puts data into it */
#define RPMA_MR_USAGE_WRITE_SRC (1 << 2)             /* rpma_write() takes data from it */
#define RPMA_MR_USAGE_WRITE_DST (1 << 3)             /* others write to it */
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY (1 << 4) /* others flush what they wrote, so that all see it */
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT (1 << 5) /* others flush what they wrote, so that it survives */
#define RPMA_MR_USAGE_SEND (1 << 6)                  /* rpma_send() takes messages from it */
#define RPMA_MR_USAGE_RECV (1 << 7)                  /* rpma_recv() puts messages into it */

/*
 * Registers memory, which stays the caller's and must stay mapped until rpma_mr_dereg(). RPMA_E_INVAL: size is 0, usage
 * is 0 or has other bits. RPMA_E_PROVIDER: the memory is not there, or the device has no room.
 */
int rpma_mr_reg(struct rpma_peer* peer, void* ptr, size_t size, int usage, struct rpma_mr_local** mr_ptr);

/* Ends every use of the memory, also by others; what they have under way fails. */
int rpma_mr_dereg(struct rpma_mr_local** mr_ptr);

/*
 * The region as bytes for other hosts: rpma_mr_get_descriptor_size() bytes (21) at `desc`: address, size (8 bytes
 * each), key (4) and usage (1), little endian; and back. The caller deletes the description, whenever it likes.
 * rpma_mr_remote_from_descriptor(): RPMA_E_INVAL also where desc_size is too small or the usage is 0. The descriptor is
 * what gives access to the memory: send it over trusted ways.
 */
int rpma_mr_get_descriptor(const struct rpma_mr_local* mr, void* desc);
int rpma_mr_get_descriptor_size(const struct rpma_mr_local* mr, size_t* desc_size);
int rpma_mr_remote_from_descriptor(const void* desc, size_t desc_size, struct rpma_mr_remote** mr_ptr);
int rpma_mr_remote_delete(struct rpma_mr_remote** mr_ptr);

/* What a region was registered with, and what a description says. flush_type: RPMA_MR_USAGE_FLUSH_TYPE_ bits. */
int rpma_mr_get_ptr(const struct rpma_mr_local* mr, void** ptr);
int rpma_mr_get_size(const struct rpma_mr_local* mr, size_t* size);
int rpma_mr_remote_get_size(const struct rpma_mr_remote* mr, size_t* size);
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote* mr, int* flush_type);

/*
 * Says that a part of the region will be used soon; `advice` and `flags` as in ibv_advise_mr(3). RPMA_E_INVAL: the part
 * is not in the region, the usage does not allow the advice, or a flag is unknown. RPMA_E_NOSUPP: unknown advice.
 */
int rpma_mr_advise(struct rpma_mr_local* mr, size_t offset, size_t len, int advice, uint32_t flags);

/* ---- Shared receive queues: receives for the messages of many connections ---------------------------------------- */

struct rpma_cq;
struct rpma_srq_cfg;
struct rpma_srq;

/* Makes a configuration with its defaults: both sizes 20. The caller deletes it; it is copied where it is used. */
int rpma_srq_cfg_new(struct rpma_srq_cfg** cfg_ptr);
int rpma_srq_cfg_delete(struct rpma_srq_cfg** cfg_ptr);

/* How many receives wait at once. */
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg* cfg, uint32_t rq_size);
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg* cfg, uint32_t* rq_size);

/* The size of the completion queue of the receives. 0: there is none, their completions go to the connections' own. */
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg* cfg, uint32_t rcq_size);
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg* cfg, uint32_t* rcq_size);

/*
 * Makes a queue; cfg may be NULL for the defaults. The caller deletes it, after the connections that use it.
 * RPMA_E_PROVIDER: a size is above the limit of the device, or rq_size is 0.
 */
int rpma_srq_new(struct rpma_peer* peer, struct rpma_srq_cfg* cfg, struct rpma_srq** srq_ptr);

/* RPMA_E_PROVIDER: connections use it. They go on working, but the object is gone and *srq_ptr is NULL then, too. */
int rpma_srq_delete(struct rpma_srq** srq_ptr);

/* As rpma_recv(), for a message of whichever connection gets one first. */
int rpma_srq_recv(struct rpma_srq* srq, struct rpma_mr_local* dst, size_t offset, size_t len, const void* op_context);

/* The completion queue of the receives, which stays the queue's; NULL where it has none. */
int rpma_srq_get_rcq(const struct rpma_srq* srq, struct rpma_cq** rcq_ptr);

/* ---- Connection configurations ----------------------------------------------------------------------------------- */

struct rpma_conn_cfg;

/*
 * Makes a configuration with its defaults: timeout RPMA_DEFAULT_TIMEOUT_MS, sizes 10 (no receive completion queue), no
 * shared completion channel, no shared receive queue. The caller deletes it; it is copied where it is used.
 */
int rpma_conn_cfg_new(struct rpma_conn_cfg** cfg_ptr);
int rpma_conn_cfg_delete(struct rpma_conn_cfg** cfg_ptr);

/*
 * How long a connection may take to be made, once it was set; without it, an unanswered request ends after about a
 * minute. RPMA_E_INVAL: timeout_ms is negative.
 */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg* cfg, int timeout_ms);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg* cfg, int* timeout_ms);

/* The size of the main completion queue: at least 1. */
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg* cfg, uint32_t cq_size);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg* cfg, uint32_t* cq_size);

/* The size of a completion queue for receives alone. 0: there is none, the main one serves both. */
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg* cfg, uint32_t rcq_size);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg* cfg, uint32_t* rcq_size);

/* How many operations, and how many receives, may be posted at once: from the post until its completion was got. */
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg* cfg, uint32_t sq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg* cfg, uint32_t* sq_size);
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg* cfg, uint32_t rq_size);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg* cfg, uint32_t* rq_size);

/* Whether both completion queues tell their news on one descriptor: see rpma_conn_wait(). */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg* cfg, bool shared);
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg* cfg, bool* shared);

/* The shared receive queue that the connection takes its receives from. Get: NULL where none was set. */
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg* cfg, struct rpma_srq* srq);
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg* cfg, struct rpma_srq** srq_ptr);

/* ---- Connections ------------------------------------------------------------------------------------------------- */

struct rpma_conn;

enum rpma_conn_event {
    RPMA_CONN_UNDEFINED = -1,
    RPMA_CONN_ESTABLISHED, /* the connection stands */
    RPMA_CONN_CLOSED,      /* this side or the peer disconnected, or the peer's process ended */
    RPMA_CONN_LOST,        /* the connection broke: an operation failed, or the device is gone */
    RPMA_CONN_REJECTED,    /* the peer refused, or nobody listens there */
    RPMA_CONN_UNREACHABLE  /* the peer could not be reached in time */
};

/* An event in words; never NULL. */
const char* rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

/*
 * Takes the oldest event, or waits for one. RPMA_E_NO_EVENT: none waits and O_NONBLOCK is set on the descriptor, or a
 * signal came.
 */
int rpma_conn_next_event(struct rpma_conn* conn, enum rpma_conn_event* event);

/* Readable while events wait. Stays the connection's; the caller may set O_NONBLOCK on it. */
int rpma_conn_get_event_fd(const struct rpma_conn* conn, int* fd);

/* Data that travel with a request for a connection and with its acceptance. */
struct rpma_conn_private_data {
    void* ptr;
    uint8_t len;
};

/*
 * The data that the peer sent: of the one who accepted, once RPMA_CONN_ESTABLISHED was taken. They stay the
 * connection's. NULL and 0 where there are none.
 */
int rpma_conn_get_private_data(const struct rpma_conn* conn, struct rpma_conn_private_data* pdata);

/* Takes note of what the peer's configuration says; see rpma_flush(). The configuration may be deleted afterwards. */
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn* conn, const struct rpma_peer_cfg* pcfg);

/* The number of the connection in the completions of its operations: unique in the process while it exists. */
int rpma_conn_get_qp_num(const struct rpma_conn* conn, uint32_t* qp_num);

/* The main completion queue; the one for receives, NULL where there is none. Both stay the connection's. */
int rpma_conn_get_cq(const struct rpma_conn* conn, struct rpma_cq** cq_ptr);
int rpma_conn_get_rcq(const struct rpma_conn* conn, struct rpma_cq** rcq_ptr);

/*
 * Waits for news of either completion queue of a connection with a shared channel, and tells which (is_rcq may be
 * NULL). `flags` has no meaning. RPMA_E_NO_COMPLETION: there are none and O_NONBLOCK is set on the descriptor, or a
 * signal came. RPMA_E_NOT_SHARED_CHNL: the channel is not shared.
 */
int rpma_conn_wait(struct rpma_conn* conn, int flags, struct rpma_cq** cq, bool* is_rcq);

/* As rpma_cq_get_fd(), for a shared channel. RPMA_E_NOT_SHARED_CHNL: the channel is not shared. */
int rpma_conn_get_compl_fd(const struct rpma_conn* conn, int* fd);

/*
 * Ends the connection; RPMA_CONN_CLOSED follows, unless it was told before. What is posted, now and later, completes
 * with IBV_WC_WR_FLUSH_ERR.
 */
int rpma_conn_disconnect(struct rpma_conn* conn);

/* Deletes a connection with its completion queues; one that stands is ended. */
int rpma_conn_delete(struct rpma_conn** conn_ptr);

/* ---- Requests for connections ------------------------------------------------------------------------------------ */

struct rpma_conn_req;

/*
 * Prepares a request to whoever listens on `port` (a number or a service's name) at `addr`. cfg may be NULL for the
 * defaults. The caller connects or deletes it. RPMA_E_PROVIDER: the address, the port or the configuration is of no
 * use. RPMA_E_INVAL: also a shared channel together with a shared receive queue that has a completion queue.
 */
int rpma_conn_req_new(struct rpma_peer* peer, const char* addr, const char* port, const struct rpma_conn_cfg* cfg,
                      struct rpma_conn_req** req_ptr);

/* Withdraws an outgoing request, refuses an incoming one. */
int rpma_conn_req_delete(struct rpma_conn_req** req_ptr);

/*
 * Sends an outgoing request, accepts an incoming one. pdata, which may be NULL, goes along. The first event of the
 * connection tells the outcome. The request is used up in any case: *req_ptr is NULL afterwards, and an incoming
 * request that could not be accepted is refused. RPMA_E_INVAL: also where pdata->ptr is NULL or pdata->len is 0.
 * RPMA_E_PROVIDER: also where the requester has given up.
 */
int rpma_conn_req_connect(struct rpma_conn_req** req_ptr, const struct rpma_conn_private_data* pdata,
                          struct rpma_conn** conn_ptr);

/* As rpma_recv(), before the connection is made; dst must not be NULL. */
int rpma_conn_req_recv(struct rpma_conn_req* req, struct rpma_mr_local* dst, size_t offset, size_t len,
                       const void* op_context);

/* The data that came with an incoming request; they stay the request's. NULL and 0 where there are none. */
int rpma_conn_req_get_private_data(const struct rpma_conn_req* req, struct rpma_conn_private_data* pdata);

/* ---- Endpoints: where requests arrive ---------------------------------------------------------------------------- */

struct rpma_ep;

/*
 * Listens on `port` of `addr`, an address of the peer's device. The caller shuts it down. RPMA_E_PROVIDER: the address
 * or the port is of no use, or somebody listens there already.
 */
int rpma_ep_listen(struct rpma_peer* peer, const char* addr, const char* port, struct rpma_ep** ep_ptr);

/* Stops listening; requests that nobody took are refused. Connections that were made go on. */
int rpma_ep_shutdown(struct rpma_ep** ep_ptr);

/* Readable while a request may wait. Stays the endpoint's; the caller may set O_NONBLOCK on it. */
int rpma_ep_get_fd(const struct rpma_ep* ep, int* fd);

/*
 * Takes the next request, or waits for one. cfg is for its connection and may be NULL for the defaults; see
 * rpma_conn_req_new() for its errors, after which the request is refused. The caller connects or deletes the request.
 * RPMA_E_NO_EVENT: none waits and O_NONBLOCK is set on the descriptor, or a signal came.
 */
int rpma_ep_next_conn_req(struct rpma_ep* ep, const struct rpma_conn_cfg* cfg, struct rpma_conn_req** req_ptr);

/* ---- Operations -------------------------------------------------------------------------------------------------- */

/*
 * All operations are posted and done later, in order. op_context comes back in wr_id of the completion. Memory must
 * stay as it is until then. Each has these errors: RPMA_E_INVAL: flags is 0, or len is above 2^32-1 (but for a flush).
 * RPMA_E_PROVIDER: the send queue is full, or the connection was not established yet. What the regions do not allow is
 * found later: the completion tells.
 */

#define RPMA_F_COMPLETION_ON_ERROR (1 << 0)                            /* a completion only where it fails */
#define RPMA_F_COMPLETION_ALWAYS (1 << 1 | RPMA_F_COMPLETION_ON_ERROR) /* a completion in any case */

/* Copies from the peer's memory. For 0 bytes both regions may be NULL, with offsets and len 0. */
int rpma_read(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t dst_offset, const struct rpma_mr_remote* src,
              size_t src_offset, size_t len, int flags, const void* op_context);

/* Copies to the peer's memory. For 0 bytes both regions may be NULL, with offsets and len 0. */
int rpma_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const struct rpma_mr_local* src,
               size_t src_offset, size_t len, int flags, const void* op_context);

/* As rpma_write(); `imm` then completes a receive of the peer. */
int rpma_write_with_imm(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                        const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags, uint32_t imm,
                        const void* op_context);

#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

/*
 * Writes 8 bytes that every observer sees at once, after the reads and flushes that were posted before. `src` is copied
 * by the call. RPMA_E_INVAL: also where dst_offset is not a multiple of RPMA_ATOMIC_WRITE_ALIGNMENT.
 */
int rpma_atomic_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const char src[8],
                      int flags, const void* op_context);

enum rpma_flush_type {
    RPMA_FLUSH_TYPE_PERSISTENT, /* what was written survives a loss of power */
    RPMA_FLUSH_TYPE_VISIBILITY, /* what was written is seen by every observer */
};

/*
 * Completes once earlier writes to the part of the region have got as far as `type` says. RPMA_E_NOSUPP: the usage of
 * the region does not allow it, or, for RPMA_FLUSH_TYPE_PERSISTENT, the applied configuration of the peer.
 */
int rpma_flush(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, size_t len,
               enum rpma_flush_type type, int flags, const void* op_context);

/* Sends a message into the peer's oldest receive; it waits until there is one. src may be NULL, with offset, len 0. */
int rpma_send(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
              const void* op_context);

/* As rpma_send(); `imm` is in the completion of the receive. */
int rpma_send_with_imm(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
                       uint32_t imm, const void* op_context);

/*
 * Gives memory for a message; may be called before RPMA_CONN_ESTABLISHED. dst may be NULL, with offset and len 0.
 * RPMA_E_PROVIDER: the receive queue is full, or the connection takes its receives from a shared queue.
 */
int rpma_recv(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t offset, size_t len, const void* op_context);

/* ---- Completions ------------------------------------------------------------------------------------------------- */

/*
 * Takes up to num_entries completions, in order, and never waits. num_entries_got may be NULL where num_entries is 1.
 * RPMA_E_INVAL: also where num_entries is less than 1. RPMA_E_NO_COMPLETION: none waits.
 */
int rpma_cq_get_wc(struct rpma_cq* cq, int num_entries, struct ibv_wc* wc, int* num_entries_got);

/*
 * Waits for news. Take all completions before the next call; one that follows may tell of those once more.
 * RPMA_E_NO_COMPLETION: there are none and O_NONBLOCK is set on the descriptor, or a signal came.
 * RPMA_E_SHARED_CHANNEL: use rpma_conn_wait().
 */
int rpma_cq_wait(struct rpma_cq* cq);

/* Readable while there are news. Stays the queue's; the caller may set O_NONBLOCK on it. */
int rpma_cq_get_fd(const struct rpma_cq* cq, int* fd);

/* ---- The log ----------------------------------------------------------------------------------------------------- */

enum rpma_log_level {
    RPMA_LOG_DISABLED = -1, /* a threshold only: no messages */
    RPMA_LOG_LEVEL_FATAL,   /* the library cannot go on */
    RPMA_LOG_LEVEL_ERROR,   /* a call failed */
    RPMA_LOG_LEVEL_WARNING, /* something that the caller may mend */
    RPMA_LOG_LEVEL_NOTICE,  /* connections come and go */
    RPMA_LOG_LEVEL_INFO,    /* details */
    RPMA_LOG_LEVEL_DEBUG,   /* more details */
};

enum rpma_log_threshold {
    RPMA_LOG_THRESHOLD,     /* messages above it are dropped; RPMA_LOG_LEVEL_WARNING by default */
    RPMA_LOG_THRESHOLD_AUX, /* of the default function for stderr; RPMA_LOG_DISABLED by default */
    RPMA_LOG_THRESHOLD_MAX
};

/* RPMA_E_INVAL: the threshold or the level is none of the values above. */
int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);
int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level* level);

/*
 * Takes a message: a format with its arguments as for printf(3), and the place that it comes from (file_name may be
 * NULL: then the place is not known). Called from any thread, several at once.
 */
typedef void rpma_log_function(enum rpma_log_level level, const char* file_name, const int line_no,
                               const char* function_name, const char* message_format, ...);

#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

/*
 * Sets the function that gets the messages. The default one writes to syslog(3) and, up to RPMA_LOG_THRESHOLD_AUX, to
 * stderr.
 */
int rpma_log_set_function(rpma_log_function* log_function);

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_H */
