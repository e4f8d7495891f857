// SPDX-License-Identifier: BSD-3-Clause
// One end of a connection, with the core, in C++.
#pragma once
#include <arpa/inet.h>
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <viaduct/endpoint.hpp>

using namespace viaduct;

constexpr std::size_t room = 4096;
constexpr std::chrono::seconds timeout{10};
constexpr int max_clients = 64;

// Where a peer's memory is, as a message: the 21 bytes of a librpma descriptor, little-endian. VIPL has no private
// data, so that the keys travel in messages.
struct [[gnu::packed]] Descriptor {
    std::uint64_t address, size;
    std::uint32_t key;
    std::uint8_t usage;
};
constexpr std::uint8_t read_and_write = 1 | 8, persistent = 32;  // of librpma: READ_SRC, WRITE_DST; FLUSH_TYPE_...

struct End {
    char in[room], out[room];
    std::unique_ptr<MemoryRegion> region;
    std::unique_ptr<Endpoint> endpoint;
};

inline std::shared_ptr<Device> device;
inline std::shared_ptr<ProtectionDomain> domain;
inline std::shared_ptr<CompletionQueue> sends, receives;
inline std::unique_ptr<MemoryRegion> shared;  // the memory for RDMA of the server
inline Descriptor ours, theirs;               // the same, as a message, and the peer's

inline void open_device() {
    device = Device::open_default().value_or_throw();
    domain = ProtectionDomain::create(device).value_or_throw();
    sends = CompletionQueue::create(device).value_or_throw();
    receives = CompletionQueue::create(device).value_or_throw();
}

inline void register_memory(End& end) {
    const Access access{};  // the peer may neither read nor write here
    end.region = MemoryRegion::create(domain, &end, sizeof end, access).value_or_throw();
}

inline void create_endpoint(End& end) {
    // The default is reliable delivery, which DAT and librpma join.
    const EndpointConfig config{.attributes = {.access = {.remote_write = true, .remote_read = true}},
                                .domain = domain,
                                .send_queue = sends,
                                .receive_queue = receives,
                                .context = reinterpret_cast<std::uintptr_t>(&end)};
    end.endpoint = Endpoint::create(config).value_or_throw();
}

// A message that comes before its receive waits, unless the sender is a program of VIPL.
inline void post_receive(End& end) {
    const Sge piece{end.in, end.region->key(), room};
    end.endpoint->post_receive({.sges = {&piece, 1}}).or_throw();
}

inline Address address_of(const char* address, const char* port) {
    std::uint8_t host[4];
    if (inet_pton(AF_INET, address, host) != 1) throw std::runtime_error("not an IPv4 address");
    return {HostAddress(host), service_of(static_cast<std::uint16_t>(std::atoi(port)))};
}

inline void connect_to(End& end, const char* address, const char* port) {
    create_endpoint(end);
    ConnectParameters parameters{.remote = address_of(address, port)};
    parameters.deadline = Deadline::after(timeout);
    parameters.grace = timeout;  // while nobody listens, the library asks again
    end.endpoint->connect(parameters).or_throw();
    end.endpoint->next_event(Deadline::never()).value_or_throw().or_throw();
}

inline void accept_request(End& end, ConnectionRequest& request) {
    create_endpoint(end);
    post_receive(end);  // before the client can send
    end.endpoint->accept(request).or_throw();
}

inline void accept_client(End& end, const char* address, const char* port) {
    const auto listener = device->listen(address_of(address, port)).value_or_throw();
    accept_request(end, *listener->next_request(Deadline::never()).value_or_throw());
    end.endpoint->next_event(Deadline::never()).value_or_throw().or_throw();
}

// Waits without spinning for a completion and returns the number of bytes.
inline std::size_t wait_completion(CompletionQueue& queue) {
    const Completion done = queue.wait(Deadline::never()).value_or_throw();
    done.or_throw();
    return done.bytes;
}

inline void send_message(End& end, std::size_t length) {
    const Sge piece{end.out, end.region->key(), static_cast<std::uint32_t>(length)};
    end.endpoint->post_send({.sges = {&piece, 1}}).or_throw();
    wait_completion(*sends);
}

inline std::size_t wait_receive(End&) { return wait_completion(*receives); }

