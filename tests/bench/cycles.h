/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between cycles.c, whose instructions instructions.py counts, and the file for one API (cycles_*). */
#ifndef TESTS_BENCH_CYCLES_H
#define TESTS_BENCH_CYCLES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { end_count = 2, max_size = 4096, queue_size = 8, receives_ahead = 2 };

/* ---- Defined by cycles.c ------------------------------------------------------------------------------------------
 */

struct Memory {
    unsigned char outgoing[max_size], incoming[max_size];
};
extern struct Memory memory[end_count]; /* of each end; peers may write to it and read it */

extern unsigned sent[end_count], received[end_count]; /* completions that were polled, but not used yet */

/* Ends the program. */
void fail(const char* call, const char* why);

/* ---- Defined by the file for an API -------------------------------------------------------------------------------
 */

/* Connects the ends. `names` are the addresses (librpma) or adapters (DAT) of their hosts. */
void open_ends(char* const names[end_count]);
void close_ends(void);

void post_receive(int end);            /* of max_size bytes to `incoming` */
void post_send(int end, size_t size);  /* of `outgoing` */
void post_write(int end, size_t size); /* to `incoming` of the other end */
void post_read(int end, size_t size);  /* of `outgoing` of the other end */

/* Each calls the API once. The call must be in the function itself, because calls are counted separately for the two
 * functions. If there is a completion, it is counted in `sent` or `received`. */
void poll_sends(int end);
void poll_receives(int end);

#ifdef __cplusplus
}
#endif

#endif
