/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a connection. It reads commands from standard input and answers each with a line.
 *
 * usage: NAME HOST [SERVER]      HOST is the number of this host; SERVER, for clients, that of the server's host
 */
#ifndef END_H
#define END_H

#include <stdbool.h>

enum { memory_size = 4096, message_size = 8, connect_timeout_ms = 5000 };

/* The operations of the program for each API. Each returns its answer: "ok" or an error. */
const char* open_all(void);
const char* take_request(void);
const char* connect_ends(void);
const char* post_receive(void);
const char* post_send(void);
const char* next_event(void);
const char* finish(void); /* waits until all work has completed and returns whether any of it succeeded */
const char* close_all(void);

extern int own_host;
extern int server_host; /* 0: this end is the server */

#endif
