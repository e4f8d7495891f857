/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message cycles between two ends in one thread, so that the number of instructions does not depend on time.
 * instructions.py runs it under callgrind, which counts what happens in `batch`. Each API is one program, made of this
 * file and one for the API.
 *
 * usage: PROGRAM NAME NAME BATCHES CYCLES OPERATION SIZE...
 *
 * The names are those of the hosts of the two ends. Each operation is run in BATCHES calls of `batch`, of CYCLES each.
 */
#include "tests/bench/cycles.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Alignas(4096) struct Memory memory[end_count];
unsigned sent[end_count], received[end_count];

void fail(const char* call, const char* why) {
    fprintf(stderr, "%s: %s\n", call, why);
    exit(1);
}

static void await_sent(int end) {
    while (sent[end] == 0) poll_sends(end);
    --sent[end];
}

static void await_received(int end) {
    while (received[end] == 0) poll_receives(end);
    --received[end];
}

/* ---- Cycles ------------------------------------------------------------------------------------------------------ */

/* A message. The ends take turns, as in a ping-pong: each message also confirms the previous one of the other
 * direction. An end that only receives would confirm later, which takes additional polls at both ends. */
static void cycle_send(int end, size_t size) {
    post_receive(end);
    post_send(end, size);
    await_received(1 - end);
    await_sent(1 - end);
}

static void cycle_write(int end, size_t size) {
    post_write(end, size);
    await_sent(end);
}

static void cycle_read(int end, size_t size) {
    post_read(end, size);
    await_sent(end);
}

/* Polls that find nothing. */
static void cycle_poll(int end, size_t size) {
    (void)size;
    poll_receives(end);
    poll_sends(end);
}

/* ---- Before and after -------------------------------------------------------------------------------------------- */

/* The message that the first cycle confirms. */
static void begin_sends(size_t size) {
    post_receive(0);
    post_send(1, size);
    await_received(0);
}

/* The confirmation of the last message, which none follows. */
static void end_sends(void) {
    while (sent[1] == 0) {
        poll_receives(0);
        poll_sends(1);
    }
    --sent[1];
}

struct Operation {
    const char* name;
    void (*cycle)(int end, size_t size);
};
static const struct Operation operations[] = {
    {"send", cycle_send}, {"write", cycle_write}, {"read", cycle_read}, {"poll", cycle_poll}};

static const struct Operation* find(const char* name) {
    for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i)
        if (strcmp(operations[i].name, name) == 0) return &operations[i];
    fail("no such operation", name);
    return NULL;
}

/* A thread of the library asks for notifications while nobody polls, and no longer asks once it sees polls. Valgrind
 * runs one thread at a time; that thread has its turns here, before each batch. */
static void settle(const struct Operation* operation, size_t size, unsigned cycles) {
    for (unsigned i = 0; i < cycles; ++i) {
        operation->cycle((int)(i % end_count), size);
        sched_yield();
    }
}

/* What callgrind finds by its name. */
__attribute__((noinline)) void batch(const struct Operation* operation, size_t size, unsigned cycles) {
    for (unsigned i = 0; i < cycles; ++i) operation->cycle((int)(i % end_count), size);
}

int main(int argc, char** argv) {
    if (argc < 7 || argc % 2 == 0) {
        fputs("usage: NAME NAME BATCHES CYCLES OPERATION SIZE...; cycles.c tells more\n", stderr);
        return 2;
    }
    const unsigned batches = (unsigned)atoi(argv[3]), cycles = (unsigned)atoi(argv[4]);
    open_ends(argv + 1);
    for (int i = 5; i < argc; i += 2) {
        const struct Operation* operation = find(argv[i]);
        const size_t size = (size_t)atoi(argv[i + 1]);
        if (size > max_size || cycles % end_count != 0) fail("cannot run", argv[i]);
        if (operation->cycle == cycle_send) begin_sends(size);
        for (unsigned j = 0; j < batches; ++j) {
            settle(operation, size, cycles);
            batch(operation, size, cycles);
        }
        if (operation->cycle == cycle_send) end_sends();
    }
    close_ends();
    return 0;
}
