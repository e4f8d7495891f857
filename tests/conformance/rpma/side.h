/* SPDX-License-Identifier: BSD-3-Clause
 * The two sides of a connection for the conformance programs: a peer, memory, a configuration and a connection.
 *
 * A side lives in the case's own process or in a helper process; the calls below run where it lives, so that one case
 * can direct both sides of a connection, line by line.
 */
#ifndef SIDE_H
#define SIDE_H

#include "../support/message_sizes.h"
#include "conformance.h"

#include <time.h>

enum {
    AREA_BYTES = LARGEST_MESSAGE, /* room behind SEND_AT and RECV_AT */
    MAX_PDATA = 255,
    MR_DESCRIPTOR_BYTES = 21
};

/* Offsets into the memory of a side: what it sends or reads from, and where it receives or is written to. */
#define SEND_AT 0
#define RECV_AT AREA_BYTES
#define MEMORY_BYTES (2 * (size_t)AREA_BYTES)

#define ALL_USAGES 0xff

/* Members that are 0 keep the default; slow machines have patience and a longer timeout. */
typedef struct {
    uint32_t cq_size, rcq_size, sq_size, rq_size;
    int timeout_ms;
    bool shared_channel;
    bool srq, srq_without_rcq; /* connections of this side use a shared receive queue of its own */
    int usage;                 /* of the memory; default all */
    char file[64];             /* the memory is a shared mapping of this file; default anonymous memory */
} Options;

struct Side {
    Peer *process; /* where it lives; NULL is the process of the case */
    char port[8];
    struct rpma_peer *peer;
    struct rpma_conn_cfg *cfg;
    struct rpma_srq *srq;
    struct rpma_ep *ep;
    struct rpma_conn_req *req;
    struct rpma_conn *conn;
    uint8_t *memory;
    struct rpma_mr_local *mr;
    uint8_t descriptor[MR_DESCRIPTOR_BYTES]; /* of mr */
    struct rpma_mr_remote *target;           /* the memory of the other side */
};

#include "../support/pairs.h"

/* The address that both sides use: CONFORMANCE_ADDRESS, or else that of this host. */
const char *test_address(void);

/* The device of that address, and a peer on it. */
struct ibv_context *test_device(void);
struct rpma_peer *new_peer(void);

/* Another host: an address for documentation only (RFC 5737). */
#define ANOTHER_HOST "192.0.2.1"

/* File descriptors that the library gives out. */
void set_nonblocking(int fd, bool on);
bool readable(int fd, int timeout_ms);

/* Sends this process a signal again and again, in case the first one comes before the wait that it is to end. */
timer_t start_signals(void);
void stop_signals(timer_t timer);

/* The client hangs up, the server follows, and both know. */
void pair_hang_up(const Pair *pair);

/* ---- Connecting, step by step ------------------------------------------------------------------------------------ */

void request_to(Side *client, const Side *server);        /* rpma_conn_req_new */
void next_request(Side *server);                          /* rpma_ep_next_conn_req */
void connect_request(Side *side);                         /* rpma_conn_req_connect without private data */
void connect_with(Side *side, const void *data, int len); /* and with */
void disconnect(Side *side);
void delete_conn(Side *side);

enum rpma_conn_event next_event(Side *side);
bool event_waits(Side *side); /* on the descriptor of rpma_conn_get_event_fd */
void expect_event(const char *file, int line, Side *side, enum rpma_conn_event expected);
#define EXPECT_EVENT(side, expected) expect_event(__FILE__, __LINE__, (side), (expected))

/* An operation of this side failed, and the connection with it. A device tells by the completion alone. */
#define EXPECT_BREAK(side) (on_loopback() ? EXPECT_EVENT(side, RPMA_CONN_LOST) : (void)0)

/* ---- Work and completions ---------------------------------------------------------------------------------------- */

typedef enum {
    SEND,
    SEND_WITH_IMM,
    RECV,
    REQ_RECV, /* on the request */
    SRQ_RECV, /* on the shared receive queue */
    READ,
    WRITE,
    WRITE_WITH_IMM,
    ATOMIC_WRITE,
    FLUSH_VISIBILITY,
    FLUSH_PERSISTENT
} Operation;

typedef struct {
    Operation operation;
    size_t at, to, length; /* at: in the own memory; to: in the target */
    bool no_region;        /* NULL instead of both regions */
    bool on_error;         /* RPMA_F_COMPLETION_ON_ERROR; default RPMA_F_COMPLETION_ALWAYS */
    uint32_t imm;
    uint64_t context;
    char value[8]; /* of an atomic write */
} Work;

int post(Side *side, Work work);

/* Which queue: the main one, or the one for receives, which may be the main one, too. */
typedef enum { MAIN_CQ, RECV_CQ } Queue;

struct rpma_cq *queue_of(const Side *side, Queue queue); /* where the side lives */

/* Polls once: whether there is a completion. */
bool poll_wc(Side *side, Queue queue, struct ibv_wc *wc);

/* Waits for the next completion. */
struct ibv_wc next_wc(Side *side, Queue queue);

/* Waits, and checks context and status. */
struct ibv_wc expect_wc(const char *file, int line, Side *side, Queue queue, uint64_t context,
                        enum ibv_wc_status status);
#define EXPECT_DONE(side, context) expect_wc(__FILE__, __LINE__, (side), MAIN_CQ, (context), IBV_WC_SUCCESS)
#define EXPECT_RECEIVED(side, context) expect_wc(__FILE__, __LINE__, (side), RECV_CQ, (context), IBV_WC_SUCCESS)
#define EXPECT_WC(side, queue, context, status) expect_wc(__FILE__, __LINE__, (side), (queue), (context), (status))

/* Waits for an error: the one given, or on a device the one that it finds best. */
void expect_failed(const char *file, int line, Side *side, Queue queue, uint64_t context, enum ibv_wc_status status);
#define EXPECT_FAILED(side, queue, context, status) \
    expect_failed(__FILE__, __LINE__, (side), (queue), (context), (status))

/* Posts the work until there is no room: at least `size` times, and on loopback no more. Returns how often. */
unsigned fill_queue(Side *side, Work work, unsigned size);

/* The number that completions of its connection have. */
uint32_t qp_num_of(Side *side);

/* Nothing is left on either queue. */
void expect_no_wc(Side *side);

/* The send queue of the client is full of messages that nobody receives. */
Pair pair_with_full_queue(void);

/* A connection that its client has disconnected, and both sides know. */
Pair closed_pair(void);

#endif
