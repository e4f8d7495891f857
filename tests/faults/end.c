/* SPDX-License-Identifier: BSD-3-Clause */
#include "end.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int own_host;
int server_host;

static const struct {
    const char* name;
    const char* (*run)(void);
} commands[] = {{"open", open_all},  {"take", take_request}, {"connect", connect_ends}, {"receive", post_receive},
                {"send", post_send}, {"event", next_event},  {"finish", finish},        {"close", close_all}};

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
