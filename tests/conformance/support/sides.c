/* SPDX-License-Identifier: BSD-3-Clause
 * Compiled for each suite that has sides, with its side.h.
 */
#include "sides.h"

#include "side.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifndef DATA_START
#define DATA_START 0
#endif

/* The ports are below the system's range of ephemeral ports (32768 and up), which other tests use. */
enum { MAX_SIDES = 8, FIRST_PORT = 20000, PORT_BLOCKS = 1500 };

/* A side has the same address in the case and in its process. Its contents are copied after every call. */
static Side sides[MAX_SIDES];
static int side_count;

pthread_mutex_t sides_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Takes ports that no other test on this host uses as long as this process or its children run. */
static unsigned block_of_ports(void) {
    static int held = -1;
    static unsigned block;
    if (held >= 0) return block;
    held = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(held >= 0);
    for (block = (unsigned)getpid() % PORT_BLOCKS;; block = (block + 1) % PORT_BLOCKS) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        const int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "viaduct-test-ports-%u", block);
        const size_t size = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length;
        if (bind(held, (struct sockaddr *)&name, (socklen_t)size) == 0) return block;
        CHECK_EQ(errno, EADDRINUSE);
    }
}

Side *blank_side(Peer *process, uint16_t *port) {
    CHECK(side_count < MAX_SIDES);
    Side *side = &sides[side_count];
    *port = (uint16_t)(FIRST_PORT + block_of_ports() * MAX_SIDES + (unsigned)side_count++);
    memset(side, 0, sizeof *side);
    side->process = process;
    return side;
}

/* ---- Running functions in the process of a side ------------------------------------------------------------------ */

struct SideMessage {
    Side *side;
    SideFunction function;
    Side contents;
    max_align_t argument[];
};

static void run_message(void *bytes) {
    struct SideMessage *message = bytes;
    message->function(message->side, message->argument);
    pthread_mutex_lock(&sides_mutex);
    message->contents = *message->side;
    pthread_mutex_unlock(&sides_mutex);
}

static void *run_thread(void *task_pointer) {
    Task *task = task_pointer;
    task->function(task->side, task->argument);
    return NULL;
}

void begin(Task *task, Side *side, SideFunction function, void *argument, size_t size) {
    *task = (Task){.side = side, .function = function, .argument = argument, .size = size};
    if (side->process == NULL) {
        CHECK(pthread_create(&task->thread, NULL, run_thread, task) == 0);
        return;
    }
    task->message = calloc(1, sizeof *task->message + size);
    CHECK(task->message != NULL);
    task->message->side = side;
    task->message->function = function;
    if (size > 0) memcpy(task->message->argument, argument, size);
    begin_on_peer(side->process, run_message, task->message, sizeof *task->message + size);
}

void finish(Task *task) {
    Peer *process = task->side->process;
    if (process == NULL) {
        CHECK(pthread_join(task->thread, NULL) == 0);
        return;
    }
    finish_on_peer(process, task->message, sizeof *task->message + task->size);
    *task->side = task->message->contents;
    task->side->process = process;
    if (task->size > 0) memcpy(task->argument, task->message->argument, task->size);
    free(task->message);
}

void abandon(Task *task) { free(task->message); }

void at(Side *side, SideFunction function, void *argument, size_t size) {
    if (side->process == NULL) {
        function(side, argument);
        return;
    }
    Task task;
    begin(&task, side, function, argument, size);
    finish(&task);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

typedef struct {
    size_t offset, length;
    unsigned seed;
    bool same;
} Pattern;

static uint8_t pattern_byte(size_t i, unsigned seed) { return (uint8_t)(i * 7 + i / 251 + seed * 31 + 1); }

static void do_fill(Side *side, void *argument) {
    const Pattern *pattern = argument;
    uint8_t *bytes = side->memory + DATA_START + pattern->offset;
    for (size_t i = 0; i < pattern->length; ++i) bytes[i] = pattern_byte(i, pattern->seed);
}

static void do_compare(Side *side, void *argument) {
    Pattern *pattern = argument;
    const uint8_t *bytes = side->memory + DATA_START + pattern->offset;
    pattern->same = true;
    for (size_t i = 0; i < pattern->length; ++i) pattern->same &= bytes[i] == pattern_byte(i, pattern->seed);
}

void fill(Side *side, size_t offset, size_t length, unsigned seed) {
    Pattern pattern = {offset, length, seed, false};
    at(side, do_fill, &pattern, sizeof pattern);
}

bool filled(Side *side, size_t offset, size_t length, unsigned seed) {
    Pattern pattern = {offset, length, seed, false};
    at(side, do_compare, &pattern, sizeof pattern);
    return pattern.same;
}
