/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a connection; the other end may use a different library:
 *   PROGRAM server|client ADDRESS PORT DIRECTORY
 * The library must have been loaded from DIRECTORY. The server listens on PORT, announces that on standard output, and
 * serves one client, which connects to ADDRESS.
 */
#include "interop.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATIENCE_S = 60, QUEUE_LENGTH = 16 };

uint8_t* memory;
const char* role;

void check_eq(int line, const char* what, long long actual, long long expected) {
    if (actual == expected) return;
    fprintf(stderr, "%s: line %d: %s is %lld (0x%llx), not %lld\n", role, line, what, actual, actual, expected);
    exit(1);
}

void fail(const char* call, const char* why) {
    fprintf(stderr, "%s: %s: %s\n", role, call, why);
    exit(1);
}

/* Checks private data for the text, which connection managers pad with zeros. */
static void check_data(const void* data, size_t size, const char* text) {
    size_t length = strlen(text);
    CHECK(size >= length && memcmp(data, text, length) == 0);
    for (size_t i = length; i < size; ++i) CHECK_EQ(((const uint8_t*)data)[i], 0);
}

uint8_t pattern(size_t seed, size_t i) { return (uint8_t)(seed * 37 + i * 7 + i / 253 + 1); }

void fill(size_t at, size_t length, unsigned seed) {
    for (size_t i = 0; i < length; ++i) memory[at + i] = pattern(seed, i);
}

void check_and_clear(size_t at, size_t length, unsigned seed) {
    enum { MARGIN = 64 };
    size_t before = at >= TARGET + MARGIN ? MARGIN : 0;
    for (size_t i = 0; i < length; ++i) CHECK_EQ(memory[at + i], pattern(seed, i));
    memset(memory + at, 0, length);
    for (size_t i = at - before; i < at + length + MARGIN && i < MEMORY_BYTES; ++i) CHECK_EQ(memory[i], 0);
}

/* ---- Connecting and disconnecting -------------------------------------------------------------------------------- */

static const char *address, *port;
static Introduction own;

static void open_end(End* end) {
    const bool is_server = strcmp(role, "server") == 0;
    const Setup setup = {.at = END_OPENS_ADDRESSES ? address : "adapter",
                         .at_peer = !is_server,
                         .memory = memory,
                         .bytes = MEMORY_BYTES,
                         .for_peers = true,
                         .rights = rights,
                         .depth = QUEUE_LENGTH,
                         .timeout_ms = 1000 * PATIENCE_S};
    end_open(end, &setup);
    snprintf(own.greeting, sizeof own.greeting, "I am the %s", role);
    prepare(end, &own);
    end_describe(end, &own.key);
}

static void call_in_vain(End* end) {
    const char plea[] = "reject me";
    end_prepare(end);
    end_call(end, address, port);
    end_connect(end, plea, strlen(plea));
    end_expect(end_event(end), "rejected");
    check_data(end->peers.bytes, end->peers.size, refusal);
    end_part(end);
}

static void refuse(End* end) {
    end_take(end);
    check_data(end->peers.bytes, end->peers.size, "reject me");
    reject(end);
}

static void start(End* end, const char* greeting) {
    Introduction other;
    end_prepare(end);
    for (uint64_t slot = 0; slot < RECEIVES; ++slot) end_early_receive(end, inbox(slot), MESSAGE_BYTES, slot);
    end_connect(end, &own, sizeof own);
    end_expect(end_event(end), "established");
    CHECK(end->peers.size >= sizeof other);
    memcpy(&other, end->peers.bytes, sizeof other);
    CHECK_EQ(strcmp(other.greeting, greeting), 0);
    end_learn(end, &other.key);
    meet(end, &other);
}

static void call(End* end) {
    end_call(end, address, port);
    start(end, "I am the server");
}

static void answer(End* end) {
    end_take(end);
    start(end, "I am the client");
}

static void hang_up(End* end, bool first) {
    end_expect(end_hang_up(end, first), "closed");
    part(end);
    end_part(end);
    memset(memory, 0, MEMORY_BYTES);
}

/* ---- The operations of all APIs ---------------------------------------------------------------------------------- */

void await_request(End* end, Kind kind, size_t length) {
    Done done;
    end_await_send(end, &done);
    CHECK(done.succeeded);
    CHECK_EQ(done.context, CONTEXT);
    check_request(end, kind, length);
}

void send_pattern(End* end, size_t length, unsigned seed) {
    fill(OUTBOX, length, seed);
    end_post_send(end, OUTBOX, length, CONTEXT);
    await_request(end, SEND, length);
}

