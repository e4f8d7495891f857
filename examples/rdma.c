/* SPDX-License-Identifier: BSD-3-Clause
 * RDMA write and read: the client reads the server's memory and then writes to it.
 * The server sends the address and the key of its memory when the client asks.
 */
#include "end.h"

static struct End end;
static char table[ROOM];

static void server(const char* address, const char* port, const char* none) {
    (void)none;
    open_device(address, SERVER);
    register_memory(&end);
    register_shared(table, sizeof table, READ_AND_WRITE);
    strcpy(table, "read from the server");
    accept_client(&end, address, port);
    wait_receive(&end); /* the client asks for the key */
    post_receive(&end);
    memcpy(end.out, &ours, sizeof ours);
    send_message(&end, sizeof ours);
    wait_receive(&end); /* the client has written; what was written before a message is there when it arrives */
    printf("%.*s\n", ROOM, table);
    send_message(&end, 0);
    wait_disconnect(&end);
    disconnect(&end);
    close_device();
}

static void client(const char* address, const char* port, const char* text) {
    open_device(address, CLIENT);
    register_memory(&end);
    connect_to(&end, address, port);
    post_receive(&end);
    send_message(&end, 0); /* asks for the key */
    learn_key(&end, wait_receive(&end));
    post_receive(&end);
    rdma_read(&end, 0, ROOM);
    printf("%.*s\n", ROOM, end.out);
    memset(end.out, 0, ROOM);
    memcpy(end.out, text, strnlen(text, ROOM));
    rdma_write(&end, 0, ROOM);
    send_message(&end, 0); /* tells the server, which RDMA does not */
    wait_receive(&end);
    disconnect(&end);
    close_device();
}

int main(int argc, char** argv) { return run(argc, argv, "rdma", NULL, server, client); }
