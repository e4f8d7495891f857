/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a connection, which does what the lines on its standard input say and answers each with a line.
 *
 * usage: NAME HOST [SERVER]      HOST is the number of this end's host; with SERVER, another one's, it is a client
 */
#ifndef END_H
#define END_H

#include <stdbool.h>
#include <stddef.h>

enum { memory_size = 4096, message_size = 8, connect_timeout_ms = 5000 };

/* What each program knows how to do. Every command returns its answer: "ok", or what happened. */
struct command {
    const char* name;
    const char* (*run)(void);
};

extern const struct command commands[];
extern const size_t command_count;

extern int own_host;
extern int server_host; /* 0: this end is the server */

#endif
