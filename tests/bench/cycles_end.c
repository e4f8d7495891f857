/* SPDX-License-Identifier: BSD-3-Clause */
/* VIPL, DAT and librpma for cycles.c: compiled for each of them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "end.h"
#include "tests/bench/cycles.h"

enum { first_port = 22000, ports = 40000, timeout_ms = 30000 };
static const size_t outgoing = offsetof(struct Memory, outgoing), incoming = offsetof(struct Memory, incoming);

static End ends[end_count];

static void receive_ahead(int end) {
    for (int i = 0; i < receives_ahead; ++i) end_early_receive(&ends[end], incoming, max_size, 0);
}

/* Calls of VIPL that wait for the other end would wait forever in a single thread. */
#ifdef END_MEETS
static void connect_ends(const char* port) {
    for (int end = 0; end < end_count; ++end) {
        end_call(&ends[end], end_host(&ends[1 - end]), port);
        receive_ahead(end);
        end_meet(&ends[end]);
    }
}
#else
static void connect_ends(const char* port) {
    end_listen(&ends[1], end_host(&ends[1]), port);
    end_call(&ends[0], end_host(&ends[1]), port);
    for (int end = 0; end < end_count; ++end) {
        if (end == 1) end_take(&ends[end]);
        receive_ahead(end);
        end_connect(&ends[end], NULL, 0);
    }
}
#endif

void open_ends(char* const names[end_count]) {
    char port[8];
    Key key;
    for (int end = 0; end < end_count; ++end) {
        const Setup setup = {.at = names[end],
                             .memory = &memory[end],
                             .bytes = sizeof memory[end],
                             .for_peers = true,
                             .depth = queue_size,
                             .timeout_ms = timeout_ms};
        end_open(&ends[end], &setup);
        end_prepare(&ends[end]);
    }
    snprintf(port, sizeof port, "%d", first_port + (int)(getpid() % ports));
    connect_ends(port);
    for (int end = 0; end < end_count; ++end) {
        end_expect(end_event(&ends[end]), "established");
        end_describe(&ends[1 - end], &key);
        end_learn(&ends[end], &key);
    }
}

void close_ends(void) {
    end_expect(end_hang_up(&ends[0], true), "closed");
    end_hang_up(&ends[1], false);
    for (int end = 0; end < end_count; ++end) end_close(&ends[end]);
}

void post_receive(int end) { end_post_receive(&ends[end], incoming, max_size, 0); }
void post_send(int end, size_t size) { end_post_send(&ends[end], outgoing, size, 0); }
void post_write(int end, size_t size) { end_post_write(&ends[end], outgoing, incoming, size, 0); }
void post_read(int end, size_t size) { end_post_read(&ends[end], incoming, outgoing, size, 0); }

void poll_sends(int end) { sent[end] += end_poll_send(&ends[end]); }
void poll_receives(int end) { received[end] += end_poll_receive(&ends[end]); }
