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
 *     tls-latency, tls-bandwidth
 *                  the same through TLS 1.3 by OpenSSL (AES-128-GCM, pre-shared key); both ends poll
 *
 * A connection starts with a request, which the server sends back, in the clear.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
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

/* With TLS, or without. */
struct Stream {
    int fd;
    SSL* tls;
};

struct Request {
    uint16_t test;
    uint16_t with_tls;
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

static void send_all(struct Stream to, const void* data, size_t size) {
    const unsigned char* next = data;
    while (size > 0) {
        const ssize_t sent =
            to.tls != NULL ? SSL_write(to.tls, next, (int)size) : send(to.fd, next, size, MSG_NOSIGNAL);
        if (sent <= 0 && to.tls != NULL && SSL_get_error(to.tls, (int)sent) == SSL_ERROR_WANT_WRITE) continue;
        if (sent <= 0) fail("send");
        next += sent;
        size -= (size_t)sent;
    }
}

/* With MSG_DONTWAIT and with TLS it polls. 0: the peer has closed the connection. */
static size_t receive_some(struct Stream from, void* data, size_t size, int flags) {
    for (;;) {
        const ssize_t received =
            from.tls != NULL ? SSL_read(from.tls, data, (int)size) : recv(from.fd, data, size, flags);
        if (received >= 0 && from.tls == NULL) return (size_t)received;
        if (received > 0) return (size_t)received;
        if (from.tls == NULL && errno != EAGAIN) fail("recv");
        if (from.tls != NULL && SSL_get_error(from.tls, (int)received) != SSL_ERROR_WANT_READ) return 0;
    }
}

/* False: the peer has closed the connection. */
static bool receive_all(struct Stream from, void* data, size_t size, int flags) {
    for (unsigned char* next = data; size > 0;) {
        const size_t received = receive_some(from, next, size, flags);
        if (received == 0) return false;
        next += received;
        size -= received;
    }
    return true;
}

static unsigned give_key(unsigned char* key) {
    enum { size = 32 };
    memset(key, 1, size);
    return size;
}

static unsigned key_of_client(SSL* tls, const char* hint, char* identity, unsigned most, unsigned char* key,
                              unsigned room) {
    (void)tls, (void)hint, (void)room;
    snprintf(identity, most, "tcp_perf");
    return give_key(key);
}

static unsigned key_of_server(SSL* tls, const char* identity, unsigned char* key, unsigned room) {
    (void)tls, (void)identity, (void)room;
    return give_key(key);
}

/* Both ends continue in TLS. */
static struct Stream secured(struct Stream plain, bool server) {
    SSL_CTX* const context = SSL_CTX_new(TLS_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_psk_client_callback(context, key_of_client);
    SSL_CTX_set_psk_server_callback(context, key_of_server);
    plain.tls = SSL_new(context);
    SSL_CTX_free(context);
    SSL_set_fd(plain.tls, plain.fd);
    if ((server ? SSL_accept(plain.tls) : SSL_connect(plain.tls)) != 1) fail("the handshake");
    SSL_set_mode(plain.tls, SSL_MODE_ENABLE_PARTIAL_WRITE);
    if (fcntl(plain.fd, F_SETFL, O_NONBLOCK) != 0) fail("fcntl");
    return plain;
}

static void close_stream(struct Stream stream) {
    SSL_free(stream.tls);
    close(stream.fd);
}

static void set_no_delay(int fd) {
    const int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
}

/* ---- The server ------------------------------------------------------------------------------------------------- */

static void discard(struct Stream client, uint64_t bytes) {
    while (bytes > 0) {
        const size_t received = receive_some(client, buffer, bytes < chunk ? bytes : chunk, 0);
        if (received == 0) fail("the client closed the connection");
        bytes -= received;
    }
}

static void serve(struct Stream client, struct Request request) {
    if (request.test == sink) {
        discard(client, request.size * request.count);
        send_all(client, &request, sizeof request);
        return;
    }
    for (uint64_t i = 0; i < request.count; ++i) {
        if (!receive_all(client, buffer, request.size, MSG_DONTWAIT)) return;
        send_all(client, buffer, request.size);
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
        struct Stream client = {accept(listener, NULL, NULL), NULL};
        struct Request request;
        if (client.fd < 0) fail("accept");
        set_no_delay(client.fd);
        if (receive_all(client, &request, sizeof request, 0) && request.size <= max_size) {
            send_all(client, &request, sizeof request);
            if (request.with_tls) client = secured(client, true);
            serve(client, request);
        }
        close_stream(client);
    }
}

/* ---- The client ------------------------------------------------------------------------------------------------- */

static struct Stream open_connection(const struct sockaddr_in* address, enum Test test, bool with_tls, size_t size,
                                     uint64_t count) {
    struct Request request = {test, with_tls, (uint32_t)size, count};
    const struct Stream server = {socket(AF_INET, SOCK_STREAM, 0), NULL};
    if (server.fd < 0 || connect(server.fd, (const struct sockaddr*)address, sizeof *address) != 0) fail("connect");
    set_no_delay(server.fd);
    send_all(server, &request, sizeof request);
    if (!receive_all(server, &request, sizeof request, 0)) fail("the server closed the connection");
    return with_tls ? secured(server, false) : server;
}

/* One way. */
static double latency_ns(const struct sockaddr_in* address, bool with_tls, size_t size, uint64_t count) {
    const uint64_t warmup = count / warmup_divisor;
    const struct Stream server = open_connection(address, echo, with_tls, size, warmup + count);
    double start = 0;
    for (uint64_t i = 0; i < warmup + count; ++i) {
        if (i == warmup) start = seconds_now();
        send_all(server, buffer, size);
        if (!receive_all(server, buffer, size, MSG_DONTWAIT)) fail("the server closed the connection");
    }
    return (seconds_now() - start) / (double)count / 2 * 1e9;
}

static double messages_per_second(const struct sockaddr_in* address, bool with_tls, size_t size, uint64_t count) {
    const uint64_t warmup = count / warmup_divisor;
    const struct Stream server = open_connection(address, sink, with_tls, size, warmup + count);
    struct Request answer;
    double start = 0;
    for (uint64_t i = 0; i < warmup + count; ++i) {
        if (i == warmup) start = seconds_now();
        send_all(server, buffer, size);
    }
    if (!receive_all(server, &answer, sizeof answer, 0)) fail("the server closed the connection");
    return (double)count / (seconds_now() - start);
}

static double connections_per_second(const struct sockaddr_in* address, uint64_t count) {
    const double start = seconds_now();
    for (uint64_t i = 0; i < count; ++i) close_stream(open_connection(address, echo, false, 0, 0));
    return (double)count / (seconds_now() - start);
}

static double measure(const char* test, const struct sockaddr_in* address, size_t size, uint64_t count) {
    const bool with_tls = strncmp(test, "tls-", 4) == 0;
    if (with_tls) test += 4;
    if (strcmp(test, "latency") == 0) return latency_ns(address, with_tls, size, count);
    if (strcmp(test, "bandwidth") == 0) return messages_per_second(address, with_tls, size, count) * (double)size;
    if (strcmp(test, "rate") == 0) return messages_per_second(address, with_tls, size, count);
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
