/* SPDX-License-Identifier: BSD-3-Clause
 * Hello: the client sends a text; the server prints it and sends it back.
 */
#include "end.h"

static struct End end;

static void server(const char* address, const char* port, const char* none) {
    (void)none;
    open_device(address, SERVER);
    register_memory(&end);
    accept_client(&end, address, port);
    const size_t length = wait_receive(&end);
    printf("%.*s\n", (int)length, end.in);
    memcpy(end.out, end.in, length);
    send_message(&end, length);
    wait_disconnect(&end);
    disconnect(&end);
    close_device();
}

static void client(const char* address, const char* port, const char* text) {
    const size_t length = strnlen(text, ROOM);
    open_device(address, CLIENT);
    register_memory(&end);
    connect_to(&end, address, port);
    post_receive(&end); /* for the answer, before it can come */
    memcpy(end.out, text, length);
    send_message(&end, length);
    printf("%.*s\n", (int)wait_receive(&end), end.in);
    disconnect(&end);
    close_device();
}

int main(int argc, char** argv) { return run(argc, argv, "hello", NULL, server, client); }
