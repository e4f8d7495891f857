/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures TCP with TCP_NODELAY, without any library: what two hosts can achieve at best over sockets.
 *
 * usage: tcp_perf PORT                             the server; prints "listening" and serves clients in turn
 *        tcp_perf ADDRESS PORT TEST SIZE COUNT     a client; prints one number
 *
 *     latency      nanoseconds one way, by ping-pong; both ends poll their sockets
 *     bandwidth    bytes per second of a stream; the receiver sleeps in recv() as long as nothing arrives
 *     rate         messages per second of a stream, each sent by a call of its own
 *     connect      connections per second, with an echo of a message on each
 *
 * A connection starts with a request, which the server sends back.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { max_size = 1 << 20, chunk = 1 << 16, warmup_divisor = 10 };

enum Test { echo, sink };

struct Request {
    uint32_t test;
    uint32_t size;
    uint64_t count;
};

static unsigned char buffer[max_size];

static void fail(const char* what) {
    perror(what);
    exit(1);
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void send_all(int fd, const void* data, size_t size) {
    const unsigned char* next = data;
    while (size > 0) {
        const ssize_t sent = send(fd, next, size, MSG_NOSIGNAL);
        if (sent < 0) fail("send");
        next += sent;
        size -= (size_t)sent;
    }
}

/* With MSG_DONTWAIT it polls. False: the peer has closed the connection. */
static bool receive_all(int fd, void* data, size_t size, int flags) {
    unsigned char* next = data;
    while (size > 0) {
        const ssize_t received = recv(fd, next, size, flags);
        if (received == 0) return false;
        if (received < 0 && errno == EAGAIN) continue;
        if (received < 0) fail("recv");
        next += received;
        size -= (size_t)received;
    }
    return true;
}

static void set_no_delay(int fd) {
    const int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
}

/* ---- The server ------------------------------------------------------------------------------------------------- */

static void discard(int fd, uint64_t bytes) {
    while (bytes > 0) {
        const ssize_t received = recv(fd, buffer, bytes < chunk ? bytes : chunk, 0);
        if (received <= 0) fail("recv");
        bytes -= (uint64_t)received;
    }
}

static void serve(int fd) {
    struct Request request;
    if (!receive_all(fd, &request, sizeof request, 0) || request.size > max_size) return;
    send_all(fd, &request, sizeof request);
    if (request.test == sink) {
        discard(fd, request.size * request.count);
        send_all(fd, &request, sizeof request);
        return;
    }
    for (uint64_t i = 0; i < request.count; ++i) {
        if (!receive_all(fd, buffer, request.size, MSG_DONTWAIT)) return;
        send_all(fd, buffer, request.size);
    }
}

static void run_server(uint16_t port) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, SOMAXCONN) != 0)
        fail("listen");
    puts("listening");
    fflush(stdout);
    for (;;) {
        const int fd = accept(listener, NULL, NULL);
        if (fd < 0) fail("accept");
        set_no_delay(fd);
        serve(fd);
        close(fd);
    }
}

/* ---- The client ------------------------------------------------------------------------------------------------- */

static int open_connection(const struct sockaddr_in* address, enum Test test, size_t size, uint64_t count) {
    struct Request request = {test, (uint32_t)size, count};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr*)address, sizeof *address) != 0) fail("connect");
    set_no_delay(fd);
    send_all(fd, &request, sizeof request);
    if (!receive_all(fd, &request, sizeof request, 0)) fail("the server closed the connection");
    return fd;
}

/* One way. */
static double latency_ns(const struct sockaddr_in* address, size_t size, uint64_t count) {
    const uint64_t warmup = count / warmup_divisor;
    const int fd = open_connection(address, echo, size, warmup + count);
    double start = 0;
    for (uint64_t i = 0; i < warmup + count; ++i) {
        if (i == warmup) start = seconds_now();
        send_all(fd, buffer, size);
        if (!receive_all(fd, buffer, size, MSG_DONTWAIT)) fail("the server closed the connection");
    }
    return (seconds_now() - start) / (double)count / 2 * 1e9;
}

static double messages_per_second(const struct sockaddr_in* address, size_t size, uint64_t count) {
    const uint64_t warmup = count / warmup_divisor;
    const int fd = open_connection(address, sink, size, warmup + count);
    struct Request answer;
    double start = 0;
    for (uint64_t i = 0; i < warmup + count; ++i) {
        if (i == warmup) start = seconds_now();
        send_all(fd, buffer, size);
    }
    if (!receive_all(fd, &answer, sizeof answer, 0)) fail("the server closed the connection");
    return (double)count / (seconds_now() - start);
}

static double connections_per_second(const struct sockaddr_in* address, uint64_t count) {
    const double start = seconds_now();
    for (uint64_t i = 0; i < count; ++i) close(open_connection(address, echo, 0, 0));
    return (double)count / (seconds_now() - start);
}

static double measure(const char* test, const struct sockaddr_in* address, size_t size, uint64_t count) {
    if (strcmp(test, "latency") == 0) return latency_ns(address, size, count);
    if (strcmp(test, "bandwidth") == 0) return messages_per_second(address, size, count) * (double)size;
    if (strcmp(test, "rate") == 0) return messages_per_second(address, size, count);
    if (strcmp(test, "connect") == 0) return connections_per_second(address, count);
    errno = EINVAL;
    fail(test);
    return 0;
}

int main(int argc, char** argv) {
    if (argc == 2) run_server((uint16_t)atoi(argv[1]));
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (argc != 6 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) {
        fprintf(stderr, "usage: tcp_perf PORT | tcp_perf ADDRESS PORT TEST SIZE COUNT\n");
        return 2;
    }
    address.sin_port = htons((uint16_t)atoi(argv[2]));
    const size_t size = strtoull(argv[4], NULL, 10);
    if (size > max_size) return 2;
    printf("%.1f\n", measure(argv[3], &address, size, strtoull(argv[5], NULL, 10)));
    return 0;
}
