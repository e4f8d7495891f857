/* SPDX-License-Identifier: BSD-3-Clause
 * What the ends of all APIs share: checks, the bytes that travel, and who does what when.
 *
 * After a request that is rejected the two ends are connected, do each kind of operation once from the client and once
 * from the server, and the client hangs up; of another connection it is the server that hangs up. Every byte is checked
 * where it arrives.
 */
#ifndef INTEROP_H
#define INTEROP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the memory of an end is written from and read by the other, where messages are sent from and received, and
 * where it is written to by the other and read into. */
enum { SOURCE = 0, OUTBOX = 1 << 20, INBOX = 2 << 20, TARGET = 3 << 20, MEMORY_BYTES = 4 << 20 };
enum { MESSAGE_BYTES = 65536, RECEIVES = 2, IMMEDIATE = 0x12345678 };

extern uint8_t* memory;
extern const char* role; /* "server" or "client" */

#define CHECK_EQ(actual, expected) check_eq(__LINE__, #actual, (long long)(actual), (long long)(expected))
#define CHECK(condition) CHECK_EQ((condition) ? 1 : 0, 1)
#define OK(call) CHECK_EQ(call, 0)

/* Ends the program where the two are not equal. */
void check_eq(int line, const char* what, long long actual, long long expected);

/* Private data: the text, which connection managers fill up with zeros. */
void check_data(const void* data, size_t size, const char* text);

static inline size_t inbox(size_t slot) { return INBOX + slot * MESSAGE_BYTES; }

uint8_t pattern(size_t seed, size_t i);
void fill(size_t at, size_t length, unsigned seed);

/* The place has the pattern, and the bytes around it are zeros, as they were; afterwards all are. */
void check_and_clear(size_t at, size_t length, unsigned seed);

/* ---- What the program of each API defines ------------------------------------------------------------------------ */

typedef struct End End;

/* Any function of the library. */
extern void* const function_of_library;

End* open_end(const char* address, const char* port);
void listen_at(End* end);
void close_end(End* end);

void call_in_vain(End* end);
void reject(End* end);
void call(End* end);
void answer(End* end);
void hang_up(End* end);
void hang_up_after_the_other(End* end);

/* Each waits until it is done. Offsets are those of the memory of either end. */
void send_pattern(End* end, size_t length, unsigned seed);
void receive_pattern(End* end, size_t length, unsigned seed);
void write_pattern(End* end, size_t to, size_t length, unsigned seed);
void read_from(End* end, size_t from, size_t to, size_t length);

/* An operation as the end that begins it and the other one see it. */
typedef struct {
    const char* name;
    void (*begin)(End* end);
    void (*end)(End* end);
} Operation;

extern const Operation operations[]; /* besides sending, writing and reading; the last one has no name */

/* A word between both: what was done before it is in the other's memory when it arrives. */
void say_done(End* end);
void hear_done(End* end);

#endif
