/* SPDX-License-Identifier: BSD-3-Clause
 * Shared by the ends of all APIs: checks, data patterns, and the order of operations.
 *
 * The ends first reject a request, then connect and execute each kind of operation, once from the client and once
 * from the server. The client disconnects. On a second connection the server disconnects. The receiver checks every
 * byte.
 */
#ifndef INTEROP_H
#define INTEROP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Checks private data for the text, which connection managers pad with zeros. */
void check_data(const void* data, size_t size, const char* text);

static inline size_t inbox(size_t slot) { return INBOX + slot * MESSAGE_BYTES; }

uint8_t pattern(size_t seed, size_t i);
void fill(size_t at, size_t length, unsigned seed);

/* Checks that the place has the pattern and that the bytes around it are zero. Clears it. */
void check_and_clear(size_t at, size_t length, unsigned seed);

/* ---- Defined by the program of each API -------------------------------------------------------------------------- */

typedef struct End End;

/* The library of the API, which the program is linked with. */
extern const char* const library;

End* open_end(const char* address, const char* port);
void listen_at(End* end);
void close_end(End* end);

void call_in_vain(End* end);
void reject(End* end);
void call(End* end);
void answer(End* end);
void hang_up(End* end);
void hang_up_after_the_other(End* end);

/* Each waits for completion. Offsets are relative to the memory of an end. */
void send_pattern(End* end, size_t length, unsigned seed);
void receive_pattern(End* end, size_t length, unsigned seed);
void write_pattern(End* end, size_t to, size_t length, unsigned seed);
void read_from(End* end, size_t from, size_t to, size_t length);

/* An operation, as seen by the end that starts it and by the other one. */
typedef struct {
    const char* name;
    void (*begin)(End* end);
    void (*end)(End* end);
} Operation;

extern const Operation operations[]; /* in addition to sends, writes and reads; terminated by an operation without a
                                        name */

/* Sends a message. When it arrives, all earlier operations are visible in the peer's memory. */
void say_done(End* end);
void hear_done(End* end);

#endif
