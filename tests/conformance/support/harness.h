/* SPDX-License-Identifier: BSD-3-Clause
 * The harness of the conformance programs: named cases, checks, and helper processes that run calls for a case.
 *
 * Each case runs in its own process with a timeout of a minute, multiplied by CONFORMANCE_PATIENCE if that is set. A
 * crash or a hang fails only this case. A failed check in any of its processes ends the case immediately. If
 * CONFORMANCE_IGNORE_LEAKS is set, LeakSanitizer does not search for leaks. Usage:
 * PROGRAM [--list | CASE...]
 *
 * Every suite has its own conformance.h, which adds the header under test and the names of its return codes.
 */
#ifndef HARNESS_H
#define HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Sanitizers slow programs down, replace malloc, and need file descriptors. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

/* A factor for timeouts: CONFORMANCE_PATIENCE, which slow machines set, or 1. */
unsigned patience(void);

/* Milliseconds: for waits that end with an event, for requesters that give up after others have seen their request,
 * and for waits without an event. No test depends on the exact values. */
#define LONG_MS (15000UL * patience())
#define MEDIUM_MS (500UL * patience())
#define SHORT_MS 60UL

/* ---- Cases and checks -------------------------------------------------------------------------------------------- */

typedef struct TestCase {
    const char *name;
    void (*run)(void);
    struct TestCase *next;
} TestCase;

void register_case(TestCase *test_case);

/* Defines a case and adds it to the table of the program. */
#define TEST(case_name)                                                   \
    static void run_##case_name(void);                                    \
    __attribute__((constructor)) static void register_##case_name(void) { \
        static TestCase self = {#case_name, run_##case_name, NULL};       \
        register_case(&self);                                             \
    }                                                                     \
    static void run_##case_name(void)

/* End the case as failed or skipped, with a reason. */
void fail(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));
void skip(const char *why) __attribute__((noreturn));

/* Whether the transport under test lacks something that the loopback backend has. VIADUCT_TEST_LACKS lists it:
 * one_sided (RDMA to a process that is stopped), shared_services (one service of several processes). */
bool lacks(const char *what);

void check_equal(const char *file, int line, const char *what, unsigned long long actual, unsigned long long expected);

#define CHECK(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, "not true: %s", #condition))
#define CHECK_EQ(actual, expected) \
    check_equal(__FILE__, __LINE__, #actual, (unsigned long long)(actual), (unsigned long long)(expected))

/* Whether a thread of this process sleeps, and not only for a moment on its way. */
int thread_sleeps(pid_t thread);

/* ---- Helper processes -------------------------------------------------------------------------------------------- */

/*
 * A peer is a process that executes functions for the case. It is forked from the case and must be started before
 * the case opens a device. Functions have the same address in both processes; everything else is separate.
 */
typedef struct Peer Peer;
typedef void (*PeerFunction)(void *argument);

Peer *peer_start(void);

/* Runs function(argument) in the peer. The argument is copied to the peer and back. begin_on_peer does not wait for
   the end. */
void on_peer(Peer *peer, PeerFunction function, void *argument, size_t size);
void begin_on_peer(Peer *peer, PeerFunction function, const void *argument, size_t size);
void finish_on_peer(Peer *peer, void *argument, size_t size);

/* Kills the peer (SIGKILL) and waits until it is gone. */
void peer_kill(Peer *peer);

/* Stop and continue the peer: while stopped, it exists but does not run. */
void peer_stop(Peer *peer);
void peer_continue(Peer *peer);

#endif
