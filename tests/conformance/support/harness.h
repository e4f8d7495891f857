/* SPDX-License-Identifier: BSD-3-Clause
 * The harness of the conformance programs: named cases, checks, and helper processes that run calls for a case.
 *
 * Each case runs in a process of its own, under a guard of 20 seconds (a minute with a sanitizer; times
 * CONFORMANCE_PATIENCE, where the environment has it); a crash or a hang is one failed case. A failed check ends its
 * case at once, in whichever of its processes it happens. Usage: PROGRAM [--list | CASE...]
 *
 * Every suite has a conformance.h of its own, which adds the header under test and the names of its return codes.
 */
#ifndef HARNESS_H
#define HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* A sanitizer slows everything down, takes malloc for itself, and wants file descriptors of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

/* How many times longer to wait for what is to come: CONFORMANCE_PATIENCE, which slow machines have, or 1. */
unsigned patience(void);

/* Milliseconds, for waits that an event ends, for those who give up once others have seen what they ask for, and for
 * waits that nothing ends. No test depends on their exact length. */
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

/* Defines a case and enters it into the program's table. */
#define TEST(case_name)                                                   \
    static void run_##case_name(void);                                    \
    __attribute__((constructor)) static void register_##case_name(void) { \
        static TestCase self = {#case_name, run_##case_name, NULL};       \
        register_case(&self);                                             \
    }                                                                     \
    static void run_##case_name(void)

/* Report why the case fails, or is not run, and end it. */
void fail(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));
void skip(const char *why) __attribute__((noreturn));

void check_equal(const char *file, int line, const char *what, unsigned long long actual, unsigned long long expected);

#define CHECK(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, "not true: %s", #condition))
#define CHECK_EQ(actual, expected) \
    check_equal(__FILE__, __LINE__, #actual, (unsigned long long)(actual), (unsigned long long)(expected))

/* ---- Helper processes -------------------------------------------------------------------------------------------- */

/*
 * A peer is a process that runs functions for the case. It is forked from the case, so it must be started before the
 * case opens a device; a function has the same address in both, while everything else is its own.
 */
typedef struct Peer Peer;
typedef void (*PeerFunction)(void *argument);

Peer *peer_start(void);

/* Runs function(argument) in the peer; argument is copied there and back. begin_on_peer does not wait for the end. */
void on_peer(Peer *peer, PeerFunction function, void *argument, size_t size);
void begin_on_peer(Peer *peer, PeerFunction function, const void *argument, size_t size);
void finish_on_peer(Peer *peer, void *argument, size_t size);

/* Ends the peer as death would (SIGKILL), and waits until it is gone. */
void peer_kill(Peer *peer);

/* Stops and continues the peer: it is there but does nothing. */
void peer_stop(Peer *peer);
void peer_continue(Peer *peer);

#endif
