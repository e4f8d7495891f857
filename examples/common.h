/* SPDX-License-Identifier: BSD-3-Clause
 * What the C programs of all APIs share.
 */
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOM = 4096, TIMEOUT_MS = 10000, RETRY_MS = 10, MAX_CLIENTS = 64 };
enum Side { SERVER, CLIENT };

/* Where a peer's memory is, as a message: the 21 bytes of a librpma descriptor, little-endian. VIPL has no private
   data, so that the keys travel in messages. */
struct __attribute__((packed)) Descriptor {
    uint64_t address, size;
    uint32_t key;
    uint8_t usage;
};
enum { READ_AND_WRITE = 1 | 8, PERSISTENT = 32 }; /* of librpma: READ_SRC, WRITE_DST; FLUSH_TYPE_PERSISTENT */

/* A request to make a part of the server's memory persistent, for APIs without a flush. */
struct Commit {
    uint64_t offset, length;
};

static inline void stop(const char* text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

/* Waits before the client asks again. */
static inline void pause_before_retry(void) { nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL); }

static inline struct Descriptor descriptor_in(const char* message, size_t length) {
    struct Descriptor result = {0};
    if (length == sizeof result) memcpy(&result, message, length);
    if (result.size < ROOM) stop("not the descriptor of enough memory");
    return result;
}

/* Runs the end that the command line asks for. `argument` is the name of the server's last argument; NULL: none. */
typedef void Run(const char* address, const char* port, const char* last);
static inline int run(int argc, char** argv, const char* name, const char* argument, Run* server, Run* client) {
    if (argc == (argument ? 5 : 4) && strcmp(argv[1], "server") == 0)
        server(argv[2], argv[3], argv[4]);
    else if (argc == 5 && strcmp(argv[1], "client") == 0)
        client(argv[2], argv[3], argv[4]);
    else
        return fprintf(stderr, "usage: %s server ADDRESS PORT%s%s | %s client ADDRESS PORT TEXT\n", name,
                       argument ? " " : "", argument ? argument : "", name),
               2;
    return 0;
}
