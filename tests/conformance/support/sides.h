/* SPDX-License-Identifier: BSD-3-Clause
 * Common code for the sides of connections, for all APIs. A side exists in the case's own process or in a helper
 * process, and functions run in the process of their side.
 *
 * A suite that has sides defines struct Side in its side.h, with the members `process` and `memory`. It may define
 * DATA_START, the offset of the data in the memory.
 */
#ifndef SIDES_H
#define SIDES_H

#include "harness.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct Side Side;

/* Returns an empty side and a port that no other case uses. */
Side *blank_side(Peer *process, uint16_t *port);

/* Runs a function in the process of the side. The argument is copied there and back, and the contents of the side
   are copied back. */
typedef void (*SideFunction)(Side *side, void *argument);

void at(Side *side, SideFunction function, void *argument, size_t size);

/* The same without waiting: in a thread of this process, or in the side's process, which executes one task at a
   time. */
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

/* Replaces finish() if the process was killed meanwhile. */
void abandon(Task *task);

/* Held while the contents of a side are copied, because threads of the library may change them. */
extern pthread_mutex_t sides_mutex;

/* Fill a part of the side's data with a pattern, and check the pattern. */
void fill(Side *side, size_t offset, size_t length, unsigned seed);
bool filled(Side *side, size_t offset, size_t length, unsigned seed);

#endif
