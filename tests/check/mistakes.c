/* SPDX-License-Identifier: BSD-3-Clause
 * Programs with one mistake each, which the checker has to find: with the helpers of the examples, for each API.
 * The server answers each message with the description of its memory, until one has a single byte.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end.h"

static struct End end;

#include "posts.h"

enum { MEMORY = 1 << 16, PAGE = 4096 };
static char memory[MEMORY];

/* ---- The server -------------------------------------------------------------------------------------------------- */

static void server(const char* address, const char* port, const char* mistake) {
    const int is_late = strcmp(mistake, "late") == 0;
    open_device(address, SERVER);
    register_memory(&end);
    register_shared(memory, sizeof memory, READ_AND_WRITE | PERSISTENT | VISIBLE);
    accept_client(&end, address, port);
    while (wait_receive(&end) != 1) {
        if (is_late) nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        memcpy(end.out, &ours, sizeof ours);
        post_receive(&end);
        if (is_late) continue;
        send_message(&end, sizeof ours);
    }
    wait_disconnect(&end);
    disconnect(&end);
    close_device();
}

/* ---- The client -------------------------------------------------------------------------------------------------- */

static void ask(void) { send_message(&end, 2); }

/* A correct exchange, of a message, a write and a read. */
static void none(void) {
    memset(end.out, 'x', 64);
    rdma_write(&end, 0, 64);
    rdma_read(&end, 0, 64);
    post_receive(&end);
    ask();
    wait_receive(&end);
}

/* A child has requests that are its parent's, whatever it frees. */
static void forks(void) {
    post_receive(&end);
    const pid_t child = fork();
    if (child == 0) {
        free(malloc(MEMORY));
        exit(0);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) stop("the child has failed");
    ask();
    wait_receive(&end);
}

static void change_data(void) {
    post_receive(&end);
    post(&end, SEND, 0, 0, 64);
    end.out[5] = 'y';
    take(&end);
    wait_receive(&end);
}

static void change_buffer(void) {
    post_receive(&end);
    end.in[0] = 'y';
    ask();
    wait_receive(&end);
}

/* What was read is sent before the read has completed. */
static void reads(void) {
    post_receive(&end);
    post(&end, READ, 0, 0, 64);
    post(&end, SEND, 0, 0, 64);
    take(&end);
    take(&end);
    wait_receive(&end);
}

static void deregistered(void) {
    struct Other other;
    register_other(&other, memory, 128);
    post_receive_other(&end, &other, memory, 128);
    deregister_other(&other);
}

static void freed(void) {
    struct Other other;
    char* const buffer = malloc(MEMORY);
    register_other(&other, buffer, MEMORY);
    post_receive_other(&end, &other, buffer, MEMORY);
    free(buffer);
    send_message(&end, 1);
    disconnect(&end);
    _exit(0); /* the memory can no longer be deregistered */
}

/* The write may overtake the read. */
static void order(void) {
    post(&end, READ, 0, 0, 64);
    post(&end, WRITE, 1024, 32, 64);
    take(&end);
    take(&end);
}

static void completions(void) {
    for (int i = 0; i < 8; ++i) {
        post_receive(&end);
        post(&end, SEND, 0, 0, 2);
        wait_receive(&end); /* so that sends complete */
    }
    take(&end);
}

static void objects(void) {
    struct Other other;
    register_other(&other, memory, 128);
    send_message(&end, 1);
    disconnect(&end);
    exit(0);
}

/* Two messages, of which the second one comes before its receive. */
static void late(void) {
    post(&end, SEND, 0, 0, 2);
    post(&end, SEND, 0, 0, 2);
    take(&end);
    take(&end);
}

static void pages(void) {
    static _Alignas(PAGE) char buffer[4 * PAGE];
    struct Other other;
    register_other(&other, buffer, sizeof buffer);
    post_receive_other(&end, &other, buffer, sizeof buffer);
    if (buffer[PAGE + 7] != 0) stop("the buffer is not empty");
    ask();
    wait_receive(&end);
    deregister_other(&other);
}

static const struct {
    const char* name;
    void (*run)(void);
} mistakes[] = {{"none", none},
                {"forks", forks},
                {"sends", change_data},
                {"receives", change_buffer},
                {"reads", reads},
                {"deregistered", deregistered},
                {"freed", freed},
                {"order", order},
                {"completions", completions},
                {"objects", objects},
                {"late", late},
                {"pages", pages},
                MISTAKES_OF_API};

static void client(const char* address, const char* port, const char* mistake) {
    size_t i = 0;
    while (strcmp(mistakes[i].name, mistake) != 0)
        if (++i == sizeof mistakes / sizeof *mistakes) stop("no such mistake");
    open_device(address, CLIENT);
    register_memory(&end);
    connect_to(&end, address, port);
    if (strcmp(mistake, "late") != 0) {
        post_receive(&end);
        ask();
        learn_key(&end, wait_receive(&end));
    }
    mistakes[i].run();
    send_message(&end, 1);
    disconnect(&end);
    close_device();
}

int main(int argc, char** argv) { return run(argc, argv, "mistakes", "MISTAKE", server, client); }
