/* SPDX-License-Identifier: BSD-3-Clause
 * A log that is appended remotely: the client writes a text to the end of the server's file with RDMA, and makes it
 * persistent before the new length. The server has one client at a time.
 */
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "end.h"

enum { LOG_SIZE = 1 << 20 };

static struct End end;

/* The file: the number of bytes of text, and the text. */
struct Log {
    uint64_t tail;
    char text[LOG_SIZE - sizeof(uint64_t)];
};

static struct Log* open_log(const char* path) {
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    struct Log* log = MAP_FAILED;
    if (file >= 0 && ftruncate(file, LOG_SIZE) == 0)
        log = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (log != MAP_FAILED) return log;
    perror(path);
    exit(1);
}

/* msync takes whole pages. */
static void make_persistent(struct Log* log, struct Commit part) {
    const uint64_t begin = part.offset / 4096 * 4096, end_of_part = part.offset + part.length;
    if (part.offset > LOG_SIZE || part.length > LOG_SIZE - part.offset) stop("the client asked for more than the log");
    if (msync((char*)log + begin, end_of_part - begin, MS_SYNC) == 0) return;
    perror("msync");
    exit(1);
}

static void server(const char* address, const char* port, const char* path) {
    struct Log* log = open_log(path);
    open_device(address, SERVER);
    register_memory(&end);
    register_shared(log, LOG_SIZE, READ_AND_WRITE | PERSISTENT);
    accept_client(&end, address, port);
    wait_receive(&end); /* the client asks for the key */
    post_receive(&end);
    memcpy(end.out, &ours, sizeof ours);
    send_message(&end, sizeof ours);
    /* Until the client sends an empty message, each one is a request to make a part persistent. */
    while (wait_receive(&end) == sizeof(struct Commit)) {
        struct Commit part;
        memcpy(&part, end.in, sizeof part);
        make_persistent(log, part);
        post_receive(&end);
        send_message(&end, 0);
    }
    printf("%.*s", (int)log->tail, log->text);
    send_message(&end, 0);
    wait_disconnect(&end);
    disconnect(&end);
    close_device();
}

static void client(const char* address, const char* port, const char* text) {
    uint64_t tail, length = strnlen(text, ROOM - 1);
    open_device(address, CLIENT);
    register_memory(&end);
    connect_to(&end, address, port);
    post_receive(&end);
    send_message(&end, 0); /* asks for the key */
    learn_key(&end, wait_receive(&end));
    rdma_read(&end, offsetof(struct Log, tail), sizeof tail);
    memcpy(&tail, end.out, sizeof tail);
    if (tail + length + 1 > sizeof((struct Log*)0)->text) stop("the log is full");
    /* First the text and then its length: if the power fails between, the log ends before this text. */
    memcpy(end.out, text, length);
    end.out[length++] = '\n';
    rdma_write(&end, offsetof(struct Log, text) + tail, length);
#ifndef WITHOUT_FIRST_FLUSH /* a mistake that vi-run --power-cut shows */
    flush(&end, offsetof(struct Log, text) + tail, length);
#endif
    tail += length;
    memcpy(end.out, &tail, sizeof tail);
    rdma_write(&end, offsetof(struct Log, tail), sizeof tail);
    flush(&end, offsetof(struct Log, tail), sizeof tail);
    printf("%llu bytes\n", (unsigned long long)tail);
    post_receive(&end);
    send_message(&end, 0); /* the end */
    wait_receive(&end);
    disconnect(&end);
    close_device();
}

int main(int argc, char** argv) { return run(argc, argv, "log", "FILE", server, client); }
