/* SPDX-License-Identifier: BSD-3-Clause
 * The two sides of a connection for the conformance programs: an IA, its EVDs, memory and an endpoint.
 *
 * A side lives in the case's own process or in a helper process; the calls below run where it lives, so that one case
 * can direct both sides of a connection, line by line.
 */
#ifndef SIDE_H
#define SIDE_H

#include "../support/message_sizes.h"
#include "conformance.h"

/* after the harness, which says what of the system's headers is wanted */
#include "../../support/ends/dat_calls.h"

#include <sys/socket.h>

enum {
    AREA_BYTES = LARGEST_MESSAGE, /* room behind SEND_AT and RECV_AT */
    MAX_PDATA = 1024,
    EVD_QLEN = 64, /* what sides have where Options say nothing */
    DTOS = 16,
    IOV_SEGMENTS = 3
};

/* Offsets into the memory of a side: what it sends or reads from, and where it receives or is written to. */
#define SEND_AT 0
#define RECV_AT AREA_BYTES
#define MEMORY_BYTES (2 * (size_t)AREA_BYTES)

/* Which EVD of a side. */
typedef enum { ASYNC, CR, CONN, RECV, REQUEST, EVDS } Stream;

/* Members that are 0 keep the default. */
typedef struct {
    DAT_COUNT evd_qlen; /* of every EVD */
    DAT_COUNT recv_dtos, request_dtos, iov_segments;
    DAT_COMPLETION_FLAGS recv_flags, request_flags; /* attributes of the endpoint */
    DAT_MEM_PRIV_FLAGS privileges;                  /* of the memory; default all */
    bool srq;                                       /* the endpoint is made with a shared receive queue of DTOS */
    bool one_evd;                                   /* for requests, receives, connections and their requests */
} Options;

/* Where the memory of a side is, for the other one. */
typedef struct {
    DAT_RMR_CONTEXT context;
    DAT_VADDR address;
} Target;

struct Side {
    Peer *process; /* where it lives; NULL is the process of the case */
    DAT_CONN_QUAL qual;
    struct sockaddr_storage address; /* of its IA */
    bool borrows;                    /* IA, zone, memory and shared receive queue are another side's */
    DAT_IA_HANDLE ia;
    DAT_PZ_HANDLE pz;
    DAT_EVD_HANDLE evds[EVDS];
    DAT_SRQ_HANDLE srq;
    DAT_EP_HANDLE ep;
    DAT_PSP_HANDLE psp;
    DAT_CR_HANDLE cr; /* of take_request */
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT lmr_context;
    DAT_RMR_CONTEXT rmr_context;
    uint8_t *memory;
    Target target;               /* the memory of the other side */
    DAT_COUNT private_data_size; /* what came with the last request or connection event */
    uint8_t private_data[MAX_PDATA];
};

#include "../support/pairs.h"

/* ---- The environment --------------------------------------------------------------------------------------------- */

/* The name of the IA: CONFORMANCE_IA, or else viaduct-lo. */
DAT_NAME_PTR test_ia(void);

/* Whether that is software on this host, which knows more than a device: who died, and what a queue really holds. */
bool on_loopback(void);

/* Time-outs for events that come and for events that do not; long_us() grows with CONFORMANCE_PATIENCE. */
DAT_TIMEOUT long_us(void);
#define MEDIUM_US ((DAT_TIMEOUT)(MEDIUM_MS * 1000))
#define SHORT_US ((DAT_TIMEOUT)(SHORT_MS * 1000))

/* ---- Single objects, in the process of the case ------------------------------------------------------------------ */

DAT_IA_HANDLE open_ia(DAT_EVD_HANDLE *async_evd); /* async_evd may be NULL */
DAT_PZ_HANDLE new_pz(DAT_IA_HANDLE ia);
DAT_EVD_HANDLE new_evd(DAT_IA_HANDLE ia, DAT_EVD_FLAGS flags);
DAT_LMR_HANDLE new_lmr(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, void *memory, DAT_VLEN length, DAT_LMR_CONTEXT *context);

