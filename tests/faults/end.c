/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a connection, compiled for each API. It reads commands from standard input and answers each with a line:
 * "ok" or another result, or an error.
 *
 * usage: NAME HOST [SERVER]      HOST is the number of this host; SERVER, for clients, that of the server's host
 */
#define END_WATCHES
#include "end.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { memory_size = 4096, message_size = 8, connect_timeout_ms = 5000, queue_length = 8 };
static const char port[] = "7400";

static End end;
static char memory[memory_size];
static int own_host, server_host; /* server_host is 0: this end is the server */
static int sends, receives;       /* that are not completed */

/* The first failure during a command, which becomes its answer. */
static const char* problem;

void fail(const char* call, const char* why) {
    (void)call;
    if (problem == NULL) problem = why;
}

static const char* answer(const char* text) {
    const char* const said = problem != NULL ? problem : text;
    problem = NULL;
    return said;
}

static const char* address_of(int host) {
    static char text[16];
    snprintf(text, sizeof text, "10.0.0.%d", host);
    return text;
}

static const char* open_all(void) {
    char adapter[32];
    snprintf(adapter, sizeof adapter, "viaduct-veth%d", own_host);
    const Setup setup = {.at = END_OPENS_ADDRESSES ? address_of(own_host) : adapter,
                         .memory = memory,
                         .bytes = sizeof memory,
                         .depth = queue_length,
                         .timeout_ms = connect_timeout_ms};
    if (end_open(&end, &setup) && end_prepare(&end) && server_host == 0) end_listen(&end, address_of(own_host), port);
    return answer("ok");
}

static const char* take_request(void) {
    end_take(&end);
    return answer("ok");
}

static const char* next_event(void) { return answer(end_event(&end)); }

static const char* connect_ends(void) {
    const bool ready = server_host == 0 || end_call(&end, address_of(server_host), port);
    return ready && end_connect(&end, NULL, 0) ? next_event() : answer(NULL);
}

static const char* post_receive(void) {
    if (end_post_receive(&end, 0, sizeof memory, 0)) ++receives;
    return answer("ok");
}

static const char* post_send(void) {
    if (end_post_send(&end, 0, message_size, 0)) ++sends;
    return answer("ok");
}

/* Waits until all work has completed, and tells whether any of it has arrived. */
static const char* finish(void) {
    Done done = {0};
    bool sent = false, received = false;
    for (; sends > 0 && end_await_send(&end, &done); --sends) sent = sent || done.succeeded;
    if (receives > 0 && !END_CONFIRMS_SENDS) sent = false;
    for (; receives > 0 && end_await_receive(&end, &done); --receives) received = received || done.succeeded;
    return answer(sent || received ? "done" : "failed");
}

static const char* hang_up(void) { return answer(end_hang_up(&end, true)); }

static const char* close_all(void) {
    end_close(&end);
    sends = receives = 0;
    return answer("ok");
}

static const struct {
    const char* name;
    const char* (*run)(void);
} commands[] = {{"open", open_all},        {"take", take_request}, {"connect", connect_ends},
                {"receive", post_receive}, {"send", post_send},    {"event", next_event},
                {"finish", finish},        {"hang_up", hang_up},   {"close", close_all}};

static int count_descriptors(void) {
    int count = -3; /* excludes "." and "..", and the descriptor used for listing */
    DIR* directory = opendir("/proc/self/fd");
    if (directory == NULL) return -1;
    while (readdir(directory) != NULL) ++count;
    closedir(directory);
    return count;
}

static bool obey(const char* name) {
    if (strcmp(name, "descriptors") == 0) return printf("%d\n", count_descriptors()) > 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i)
        if (strcmp(commands[i].name, name) == 0) return puts(commands[i].run()) != EOF;
    fprintf(stderr, "no command '%s'\n", name);
    return false;
}

int main(int argc, char** argv) {
    char name[32];
    if (argc < 2) return 2;
    own_host = atoi(argv[1]);
    server_host = argc > 2 ? atoi(argv[2]) : 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (scanf("%31s", name) == 1)
        if (!obey(name)) return 2;
    return 0;
}
