/* SPDX-License-Identifier: BSD-3-Clause
 * Endpoints for the conformance programs: a NIC, a protection tag, registered memory, a VI, and a record of errors.
 *
 * An endpoint lives in the case's own process or in a peer; the calls below run where it lives, so that one case can
 * direct both ends of a connection, line by line.
 */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include "../support/message_sizes.h"
#include "../support/sides.h"
#include "conformance.h"

enum {
    SLOTS = 32,                   /* descriptors of each queue that an endpoint has room for */
    MAX_SEGMENTS = 300,           /* segments that such a descriptor has room for */
    BUFFER_BYTES = 64 * 1024,     /* room behind SEND_AT(slot) and RECV_AT(slot) */
    BIG_BYTES = 16 * 1024 * 1024, /* room behind BIG_AT */
    MAX_ERRORS = 16
};

/* Offsets into the data area of an endpoint. */
#define SEND_AT(slot) ((size_t)(slot)*BUFFER_BYTES)
#define RECV_AT(slot) ((size_t)(SLOTS + (slot)) * BUFFER_BYTES)
#define BIG_AT ((size_t)2 * SLOTS * BUFFER_BYTES)
#define DATA_BYTES (BIG_AT + BIG_BYTES)

/* A network address with room for any host address and discriminator. */
typedef union {
    VIP_NET_ADDRESS address;
    VIP_UINT8 bytes[2048];
} NetAddress;

/* A descriptor with room for long lists. */
typedef struct {
    VIP_CONTROL_SEGMENT CS;
    VIP_DESCRIPTOR_SEGMENT DS[MAX_SEGMENTS];
} Work;

typedef struct {
    const char *device;          /* default VINIC */
    VIP_RELIABILITY_LEVEL level; /* default Reliable Delivery */
    VIP_ULONG max_transfer;      /* default the NIC's */
    VIP_BOOLEAN no_rdma;         /* the VI accepts no RDMA */
    VIP_BOOLEAN send_on_cq, recv_on_cq;
    VIP_ULONG cq_entries; /* default 64 */
} Options;

typedef Side Endpoint;

struct Side {
    Peer *process; /* where it lives; NULL is the process of the case */
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES limits; /* LocalNicAddress is good where the endpoint lives; elsewhere use host */
    VIP_UINT8 host[64];
    VIP_PROTECTION_HANDLE ptag;
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE vi;
    VIP_VI_ATTRIBUTES attribs;
    VIP_CONN_HANDLE conn;
    VIP_UINT8 *memory; /* the descriptors, then the data area */
    VIP_MEM_HANDLE handle;
    int error_count;
    VIP_ERROR_DESCRIPTOR errors[MAX_ERRORS];
};

typedef struct {
    Endpoint *client, *server;
} Pair;

/* ---- Making endpoints -------------------------------------------------------------------------------------------- */

/* An endpoint that is not open yet. */
Endpoint *new_endpoint(Peer *peer);

void endpoint_open(Endpoint *end, Options options);

/* Disconnects, takes what is flushed, and destroys everything in order, expecting success of each call. */
void endpoint_close(Endpoint *end);

/* Only the NIC: what is on it goes with it. Afterwards no further error is reported. */
void endpoint_close_nic(Endpoint *end);

/* Two open endpoints: the client here, the server in a peer process. */
Pair open_pair(Options options);
Pair open_pair_of(Options client, Options server);

/* Two open endpoints in the process of the case. */
Pair open_local_pair(Options options);

void pair_connect(const Pair *pair);
Pair connected_pair(VIP_RELIABILITY_LEVEL level);
Pair connected_pair_with(Options options);

/* ---- What a NIC can do ------------------------------------------------------------------------------------------- */

/*
 * Whether the NIC is RDMA hardware, or the emulation of it: docs/conformance.md, "VIPL: on RDMA hardware", tells what
 * is different there. The NICs of a library that needs none have addresses within 127.0.0.0/8.
 */
int is_hardware(const Endpoint *end);

/* How many NICs this host has; and ends a case that needs two of them, where there are fewer. */
VIP_ULONG count_nics(void);
void need_two_nics(void);

/* Ends a case that would use up a limit of the NIC, where no test can. */
void need_limit(const Endpoint *end, VIP_ULONG limit);

/* What the NIC takes, or this endpoint has room for, in one descriptor. The guide's own example has 252 segments. */
VIP_UINT16 most_segments(const Endpoint *end);
VIP_UINT32 largest_transfer(const Endpoint *end);

/* ---- Addresses and connections ----------------------------------------------------------------------------------- */

NetAddress net_address(const Endpoint *host, const void *discriminator, size_t length);

/* The address of a host that is not there. */
NetAddress unknown_host(const Endpoint *local);

/* Checks a VI with one posted receive after a request to such a host: a reliable one is in the Error state. */
void expect_unreachable_state(Endpoint *end, VIP_RELIABILITY_LEVEL level);

/* A discriminator that no other case uses. */
NetAddress service_of(const Endpoint *host);

typedef struct {
    NetAddress local;
    VIP_ULONG timeout_ms;
    VIP_RETURN rc;
    NetAddress remote;
    VIP_VI_ATTRIBUTES remote_attribs;
} Listening; /* VipConnectWait; the connection handle goes into Endpoint.conn */

typedef struct {
    NetAddress local, remote;
    VIP_ULONG timeout_ms;
    VIP_BOOLEAN retry; /* while nobody waits */
    VIP_RETURN rc;
    VIP_VI_ATTRIBUTES remote_attribs;
} Request; /* VipConnectRequest, VipConnectPeerRequest and its result */

Listening listening(const Endpoint *end, VIP_ULONG timeout_ms);
Request request_to(const Endpoint *from, const Endpoint *to, VIP_ULONG timeout_ms);

