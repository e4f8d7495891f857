/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between the measurements in library_perf.c and the code for each API. */
#ifndef TESTS_BENCH_LIBRARY_PERF_H
#define TESTS_BENCH_LIBRARY_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { max_size = 1 << 16, window = 32, grant = window / 2, queue_size = 2 * window };

/* ---- Defined by library_perf.c ----------------------------------------------------------------------------------- */

extern unsigned char outgoing[max_size], incoming[max_size];
extern bool leads;              /* whether this is the client */
extern uint64_t sent, received; /* completions that have not been waited for yet */

/* Messages are at the end of the memory, so that the position of their last byte is fixed. */
static inline size_t offset(size_t size) { return max_size - size; }

/* Terminates the program. */
void fail(const char* what, const char* why);

/* ---- Defined for each interface ---------------------------------------------------------------------------------- */

/* Connects `outgoing` and `incoming` to those of the peer and posts a window of receives, each of the whole of
 * `incoming`. Without a `server`, prints "listening" and waits for a client. */
void open_connection(const char* port, const char* local, const char* server);
void close_connection(void);

void send_one(size_t size);
void write_one(size_t size);

/* Counts completions. Each completed receive is immediately replaced by a new one. */
void take_completions(void);

#endif
