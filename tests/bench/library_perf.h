/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between the measurements in library_perf.c and the code for each API. */
#ifndef TESTS_BENCH_LIBRARY_PERF_H
#define TESTS_BENCH_LIBRARY_PERF_H

#include "end.h"

enum { max_size = 1 << 16, window = 32, grant = window / 2, queue_size = 2 * window };

/* ---- Defined by library_perf.c ----------------------------------------------------------------------------------- */

extern End self; /* with one queue for all completions */

/* Counts a completion. A completed receive is immediately replaced by a new one. */
void count_completion(uint64_t context);

/* ---- Defined for each interface ---------------------------------------------------------------------------------- */

/* Counts those that there are, up to a window of them. */
void take_completions(void);

#endif