void do_wait(Endpoint *end, void *listening);
void do_wait_and_accept(Endpoint *end, void *listening);
void do_request(Endpoint *end, void *request);

VIP_RETURN wait_request(Endpoint *end, Listening *listening);
VIP_RETURN request_connection(Endpoint *end, Request *request);
VIP_RETURN accept_request(Endpoint *end);
VIP_RETURN reject_request(Endpoint *end);
VIP_RETURN disconnect(Endpoint *end);
VIP_RETURN peer_request(Endpoint *end, Request *request);
VIP_RETURN peer_done(Endpoint *end, Request *request);
VIP_RETURN peer_wait(Endpoint *end, Request *request);

typedef struct {
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attribs;
    VIP_BOOLEAN send_empty, recv_empty;
} ViQuery;

ViQuery query_vi(Endpoint *end);
VIP_VI_STATE state_of(Endpoint *end);

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

Work send_work(const Endpoint *end, size_t offset, VIP_UINT32 length);
Work recv_work(const Endpoint *end, size_t offset, VIP_UINT32 length);
Work rdma_work(const Endpoint *end, VIP_UINT16 operation, size_t offset, VIP_UINT32 length, const Endpoint *target,
               size_t target_offset);
Work with_immediate(Work work, VIP_UINT32 immediate);

VIP_RETURN post_send(Endpoint *end, int slot, Work work);
VIP_RETURN post_recv(Endpoint *end, int slot, Work work);

/* Post the most usual descriptors, expecting success. */
void post_simple_send(Endpoint *end, int slot, VIP_UINT32 length);
void post_simple_recv(Endpoint *end, int slot, VIP_UINT32 length);

/* Where the descriptor of a slot lies. */
VIP_DESCRIPTOR *send_descriptor(const Endpoint *end, int slot);
VIP_DESCRIPTOR *recv_descriptor(const Endpoint *end, int slot);

typedef struct {
    VIP_RETURN rc;
    int slot; /* -1: no descriptor, -2: not one of this queue */
    VIP_UINT32 status, length, immediate;
} Completion;

Completion send_done(Endpoint *end);
Completion recv_done(Endpoint *end);
Completion send_wait(Endpoint *end, VIP_ULONG timeout_ms);
Completion recv_wait(Endpoint *end, VIP_ULONG timeout_ms);

/* Call VipSendDone or VipRecvDone until a descriptor is complete. */
Completion send_poll(Endpoint *end);
Completion recv_poll(Endpoint *end);

/* Wait for a completion and check its slot and status (and, with success, nothing but VIP_SUCCESS). */
Completion check_completion(const char *file, int line, Completion completion, int slot, VIP_UINT32 status);
#define EXPECT_SEND(end, slot, status) check_completion(__FILE__, __LINE__, send_wait((end), LONG_MS), (slot), (status))
#define EXPECT_RECV(end, slot, status) check_completion(__FILE__, __LINE__, recv_wait((end), LONG_MS), (slot), (status))

/* A receive has failed that was too small for its message; Soft-RoCE takes it for one without the right to write. */
Completion check_too_small(const char *file, int line, Endpoint *end, int slot);
#define EXPECT_TOO_SMALL(end, slot) check_too_small(__FILE__, __LINE__, (end), (slot))

#define SENT (VIP_STATUS_DONE | VIP_STATUS_OP_SEND)
#define RECEIVED (VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE)
#define WRITTEN (VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE)
#define READ (VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ)
#define FLUSHED VIP_STATUS_DESC_FLUSHED_ERROR

typedef struct {
    VIP_RETURN rc;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN recv_queue;
} CqEntry;

CqEntry cq_done(Endpoint *end);
CqEntry cq_wait(Endpoint *end, VIP_ULONG timeout_ms);

/* ---- Time -------------------------------------------------------------------------------------------------------- */

/* How much later than its timeout a call may return on a busy machine, and how long "at once" may take, which is far
 * below LONG_MS. */
#define LATE_MS (5000UL * patience())

/* Nanoseconds on the steady clock. */
VIP_UINT64 steady_ns(void);

/* What began then has ended, neither before its time was up nor long after. */
void check_time(const char *file, int line, VIP_UINT64 began, VIP_ULONG at_least_ms);

/* The call times out when its time is up; it gives the code at once, whatever timeout it has. */
#define CHECK_TIMES_OUT(call, timeout_ms)                     \
    do {                                                      \
        const VIP_UINT64 began_ = steady_ns();                \
        CHECK_RC(call, VIP_TIMEOUT);                          \
        check_time(__FILE__, __LINE__, began_, (timeout_ms)); \
    } while (0)
#define CHECK_AT_ONCE(call, expected)              \
    do {                                           \
        const VIP_UINT64 began_ = steady_ns();     \
        CHECK_RC(call, expected);                  \
        check_time(__FILE__, __LINE__, began_, 0); \
    } while (0)

/* ---- Memory and errors ------------------------------------------------------------------------------------------- */

VIP_UINT8 *data_at(const Endpoint *end, size_t offset);

/* Changes what is allowed with memory, or ends the case where the NIC cannot do that. */
void set_mem_attributes(Endpoint *end, void *memory, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES attribs);

/* Waits for the next error with this code and takes it off the record. */
VIP_ERROR_DESCRIPTOR await_error(Endpoint *end, VIP_ERROR_CODE code);

/* Both ends get VIP_ERROR_CONN_LOST and enter the Error state. */
void await_loss(const Pair *pair);

/* await_error() for an error at the target of what another VI sends, of which hardware may tell nothing. */
void await_target_error(Endpoint *end, VIP_ERROR_CODE code);
int count_errors(Endpoint *end, VIP_ERROR_CODE code);

#endif
