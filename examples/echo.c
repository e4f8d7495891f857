/* SPDX-License-Identifier: BSD-3-Clause
 * Echo: a server for several clients, which waits for all of them without spinning.
 */
#include "end.h"

enum { MESSAGES = 100 };

static struct End end;
static struct End guests[MAX_CLIENTS]; /* the server's ends, one for each client */

/* The receive is posted again before the echo is sent, because the next message may follow at once. */
static void echo(struct End* guest, size_t length) {
    memcpy(guest->out, guest->in, length);
    post_receive(guest);
    send_message(guest, length);
}

static void server(const char* address, const char* port, const char* number) {
    const int clients = atoi(number);
    if (clients < 1 || clients > MAX_CLIENTS) stop("too few or too many clients");
    open_device(address, SERVER);
    serve_clients(guests, clients, address, port, echo);
    printf("%d clients\n", clients);
    close_device();
}

static void client(const char* address, const char* port, const char* text) {
    const size_t length = strnlen(text, ROOM);
    open_device(address, CLIENT);
    register_memory(&end);
    connect_to(&end, address, port);
    memcpy(end.out, text, length);
    for (int message = 0; message < MESSAGES; ++message) {
        post_receive(&end); /* for the echo, before it can come */
        send_message(&end, length);
        if (wait_receive(&end) != length || memcmp(end.in, end.out, length) != 0)
            stop("the echo differs from the message");
    }
    printf("%d echoes\n", MESSAGES);
    disconnect(&end);
    close_device();
}

int main(int argc, char** argv) { return run(argc, argv, "echo", "CLIENTS", server, client); }
