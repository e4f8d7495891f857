/* SPDX-License-Identifier: BSD-3-Clause
 * What the sides of connections have in common, whatever the API: one lives in the case's own process or in a helper
 * process, and functions run where it lives.
 *
 * A suite that has sides defines struct Side in its side.h, with the members `process` and `memory`, and may say that
 * the data begin at DATA_START of the memory.
 */
#ifndef SIDES_H
#define SIDES_H

#include "harness.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct Side Side;

/* A side without contents, and a port that no other case uses. */
Side *blank_side(Peer *process, uint16_t *port);

/* Runs a function where the side lives; the argument is copied there and back, and the side's contents back. */
typedef void (*SideFunction)(Side *side, void *argument);

void at(Side *side, SideFunction function, void *argument, size_t size);

/* The same without waiting: in a thread here, or in the helper process, which takes one task at a time. */
typedef struct {
    Side *side;
    SideFunction function;
    void *argument;
    size_t size;
    pthread_t thread;
    struct SideMessage *message;
} Task;

void begin(Task *task, Side *side, SideFunction function, void *argument, size_t size);
void finish(Task *task);

/* Instead of finish(), where the process was killed meanwhile. */
void abandon(Task *task);

/* Held while the contents of a side are copied, for threads of the library that change them. */
extern pthread_mutex_t sides_mutex;

/* Fills a part of the side's data with a pattern, and looks whether it is there. */
void fill(Side *side, size_t offset, size_t length, unsigned seed);
bool filled(Side *side, size_t offset, size_t length, unsigned seed);

#endif
