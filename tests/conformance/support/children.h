/* SPDX-License-Identifier: BSD-3-Clause
 * Forked children, for cases about what they inherit.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "harness.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Forks a child, which runs the function and ends by exit(3), like a program that knows nothing of its parent. */
static inline pid_t start_child(void (*run)(void)) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) return child;
    run();
    exit(0);
}

/* Waits until a child has ended. It must have succeeded. */
static inline void join_child(pid_t child) {
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

/* What a child may run: it lives until it is killed. */
static inline void idle(void) {
    for (;;) pause();
}

#endif
