/* SPDX-License-Identifier: BSD-3-Clause
 * What the ends of all APIs have in common. An end is one end of a connection, with its memory. API/end.h defines End
 * and functions of these names for each API, so that one program can be compiled for each of them.
 *
 *   end_open(end, setup)         opens the device, registers the memory and creates the queues
 *   end_prepare(end)             creates what is connected: the endpoint (DAT) or the VI
 *   end_listen(end, host, port)  makes it a server; `host` is its own address
 *   end_take(end)                waits for a client
 *   end_call(end, host, port)    makes it a client of a server
 *   end_early_receive(...)       is end_post_receive() between these and end_connect()
 *   end_connect(end, data, size) connects to the server, or accepts the client that was taken, with private data
 *   end_event(end)               waits for the next event of the connection: "established", "closed", "lost", ..., or
 *                                NULL for a failure
 *   end_post_...(...)            posts a request or receive. Places in the memory of both ends are offsets. Contexts
 *                                come back with the completion, except in VIPL
 *   end_await_send(end, done)    waits for the completion of the next request
 *   end_await_receive(end, done) waits for that of the next receive
 *   end_poll_send(end)           returns whether a request has completed: one call of the API
 *   end_poll_receive(end)        the same for receives
 *   end_host(end)                returns its own address
 *   end_describe(end, key)       tells how a peer finds the memory
 *   end_learn(end, key)          takes note of where the peer's memory is
 *   end_hang_up(end, first)      disconnects, before or after the peer
 *   end_part(end)                destroys what was connected
 *   end_close(end)               closes everything in order
 *
 * Those that return bool return whether they succeeded. All are inline: a program refers only to calls of the API
 * that it makes, and needs only the API's own library.
 */
#ifndef TESTS_SUPPORT_ENDS_H
#define TESTS_SUPPORT_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const char* at; /* the host: an address of it (librpma), or the name of its adapter (DAT) or NIC (VIPL) */
    bool at_peer;   /* `at` is an address of the peer instead */
    void* memory;
    size_t bytes;
    bool for_peers;      /* they may read and write the memory */
    int rights;          /* others that the API has for memory */
    int depth;           /* of the queues; 8 in VIPL */
    bool one_queue;      /* for the completions of requests and receives */
    unsigned timeout_ms; /* of connecting; 0 is the default of librpma, and none otherwise */
} Setup;

typedef struct {
    bool succeeded;
    uint64_t context;
    size_t length; /* of what was received; in DAT also of other data */
} Done;

/* Where a peer of any API finds the memory. */
typedef struct {
    uint64_t address;
    uint64_t size; /* 0 where only the peer knows it */
    uint32_t key;
    uint32_t usage; /* of a region of librpma, otherwise 0 */
} Key;

/* Private data from the peer. */
typedef struct {
    size_t size;
    uint8_t bytes[UINT8_MAX];
} Greeting;

static inline void keep_greeting(Greeting* greeting, const void* bytes, size_t size) {
    if (size == 0 || size > sizeof greeting->bytes) return;
    greeting->size = size;
    memcpy(greeting->bytes, bytes, size);
}

/* Defined by the program: ends it, or takes note of the failed call. */
void fail(const char* call, const char* why);

static inline void end_expect(const char* event, const char* expected) {
    if (event == NULL || strcmp(event, expected) != 0) fail(expected, event != NULL ? event : "no event");
}

/* Each API/end.h defines END_OPENS_ADDRESSES, whether Setup.at is an address rather than a name, and
 * END_CONFIRMS_SENDS, whether a completed send has arrived. Where two ends in one thread need other calls to connect,
 * it also defines END_MEETS and end_meet(). */

/* CALL(function, arguments...): whether the call succeeded. */
#define CALL(function, ...) end_check(#function, function(__VA_ARGS__))

#endif
