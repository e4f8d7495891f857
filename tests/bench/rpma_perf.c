/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency and bandwidth by librpma, whichever one the loader finds: the stock library and Viaduct's are measured with
 * the same program.
 *
 * usage: rpma_perf PORT ADDRESS             the server, at an address of this host
 *        rpma_perf PORT ADDRESS SERVER      a client of it
 *
 * The server says "listening" before it waits for the client. Then both are given the same lines on their standard
 * input, and answer each with a line of nanoseconds for an iteration; those of the client count.
 *
 *     send-latency SIZE ITERATIONS        one way, by ping-pong
 *     write-latency SIZE ITERATIONS       the same with RDMA writes into watched memory
 *     send-bandwidth SIZE ITERATIONS      for a message of a stream; iterations are multiples of `grant`
 *     write-bandwidth SIZE ITERATIONS     for an RDMA write of a stream
 */
#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { max_size = 1 << 16, window = 32, grant = window / 2, queue_size = 2 * window, descriptor_size = 21 };

static struct {
    bool leads;
    struct rpma_peer* peer;
    struct rpma_ep* endpoint; /* of the server */
    struct rpma_conn* connection;
    struct rpma_cq* completions;
    struct rpma_mr_local *outgoing_memory, *incoming_memory;
    struct rpma_mr_remote* remote_memory;
    unsigned char mark;      /* what the next message by RDMA write ends with */
    uint64_t sent, received; /* completions that nobody has waited for yet */
} self;

static unsigned char outgoing[max_size], incoming[max_size];

static void fail(const char* what, const char* why) {
    fprintf(stderr, "rpma_perf: %s: %s\n", what, why);
    exit(1);
}

static void check(const char* call, int result) {
    if (result != 0) fail(call, rpma_err_2str(result));
}

/* ---- Connecting ------------------------------------------------------------------------------------------------- */

static void open_peer(const char* address) {
    struct ibv_context* context = NULL;
    check("rpma_utils_get_ibv_context", rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    check("rpma_peer_new", rpma_peer_new(context, &self.peer));
    check("rpma_mr_reg", rpma_mr_reg(self.peer, outgoing, max_size, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_WRITE_SRC,
                                     &self.outgoing_memory));
    check("rpma_mr_reg", rpma_mr_reg(self.peer, incoming, max_size, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_WRITE_DST,
                                     &self.incoming_memory));
}

static struct rpma_conn_req* request(const char* address, const char* port) {
    struct rpma_conn_cfg* configuration = NULL;
    struct rpma_conn_req* made = NULL;
    check("rpma_conn_cfg_new", rpma_conn_cfg_new(&configuration));
    check("rpma_conn_cfg_set_sq_size", rpma_conn_cfg_set_sq_size(configuration, queue_size));
    check("rpma_conn_cfg_set_rq_size", rpma_conn_cfg_set_rq_size(configuration, queue_size));
    check("rpma_conn_cfg_set_cq_size", rpma_conn_cfg_set_cq_size(configuration, 2 * queue_size));
    if (self.leads) {
        check("rpma_conn_req_new", rpma_conn_req_new(self.peer, address, port, configuration, &made));
    } else {
        check("rpma_ep_listen", rpma_ep_listen(self.peer, address, port, &self.endpoint));
        puts("listening");
        check("rpma_ep_next_conn_req", rpma_ep_next_conn_req(self.endpoint, configuration, &made));
    }
    check("rpma_conn_cfg_delete", rpma_conn_cfg_delete(&configuration));
    return made;
}

/* The memory for the peer's writes is told in the private data. */
static void open_connection(const char* address, const char* port) {
    struct rpma_conn_req* made = request(address, port);
    unsigned char descriptor[descriptor_size];
    struct rpma_conn_private_data data = {.ptr = descriptor, .len = descriptor_size};
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    for (int i = 0; i < window; ++i)
        check("rpma_conn_req_recv", rpma_conn_req_recv(made, self.incoming_memory, 0, max_size, self.incoming_memory));
    check("rpma_mr_get_descriptor", rpma_mr_get_descriptor(self.incoming_memory, descriptor));
    check("rpma_conn_req_connect", rpma_conn_req_connect(&made, &data, &self.connection));
    check("rpma_conn_next_event", rpma_conn_next_event(self.connection, &event));
    if (event != RPMA_CONN_ESTABLISHED) fail("connecting", rpma_utils_conn_event_2str(event));
    check("rpma_conn_get_private_data", rpma_conn_get_private_data(self.connection, &data));
    check("rpma_mr_remote_from_descriptor",
          rpma_mr_remote_from_descriptor(data.ptr, descriptor_size, &self.remote_memory));
    check("rpma_conn_get_cq", rpma_conn_get_cq(self.connection, &self.completions));
}

static void close_connection(void) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    if (self.leads) check("rpma_conn_disconnect", rpma_conn_disconnect(self.connection));
    check("rpma_conn_next_event", rpma_conn_next_event(self.connection, &event));
    if (!self.leads) check("rpma_conn_disconnect", rpma_conn_disconnect(self.connection));
    check("rpma_mr_remote_delete", rpma_mr_remote_delete(&self.remote_memory));
    check("rpma_conn_delete", rpma_conn_delete(&self.connection));
    check("rpma_ep_shutdown", rpma_ep_shutdown(&self.endpoint));
    check("rpma_mr_dereg", rpma_mr_dereg(&self.outgoing_memory));
    check("rpma_mr_dereg", rpma_mr_dereg(&self.incoming_memory));
    check("rpma_peer_delete", rpma_peer_delete(&self.peer));
}