inline void register_shared(void* address, std::size_t length, std::uint8_t usage) {
    const Access access{.remote_write = true, .remote_read = true};
    shared = MemoryRegion::create(domain, address, length, access).value_or_throw();
    ours = {reinterpret_cast<std::uintptr_t>(address), length, shared->key(), usage};
}

// Takes the descriptor from the message that has just arrived.
inline void learn_key(End& end, std::size_t length) {
    std::memcpy(&theirs, end.in, sizeof theirs);
    if (length != sizeof theirs || theirs.size < room) throw std::runtime_error("not the descriptor of enough memory");
}

// RDMA between `out` and the peer's memory.
inline void rdma(End& end, Opcode opcode, std::size_t offset, std::size_t length) {
    const Sge piece{end.out, end.region->key(), static_cast<std::uint32_t>(length)};
    const RemoteAddress remote{theirs.address + offset, theirs.key};
    end.endpoint->post_send({.opcode = opcode, .remote = remote, .sges = {&piece, 1}}).or_throw();
    wait_completion(*sends);
}
inline void rdma_read(End& end, std::size_t offset, std::size_t length) { rdma(end, Opcode::RdmaRead, offset, length); }
inline void rdma_write(End& end, std::size_t offset, std::size_t length) {
    rdma(end, Opcode::RdmaWrite, offset, length);
}

// When the flush has completed, the earlier writes to this part survive a loss of power of the server. Its program has
// no part in this.
inline void flush(End& end, std::size_t offset, std::size_t length) {
    SendRequest request{.opcode = Opcode::Flush, .flush_to = FlushTarget::Persistence};
    request.flush_bytes = length;
    request.remote = {theirs.address + offset, theirs.key};
    end.endpoint->post_send(request).or_throw();
    wait_completion(*sends);
}

// When the client disconnects, there is an event.
inline void wait_disconnect(End& end) {
    const ConnectionEvent event = end.endpoint->next_event(Deadline::never()).value_or_throw();
    if (event.kind != ConnectionEventKind::Disconnected) throw std::runtime_error(event.why.c_str());
}

inline void disconnect(End& end) {
    end.endpoint->disconnect();
    end.endpoint.reset();
    end.region.reset();
}

inline void close_device() {
    shared.reset();
    sends.reset();
    receives.reset();
    domain.reset();
    device.reset();
}

// A server for several clients. One thread waits for everything, without spinning, with poll(2).
inline void serve_clients(End* guests, int clients, const char* address, const char* port,
                          void (*on_message)(End& guest, std::size_t length)) {
    const auto listener = device->listen(address_of(address, port)).value_or_throw();
    pollfd waiting[] = {{listener->fd(), POLLIN, 0}, {receives->fd(), POLLIN, 0}};
    for (int i = 0; i < clients; ++i) register_memory(guests[i]);
    for (int left = clients, present = 0; left > 0;) {
        // Completions that are already there wake nobody: arm the queue, look at it, and only then sleep.
        receives->arm().or_throw();
        Completion done;
        while (receives->poll(done)) {
            End& guest = *reinterpret_cast<End*>(done.endpoint_context);
            if (done.code == CompletionCode::Success) {
                on_message(guest, done.bytes);
            } else {  // flushed: the client has disconnected
                disconnect(guest);
                --left;
            }
        }
        if (left == 0 || poll(waiting, 2, -1) < 0) continue;
        if (waiting[1].revents != 0) (void)receives->channel().take_event();
        if (waiting[0].revents == 0) continue;
        auto request = listener->next_request();
        if (request.status().code() == Code::WouldBlock) continue;
        accept_request(guests[present], *std::move(request).value_or_throw());
        if (++present == clients) waiting[0].fd = -1;
    }
}

// Runs the end that the command line asks for. `argument` is the name of the server's last argument; null: none.
using Run = void(const char* address, const char* port, const char* last);
inline int run(int argc, char** argv, const char* name, const char* argument, Run* server, Run* client) try {
    if (argc == (argument ? 5 : 4) && std::strcmp(argv[1], "server") == 0)
        server(argv[2], argv[3], argv[4]);
    else if (argc == 5 && std::strcmp(argv[1], "client") == 0)
        client(argv[2], argv[3], argv[4]);
    else
        return std::fprintf(stderr, "usage: %s server ADDRESS PORT%s%s | %s client ADDRESS PORT TEXT\n", name,
                            argument ? " " : "", argument ? argument : "", name),
               2;
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
