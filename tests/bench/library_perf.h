/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the measurements of library_perf.c and the interface that they use. */
#ifndef TESTS_BENCH_LIBRARY_PERF_H
#define TESTS_BENCH_LIBRARY_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { max_size = 1 << 16, window = 32, grant = window / 2, queue_size = 2 * window };

/* ---- Of the measurements ----------------------------------------------------------------------------------------- */

extern unsigned char outgoing[max_size], incoming[max_size];
extern bool leads;              /* this is the client */
extern uint64_t sent, received; /* completions that nobody has waited for yet */

/* Messages lie at the end of the memory, so that their last byte is always at the same place. */
static inline size_t offset(size_t size) { return max_size - size; }

/* Ends the program. */
void fail(const char* what, const char* why);

/* ---- Of the interface -------------------------------------------------------------------------------------------- */

/* Connects `outgoing` and `incoming` with those of the peer, and posts a window of receives of the whole of `incoming`.
 * The server has no `server` to connect to: it says "listening", and waits. */
void open_connection(const char* port, const char* local, const char* server);
void close_connection(void);

void send_one(size_t size);
void write_one(size_t size);

/* Counts what has completed. Receives have their place taken by a new one at once. */
void take_completions(void);

#endif