Done await_receive(End* end) {
    Done done;
    end_await_receive(end, &done);
    CHECK(done.succeeded);
    CHECK(done.context < RECEIVES);
    return done;
}

void post_inbox(End* end, uint64_t slot) { end_post_receive(end, inbox(slot), MESSAGE_BYTES, slot); }

void receive_pattern(End* end, size_t length, unsigned seed) {
    const Done done = await_receive(end);
    check_message(end);
    CHECK_EQ(done.length, length);
    check_and_clear(inbox(done.context), length, seed);
    post_inbox(end, done.context);
}

enum { WORD_BYTES = 4, WORD_SEED = 99 };
void say_done(End* end) { send_pattern(end, WORD_BYTES, WORD_SEED); }
void hear_done(End* end) { receive_pattern(end, WORD_BYTES, WORD_SEED); }

static const size_t sizes[] = {1, 8, 64, 1000, 4096, MESSAGE_BYTES};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void begin_send(End* end) {
    for (unsigned i = 0; i < SIZES; ++i) {
        send_pattern(end, sizes[i], i);
        hear_done(end);
    }
}

static void end_send(End* end) {
    for (unsigned i = 0; i < SIZES; ++i) {
        receive_pattern(end, sizes[i], i);
        say_done(end);
    }
}

static const size_t places[][2] = {{0, 1}, {4096 + 3, 1000}, {65536, 500000}}; /* offset in the target, and length */
enum { PLACES = sizeof places / sizeof places[0] };

static void begin_write(End* end) {
    for (unsigned i = 0; i < PLACES; ++i) {
        write_pattern(end, TARGET + places[i][0], places[i][1], i);
        say_done(end);
        hear_done(end);
    }
}

static void end_write(End* end) {
    for (unsigned i = 0; i < PLACES; ++i) {
        hear_done(end);
        check_and_clear(TARGET + places[i][0], places[i][1], i);
        say_done(end);
    }
}

static void begin_read(End* end) {
    hear_done(end);
    end_post_read(end, TARGET + 77, SOURCE, 500000, CONTEXT);
    await_request(end, READ, 500000);
    check_and_clear(TARGET + 77, 500000, 30);
    say_done(end);
}

static void end_read(End* end) {
    fill(SOURCE, 500000, 30);
    say_done(end);
    hear_done(end);
}

static const Operation basic[] = {{"send", begin_send, end_send},
                                  {"write", begin_write, end_write},
                                  {"read", begin_read, end_read},
                                  {NULL, NULL, NULL}};

/* ---- The roles --------------------------------------------------------------------------------------------------- */

static void lead(End* end, const Operation* list) {
    for (; list->name != NULL; ++list) {
        list->begin(end);
        list->end(end);
        printf("%s: both ways\n", list->name);
    }
}

static void follow(End* end, const Operation* list) {
    for (; list->name != NULL; ++list) {
        list->end(end);
        list->begin(end);
    }
}

static void run_client(End* end) {
    call_in_vain(end);
    call(end);
    lead(end, basic);
    lead(end, operations);
    hang_up(end, true);
    call(end);
    begin_send(end);
    hang_up(end, false);
}

static void run_server(End* end) {
    end_listen(end, address, port);
    puts("listening");
    fflush(stdout);
    refuse(end);
    answer(end);
    follow(end, basic);
    follow(end, operations);
    hang_up(end, false);
    answer(end);
    end_send(end);
    hang_up(end, true);
}

/* Checks that the loaded library is in the directory. */
static void check_library(const char* directory) {
    void* loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    CHECK(loaded != NULL);
    struct link_map* entry = NULL;
    OK(dlinfo(loaded, RTLD_DI_LINKMAP, &entry));
    char *found = realpath(entry->l_name, NULL), *wanted = realpath(directory, NULL);
    CHECK(found != NULL && wanted != NULL);
    printf("%s: %s\n", role, found);
    *strrchr(found, '/') = '\0';
    OK(strcmp(found, wanted));
    free(found);
    free(wanted);
    dlclose(loaded);
}

int main(int argc, char** argv) {
    static End end;
    if (argc != 5) {
        fprintf(stderr, "usage: %s server|client ADDRESS PORT DIRECTORY\n", argv[0]);
        return 2;
    }
    role = argv[1];
    alarm(PATIENCE_S);
    check_library(argv[4]);
    memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    address = argv[2];
    port = argv[3];
    open_end(&end);
    if (strcmp(role, "server") == 0)
        run_server(&end);
    else
        run_client(&end);
    end_close(&end);
    return 0;
}
