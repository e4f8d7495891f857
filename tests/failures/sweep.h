/* SPDX-License-Identifier: BSD-3-Clause
 * A sweep over failing calls: two processes, a client and a server, lead the life of a connection, and one call that
 * the library makes in one step of one of them fails. Whatever fails, the step says so with a documented error, the
 * same step tried again succeeds, the life goes on to its end, and nothing is left behind in either process.
 *
 * Each program has the steps of one API. Its cases are client__KIND and server__KIND; a case tells all that it finds.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "../conformance/support/harness.h"

#include <stdatomic.h>
#include <stdbool.h>

enum {
    WAIT_MS = 5000, /* who waits that long waits in vain */
    SLICE_MS = 5,   /* for waits that go on in another try */
    HEAP_BYTES = 512 * 1024,
    FILE_BYTES = 64 * 1024
};

typedef enum { CLIENT, SERVER } Role;

typedef enum {
    DONE,
    REFUSED, /* the documented error for a lack of resources */
    NOT_YET, /* the other end is not there yet: to be tried again */
    BROKEN,  /* the connection has ended: back to the anchor, or on if the client ended it at the end of its life */
    WRONG    /* anything else; complain() has said what */
} Outcome;

typedef struct {
    const char* name;
    Outcome (*run)(void);
    bool anchor; /* where lives begin anew after a connection has broken; once */
} Step;

/* ---- What the program of each API defines ------------------------------------------------------------------------ */

extern const Step client_steps[], server_steps[]; /* the last one has no name */

/* Before the first life, in each process. */
void prepare(void);

/* ---- What it uses ------------------------------------------------------------------------------------------------ */

/* What both processes see; zero at the beginning of a life. */
typedef struct {
    struct {
        atomic_uintptr_t address;
        atomic_uint_least64_t key;
        uint8_t descriptor[64];
    } heap[2], file[2];    /* the memory of each role */
    atomic_bool listening; /* the server listens */
    atomic_bool refused;   /* the client has met the refusal that it asks for */
    atomic_bool second;    /* its second connection stands */
    atomic_int connection; /* of a ConnectionState; begin_connection() and leave() change it */
} Shared;

extern Shared* shared;
extern Role role;            /* of this process */
extern bool failing_here;    /* calls fail in this process, in this life */
extern uint8_t* heap_memory; /* HEAP_BYTES of private memory */
extern uint8_t* file_memory; /* FILE_BYTES, a mapping of a sealed memfd */

/* A port that no other case uses; there are two. */
uint16_t port_of(int number);

/* The server has taken the request for the connection of their lives. */
void begin_connection(void);

/* The client ends the connection now. Returns false if the server has seen it break: both begin anew. Of a message that
 * has arrived the sender may not learn any more when the connection breaks, so who sends cannot tell by itself.
 */
bool leave(void);

/* Waits at most SLICE_MS for a flag. */
bool is_set(atomic_bool* flag);

/* Tells of something wrong; the case goes on, and fails in the end. Returns WRONG. */
Outcome complain(const char* format, ...) __attribute__((format(printf, 1, 2)));

#endif
