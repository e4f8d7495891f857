// SPDX-License-Identifier: BSD-3-Clause
// Hello: the client sends a text; the server prints it and sends it back.
#include "end.hpp"

static End end;

static void server(const char* address, const char* port, const char*) {
    open_device();
    register_memory(end);
    accept_client(end, address, port);
    const std::size_t length = wait_receive(end);
    std::printf("%.*s\n", static_cast<int>(length), end.in);
    std::memcpy(end.out, end.in, length);
    send_message(end, length);
    wait_disconnect(end);
    disconnect(end);
    close_device();
}

static void client(const char* address, const char* port, const char* text) {
    const std::size_t length = strnlen(text, room);
    open_device();
    register_memory(end);
    connect_to(end, address, port);
    post_receive(end);  // for the answer, before it can come
    std::memcpy(end.out, text, length);
    send_message(end, length);
    std::printf("%.*s\n", static_cast<int>(wait_receive(end)), end.in);
    disconnect(end);
    close_device();
}

int main(int argc, char** argv) { return run(argc, argv, "hello", nullptr, server, client); }