/* ---- Operations ------------------------------------------------------------------------------------------------- */

/* Messages lie at the end of the memory, so that their last byte is always at the same place. */
static size_t offset(size_t size) { return max_size - size; }

static void send_one(size_t size) {
    check("rpma_send",
          rpma_send(self.connection, self.outgoing_memory, offset(size), size, RPMA_F_COMPLETION_ALWAYS, NULL));
}

static void write_one(size_t size) {
    check("rpma_write", rpma_write(self.connection, self.remote_memory, offset(size), self.outgoing_memory,
                                   offset(size), size, RPMA_F_COMPLETION_ALWAYS, NULL));
}

/* Receives have their place taken by a new one at once. */
static void take_completions(void) {
    struct ibv_wc taken[window];
    int count = 0;
    const int result = rpma_cq_get_wc(self.completions, window, taken, &count);
    if (result == RPMA_E_NO_COMPLETION) return;
    check("rpma_cq_get_wc", result);
    for (int i = 0; i < count; ++i) {
        if (taken[i].status != IBV_WC_SUCCESS) fail("rpma_cq_get_wc", "a failed completion");
        if (taken[i].opcode == IBV_WC_RECV) {
            ++self.received;
            check("rpma_recv", rpma_recv(self.connection, self.incoming_memory, 0, max_size, self.incoming_memory));
        } else {
            ++self.sent;
        }
    }
}

static void await(uint64_t* completions, uint64_t count) {
    while (*completions < count) take_completions();
    *completions -= count;
}

/* ---- Measurements ----------------------------------------------------------------------------------------------- */

static void send_latency(size_t size, uint64_t iterations) {
    for (uint64_t i = 0; i < iterations; ++i) {
        if (!self.leads) await(&self.received, 1);
        send_one(size);
        await(&self.sent, 1);
        if (self.leads) await(&self.received, 1);
    }
}

static void watch(void) {
    const volatile unsigned char* last = incoming + max_size - 1;
    while (*last != self.mark) continue;
}

static void write_latency(size_t size, uint64_t iterations) {
    for (uint64_t i = 0; i < iterations; ++i) {
        self.mark = (unsigned char)(self.mark + 1);
        if (!self.leads) watch();
        outgoing[max_size - 1] = self.mark;
        write_one(size);
        await(&self.sent, 1);
        if (self.leads) watch();
    }
}

/* The receiver grants the sender further messages, so that each finds a receive. */
static void send_bandwidth(size_t size, uint64_t iterations) {
    uint64_t posted = 0, granted = window;
    if (!self.leads) {
        for (; posted < iterations; posted += grant) {
            await(&self.received, grant);
            send_one(0);
            await(&self.sent, 1);
        }
        return;
    }
    while (posted < iterations || granted < iterations + window) {
        for (; posted < iterations && posted < granted; ++posted) send_one(size);
        await(&self.received, 1);
        granted += grant;
    }
    await(&self.sent, iterations);
}

static void write_bandwidth(size_t size, uint64_t iterations) {
    if (!self.leads) return;
    uint64_t posted = 0, completed = 0;
    while (completed < iterations) {
        for (; posted < iterations && posted - completed < window; ++posted) write_one(size);
        take_completions();
        completed += self.sent;
        self.sent = 0;
    }
}

static const struct {
    const char* name;
    void (*run)(size_t size, uint64_t iterations);
    double share; /* of the time of an iteration */
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

/* The median of some laps, so that an interruption of one of them does no harm. */
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
        fputs("usage: rpma_perf PORT ADDRESS [SERVER]\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    self.leads = argc == 4;
    open_peer(argv[2]);
    open_connection(argv[argc - 1], argv[1]);
    while (scanf("%31s %zu %lu", test, &size, &iterations) == 3) {
        if (size == 0 || size > max_size) return 2;
        printf("%.1f\n", measure(test, size, iterations));
    }
    close_connection();
    return 0;
}