/* A memory window; devices may have none, and the case is skipped. */
DAT_RMR_HANDLE new_rmr(DAT_PZ_HANDLE pz);

/* Attributes of an endpoint with the options' sizes. */
DAT_EP_ATTR ep_attributes(Options options);

/* An endpoint with the zone, the EVDs and the shared receive queue of a side in this process. */
DAT_EP_HANDLE new_ep(const Side *side, Options options);

DAT_EP_STATE state_of(DAT_EP_HANDLE ep);

/* ---- Making sides ------------------------------------------------------------------------------------------------ */

/* An open pair, both here: the server has the client's IA. side_close the server first, as pair_close does. */
Pair open_pair_here(Options options);
Pair connected_pair_here(Options options);

/* The client disconnects, and both sides know. */
void pair_hang_up(const Pair *pair, DAT_CLOSE_FLAGS flags);

/* ---- Connecting, step by step ------------------------------------------------------------------------------------ */

DAT_RETURN connect_to(Side *client, const Side *server, const void *data, DAT_COUNT size); /* dat_ep_connect */
void take_request(Side *server);                                           /* waits for it and sets cr */
DAT_RETURN accept_request(Side *server, const void *data, DAT_COUNT size); /* dat_cr_accept */
DAT_RETURN reject_request(Side *server);
DAT_RETURN disconnect(Side *side, DAT_CLOSE_FLAGS flags);
DAT_EP_STATE ep_state(Side *side);

/* ---- Events ------------------------------------------------------------------------------------------------------ */

/* Pointers in events of a side in a helper process mean something there only; its private data is in the side. */
bool poll_event(Side *side, Stream stream, DAT_EVENT *event); /* dat_evd_dequeue */
DAT_EVENT next_event(Side *side, Stream stream);              /* waits */

/* Waits, and checks the number. */
DAT_EVENT expect_event(const char *file, int line, Side *side, Stream stream, DAT_EVENT_NUMBER number);
#define EXPECT_EVENT(side, stream, number) expect_event(__FILE__, __LINE__, (side), (stream), (number))

/* Waits on the EVD given, in this process. */
DAT_EVENT wait_on(const char *file, int line, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
#define WAIT_ON(evd, number) wait_on(__FILE__, __LINE__, (evd), (number))

/* Waits for a DTO completion, and checks cookie and status. */
DAT_DTO_COMPLETION_EVENT_DATA expect_dto(const char *file, int line, Side *side, Stream stream, DAT_UINT64 cookie,
                                         DAT_DTO_COMPLETION_STATUS status);
#define EXPECT_DTO(side, stream, cookie, status) expect_dto(__FILE__, __LINE__, (side), (stream), (cookie), (status))
#define EXPECT_DONE(side, cookie) EXPECT_DTO(side, REQUEST, cookie, DAT_DTO_SUCCESS)
#define EXPECT_RECEIVED(side, cookie) EXPECT_DTO(side, RECV, cookie, DAT_DTO_SUCCESS)

/* Nothing is left on any EVD. */
void expect_nothing(Side *side);
void throw_away_events(Side *side);

const char *event_name(DAT_EVENT_NUMBER number);

/* ---- Work -------------------------------------------------------------------------------------------------------- */

typedef enum { SEND, RECEIVE, SRQ_RECEIVE, READ, WRITE } Operation;

typedef struct {
    Operation operation;
    size_t at, to; /* at: in the own memory; to: in the target */
    DAT_SEG_LENGTH length;
    DAT_UINT64 cookie;
    DAT_COMPLETION_FLAGS flags;
    bool no_segment; /* an empty list instead of one segment */
} Work;

DAT_RETURN post(Side *side, Work work);

/* A piece of the side's memory. */
DAT_LMR_TRIPLET piece(const Side *side, size_t offset, DAT_SEG_LENGTH length);
DAT_RMR_TRIPLET target_piece(const Side *side, size_t offset, DAT_SEG_LENGTH length);

#endif
