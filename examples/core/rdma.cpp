// SPDX-License-Identifier: BSD-3-Clause
// RDMA write and read: the client reads the server's memory and then writes to it.
// The server sends the address and the key of its memory when the client asks.
#include "end.hpp"

static End end;
static char table[room];

static void server(const char* address, const char* port, const char*) {
    open_device();
    register_memory(end);
    register_shared(table, sizeof table, read_and_write);
    std::strcpy(table, "read from the server");
    accept_client(end, address, port);
    wait_receive(end);  // the client asks for the key
    post_receive(end);
    std::memcpy(end.out, &ours, sizeof ours);
    send_message(end, sizeof ours);
    wait_receive(end);  // the client has written; what was written before a message is there when it arrives
    std::printf("%.*s\n", static_cast<int>(room), table);
    send_message(end, 0);
    wait_disconnect(end);
    disconnect(end);
    close_device();
}

static void client(const char* address, const char* port, const char* text) {
    open_device();
    register_memory(end);
    connect_to(end, address, port);
    post_receive(end);
    send_message(end, 0);  // asks for the key
    learn_key(end, wait_receive(end));
    post_receive(end);
    rdma_read(end, 0, room);
    std::printf("%.*s\n", static_cast<int>(room), end.out);
    std::memset(end.out, 0, room);
    std::memcpy(end.out, text, strnlen(text, room));
    rdma_write(end, 0, room);
    send_message(end, 0);  // tells the server, which RDMA does not
    wait_receive(end);
    disconnect(end);
    close_device();
}

int main(int argc, char** argv) { return run(argc, argv, "rdma", nullptr, server, client); }
