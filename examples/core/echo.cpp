// SPDX-License-Identifier: BSD-3-Clause
// Echo: a server for several clients, which waits for all of them without spinning.
#include "end.hpp"

constexpr int messages = 100;

static End end;
static End guests[max_clients];  // the server's ends, one for each client

// The receive is posted again before the echo is sent, because the next message may follow at once.
static void echo(End& guest, std::size_t length) {
    std::memcpy(guest.out, guest.in, length);
    post_receive(guest);
    send_message(guest, length);
}

static void server(const char* address, const char* port, const char* number) {
    const int clients = std::atoi(number);
    if (clients < 1 || clients > max_clients) throw std::runtime_error("too few or too many clients");
    open_device();
    serve_clients(guests, clients, address, port, echo);
    std::printf("%d clients\n", clients);
    close_device();
}

static void client(const char* address, const char* port, const char* text) {
    const std::size_t length = strnlen(text, room);
    open_device();
    register_memory(end);
    connect_to(end, address, port);
    std::memcpy(end.out, text, length);
    for (int message = 0; message < messages; ++message) {
        post_receive(end);  // for the echo, before it can come
        send_message(end, length);
        if (wait_receive(end) != length || std::memcmp(end.in, end.out, length) != 0)
            throw std::runtime_error("the echo differs from the message");
    }
    std::printf("%d echoes\n", messages);
    disconnect(end);
    close_device();
}

int main(int argc, char** argv) { return run(argc, argv, "echo", "CLIENTS", server, client); }
