/* SPDX-License-Identifier: BSD-3-Clause
 * Shared by the ends of all APIs: checks, data patterns, and the order of operations.
 *
 * The ends first reject a request, then connect and execute each kind of operation, once from the client and once
 * from the server. The client disconnects. On a second connection the server disconnects. The receiver checks every
 * byte.
 */
#ifndef INTEROP_H
#define INTEROP_H

#include "end.h"

/* The parts of an end's memory: the source of own writes and of the peer's reads, outgoing and incoming messages,
 * and the target of the peer's writes and of own reads. */
enum { SOURCE = 0, OUTBOX = 1 << 20, INBOX = 2 << 20, TARGET = 3 << 20, MEMORY_BYTES = 4 << 20 };
enum { MESSAGE_BYTES = 65536, RECEIVES = 2, IMMEDIATE = 0x12345678 };

extern uint8_t* memory;
extern const char* role; /* "server" or "client" */

#define CHECK_EQ(actual, expected) check_eq(__LINE__, #actual, (long long)(actual), (long long)(expected))
#define CHECK(condition) CHECK_EQ((condition) ? 1 : 0, 1)
#define OK(call) CHECK_EQ(call, 0)

/* Terminates the program if the values differ. */
void check_eq(int line, const char* what, long long actual, long long expected);

static inline size_t inbox(size_t slot) { return INBOX + slot * MESSAGE_BYTES; }

uint8_t pattern(size_t seed, size_t i);
void fill(size_t at, size_t length, unsigned seed);

/* Checks that the place has the pattern and that the bytes around it are zero. Clears it. */
void check_and_clear(size_t at, size_t length, unsigned seed);

/* ---- Work, each with its completion. Places are offsets in the memory of an end. --------------------------------- */

enum { CONTEXT = 0x1234567 }; /* of all requests; receives have the numbers of their inboxes */

typedef enum { SEND, WRITE, READ } Kind;

void await_request(End* end, Kind kind, size_t length);
void send_pattern(End* end, size_t length, unsigned seed);
void receive_pattern(End* end, size_t length, unsigned seed);

/* Waits for a receive. When its message has been checked, post_inbox() posts it again. */
Done await_receive(End* end);
void post_inbox(End* end, uint64_t slot);

/* Sends a message. When it arrives, all earlier operations are visible in the peer's memory. */
void say_done(End* end);
void hear_done(End* end);

/* ---- Defined by the program of each API -------------------------------------------------------------------------- */

/* The private data of requests and answers. Both processes run on the same kind of machine. */
typedef struct {
    Key key;
    uint8_t abilities; /* of the end, if the API tells them */
    char greeting[20];
} Introduction;

extern const char* const library; /* which the program is linked with */
extern const int rights;          /* for memory, in addition to those of every end */
extern const char* const refusal; /* the private data that a client gets with it */

void prepare(End* end, Introduction* own); /* when it is open */
void reject(End* end);
void meet(End* end, const Introduction* other); /* when it is connected */
void part(End* end);                            /* when it is disconnected */

void check_request(const End* end, Kind kind, size_t length); /* which has completed */
void check_message(const End* end);                           /* which has been received */

void write_pattern(End* end, size_t to, size_t length, unsigned seed);

/* An operation, as seen by the end that starts it and by the other one. */
typedef struct {
    const char* name;
    void (*begin)(End* end);
    void (*end)(End* end);
} Operation;

extern const Operation operations[]; /* in addition to sends, writes and reads; terminated by an operation without a
                                        name */

#endif
