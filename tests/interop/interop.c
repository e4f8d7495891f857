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

enum { PATIENCE_S = 60 };

uint8_t* memory;
const char* role;

void check_eq(int line, const char* what, long long actual, long long expected) {
    if (actual == expected) return;
    fprintf(stderr, "%s: line %d: %s is %lld (0x%llx), not %lld\n", role, line, what, actual, actual, expected);
    exit(1);
}

void check_data(const void* data, size_t size, const char* text) {
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

/* ---- The operations of all APIs ---------------------------------------------------------------------------------- */

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
    read_from(end, SOURCE, TARGET + 77, 500000);
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
    hang_up(end);
    call(end);
    begin_send(end);
    hang_up_after_the_other(end);
}

static void run_server(End* end) {
    listen_at(end);
    puts("listening");
    fflush(stdout);
    reject(end);
    answer(end);
    follow(end, basic);
    follow(end, operations);
    hang_up_after_the_other(end);
    answer(end);
    end_send(end);
    hang_up(end);
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
    if (argc != 5) {
        fprintf(stderr, "usage: %s server|client ADDRESS PORT DIRECTORY\n", argv[0]);
        return 2;
    }
    role = argv[1];
    alarm(PATIENCE_S);
    check_library(argv[4]);
    memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    End* end = open_end(argv[2], argv[3]);
    if (strcmp(role, "server") == 0)
        run_server(end);
    else
        run_client(end);
    close_end(end);
    return 0;
}
