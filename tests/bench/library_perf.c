/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures latency and bandwidth through one interface, with the library that the loader finds. The same program
 * measures the stock library and Viaduct's. rpma_perf and dat_perf consist of this file and a file for their
 * interface.
 *
 * usage: PROGRAM PORT LOCAL             the server, at an address (rpma_perf) or on an adapter (dat_perf) of this host
 *        PROGRAM PORT LOCAL SERVER      a client of the server at an address
 *
 * The server prints "listening" before it waits for the client. Then both get the same lines on standard input and
 * answer each line with the nanoseconds per iteration. The client's results are used.
 *
 *     send-latency SIZE ITERATIONS        one way, by ping-pong
 *     write-latency SIZE ITERATIONS       the same with RDMA writes into polled memory
 *     send-bandwidth SIZE ITERATIONS      per message of a stream; ITERATIONS is a multiple of `grant`
 *     write-bandwidth SIZE ITERATIONS     per RDMA write of a stream
 */
#include "tests/bench/library_perf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { is_receive = 1 };     /* the context of receives; other requests have 0 */
enum { outgoing, incoming }; /* the halves of the memory */

End self;
static _Alignas(4096) unsigned char memory[2][max_size];
static bool leads;              /* whether this is the client */
static uint64_t sent, received; /* completions that have not been waited for yet */

static unsigned char mark; /* the last byte of the next message sent by RDMA write */

void fail(const char* what, const char* why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

void count_completion(uint64_t context) {
    if (context == is_receive) {
        ++received;
        end_post_receive(&self, max_size, max_size, is_receive);
    } else {
        ++sent;
    }
}

static void await(uint64_t* completions, uint64_t count) {
    while (*completions < count) take_completions();
    *completions -= count;
}

/* ---- Connecting ------------------------------------------------------------------------------------------------- */

/* Posts a window of receives, each of the whole incoming memory. The private data describe it for the peer's writes. */
static void open_connection(const char* port, const char* local, const char* server) {
    const Setup setup = {.at = local,
                         .memory = memory,
                         .bytes = sizeof memory,
                         .for_peers = true,
                         .depth = queue_size,
                         .one_queue = true};
    Key key;
    end_open(&self, &setup);
    end_prepare(&self);
    end_describe(&self, &key);
    if (leads) {
        end_call(&self, server, port);
    } else {
        end_listen(&self, local, port);
        puts("listening");
        end_take(&self);
    }
    for (int i = 0; i < window; ++i) end_early_receive(&self, max_size, max_size, is_receive);
    end_connect(&self, &key, sizeof key);
    end_expect(end_event(&self), "established");
    end_learn(&self, memcpy(&key, self.peers.bytes, sizeof key));
}

static void close_connection(void) {
    end_expect(end_hang_up(&self, leads), "closed");
    end_close(&self);
}

/* ---- Work ------------------------------------------------------------------------------------------------------- */

/* Messages are at the end of the memory, so that the position of their last byte is fixed. */
static size_t offset(size_t size) { return max_size - size; }

static void send_one(size_t size) { end_post_send(&self, offset(size), size, 0); }
static void write_one(size_t size) { end_post_write(&self, offset(size), max_size + offset(size), size, 0); }

/* ---- Measurements ----------------------------------------------------------------------------------------------- */

static void send_latency(size_t size, uint64_t iterations) {
    for (uint64_t i = 0; i < iterations; ++i) {
        if (!leads) await(&received, 1);
        send_one(size);
        await(&sent, 1);
        if (leads) await(&received, 1);
    }
}

static void watch(void) {
    const volatile unsigned char* last = &memory[incoming][max_size - 1];
    while (*last != mark) continue;
}

static void write_latency(size_t size, uint64_t iterations) {
    for (uint64_t i = 0; i < iterations; ++i) {
        mark = (unsigned char)(mark + 1);
        if (!leads) watch();
        memory[outgoing][max_size - 1] = mark;
        write_one(size);
        await(&sent, 1);
        if (leads) watch();
    }
}

/* The receiver grants messages to the sender, so that each message finds a receive. */
static void send_bandwidth(size_t size, uint64_t iterations) {
    uint64_t posted = 0, granted = window;
    if (!leads) {
        for (; posted < iterations; posted += grant) {
            await(&received, grant);
            send_one(0);
            await(&sent, 1);
        }
        return;
    }
    while (posted < iterations || granted < iterations + window) {
        for (; posted < iterations && posted < granted; ++posted) send_one(size);
        await(&received, 1);
        granted += grant;
    }
    await(&sent, iterations);
}

static void write_bandwidth(size_t size, uint64_t iterations) {
    if (!leads) return;
    uint64_t posted = 0, completed = 0;
    while (completed < iterations) {
        for (; posted < iterations && posted - completed < window; ++posted) write_one(size);
        take_completions();
        completed += sent;
        sent = 0;
    }
}

static const struct {
    const char* name;
    void (*run)(size_t size, uint64_t iterations);
    double share; /* fraction of an iteration's time */
} tests[] = {{"send-latency", send_latency, 0.5},
             {"write-latency", write_latency, 0.5},
             {"send-bandwidth", send_bandwidth, 1},
             {"write-bandwidth", write_bandwidth, 1}};

static double now_ns(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int compare(const void* one, const void* other) {
    const double difference = *(const double*)one - *(const double*)other;
    return (difference > 0) - (difference < 0);
}

/* Returns the median of several laps, so that an interruption of one lap does not matter. */
static double measure(const char* name, size_t size, uint64_t iterations) {
    enum { laps = 5 };
    double times[laps];
    size_t test = 0;
    while (strcmp(tests[test].name, name) != 0)
        if (++test == sizeof tests / sizeof *tests) fail("no such test", name);
    for (int lap = 0; lap < laps; ++lap) {
        const double begin = now_ns();
        tests[test].run(size, iterations);
        times[lap] = now_ns() - begin;
    }
    qsort(times, laps, sizeof *times, compare);
    return tests[test].share * times[laps / 2] / (double)iterations;
}

int main(int argc, char** argv) {
    char test[32];
    size_t size = 0;
    uint64_t iterations = 0;
    if (argc < 3 || argc > 4) {
        fputs("usage: PORT LOCAL [SERVER]; library_perf.c tells more\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    leads = argc == 4;
    open_connection(argv[1], argv[2], argv[3]);
    while (scanf("%31s %zu %lu", test, &size, &iterations) == 3) {
        if (size == 0 || size > max_size) return 2;
        printf("%.1f\n", measure(test, size, iterations));
    }
    close_connection();
    return 0;
}
