/* SPDX-License-Identifier: BSD-3-Clause
 * A sweep over failing calls. Two processes, a client and a server, go through the life of a connection, and one call
 * of the library fails in one step of one of them. Whatever fails, the step must return a documented error, the same
 * step must succeed when repeated, the life must continue to its end, and neither process may leak anything.
 *
 * Each program contains the steps of one API. Its cases are client__KIND and server__KIND. A case reports all errors
 * that it finds.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "../conformance/support/harness.h"

#include <stdatomic.h>
#include <stdbool.h>

enum {
    WAIT_MS = 5000, /* a longer wait counts as a hang */
    SLICE_MS = 5,   /* for waits that are repeated */
    HEAP_BYTES = 512 * 1024,
    FILE_BYTES = 64 * 1024
};

typedef enum { CLIENT, SERVER } Role;

typedef enum {
    DONE,
    REFUSED, /* the documented error for lack of resources */
    NOT_YET, /* the other end is not ready; try again */
    BROKEN,  /* the connection has ended: return to the anchor, or continue if the client ended it at the end of its
                life */
    WRONG    /* any other outcome; complain() has reported it */
} Outcome;

typedef struct {
    const char* name;
    Outcome (*run)(void);
    bool anchor; /* where a life continues after its connection has broken; exactly one step */
} Step;

/* What a call comes to, by outcome_of() of the program. Objects can always be destroyed, and asked. */
#define OUTCOME(call) outcome_of((call), #call)
#define ENDED(call) ended(OUTCOME(call), #call)

/* A life; steps have the names of their functions. */
#define STEP(function) \
    { #function, function, false }
#define ANCHOR(function) \
    { #function, function, true }
#define STEPS(...)                         \
    {                                      \
        __VA_ARGS__, { NULL, NULL, false } \
    }

/* ---- Defined by the program of each API -------------------------------------------------------------------------- */

extern const Step client_steps[], server_steps[]; /* terminated by a step without a name */

/* Called before the first life in each process. */
void prepare(void);

/* ---- Functions and data for the programs ------------------------------------------------------------------------- */

/* Memory that the other process may read and write. */
typedef struct {
    atomic_uintptr_t address;
    atomic_uint_least64_t key;
    uint8_t descriptor[64];
} Region;

/* Shared by both processes; zeroed at the beginning of a life. */
typedef struct {
    Region heap[2], file[2]; /* the memory of each role */
    atomic_bool listening;   /* the server listens */
    atomic_bool refused;     /* the client has received the rejection that it requested */
    atomic_bool second;      /* the client's second connection is established */
    atomic_bool grown;       /* a process holds more than before this life */
    atomic_int repeats;      /* of this life */
    atomic_int connection;   /* of a ConnectionState; begin_connection() and leave() change it */
} Shared;

extern Shared* shared;
extern Role role;            /* of this process */
extern bool failing_here;    /* whether calls fail in this process in this life */
extern uint8_t* heap_memory; /* HEAP_BYTES of private memory */
extern uint8_t* file_memory; /* FILE_BYTES, a mapping of a sealed memfd */

/* Returns the address of the device: CONFORMANCE_ADDRESS or 127.0.0.1. */
const char* host(void);

/* Returns a port that no other case uses. There are two. */
uint16_t port_of(int number);

/* The server has accepted the request for the connection. */
void begin_connection(void);

/* The client ends the connection now. Returns false if the server has seen it break; then both start again. When the
 * connection breaks, the sender of a message may not learn that it has arrived, so the sender alone cannot decide.
 */
bool leave(void);

/* Waits for a flag, at most SLICE_MS. */
bool is_set(atomic_bool* flag);

/* Reports an error. The case continues but will fail. Returns WRONG. */
Outcome complain(const char* format, ...) __attribute__((format(printf, 1, 2)));

static inline Outcome ended(Outcome outcome, const char* call) {
    return outcome == REFUSED ? complain("%s is refused", call) : outcome;
}

#endif
