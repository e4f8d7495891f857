// SPDX-License-Identifier: BSD-3-Clause
// One end of a connection, with the core, in C++.
#pragma once
#include <arpa/inet.h>
#include <poll.h>

#include <condition_variable>
#include <core/endpoint.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

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

// Is called by threads of the library, which must not be kept waiting.
class Observer final : public DeviceObserver, public EndpointObserver {
public:
    void on_async_event(const AsyncEvent&) noexcept override {}
    void on_connection_event(const ConnectionEvent& event) noexcept override {
        const std::lock_guard lock(mutex_);
        events_.push_back(event);
        arrived_.notify_one();
    }
    ConnectionEvent next_event() {
        std::unique_lock lock(mutex_);
        arrived_.wait(lock, [&] { return !events_.empty(); });
        const ConnectionEvent event = events_.front();
        events_.pop_front();
        return event;
    }

private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<ConnectionEvent> events_;
};

inline Observer observer;
inline std::shared_ptr<Device> device;
inline std::shared_ptr<ProtectionDomain> domain;
inline std::shared_ptr<CompletionQueue> sends, receives;
inline std::unique_ptr<MemoryRegion> shared;  // the memory for RDMA of the server
inline Descriptor ours, theirs;               // the same, as a message, and the peer's

[[noreturn]] inline void fail(const char* call, const Status& status) {
    throw std::runtime_error(std::string(call) + ": " + to_string(status.code()) + " (" + status.where() + ")");
}
inline void check(const char* call, const Status& status) {
    if (!status.ok()) fail(call, status);
}
template <class T>
inline T check(const char* call, Result<T> result) {
    check(call, result.status());
    return std::move(*result);
}

inline void open_device() {
    device = check("Device::open", Device::open(check("default_number", Device::default_number()), observer));
    domain = check("ProtectionDomain::create", ProtectionDomain::create(device));
    sends = check("CompletionQueue::create", CompletionQueue::create(device, 8, 0));
    receives = check("CompletionQueue::create", CompletionQueue::create(device, 8, 0));
}

inline void register_memory(End& end) {
    const Access access{};  // the peer may neither read nor write here
    end.region = check("MemoryRegion::create", MemoryRegion::create(domain, &end, sizeof end, access));
}

inline void create_endpoint(End& end) {
    // The default is reliable delivery, which DAT and librpma join.
    const EndpointConfig config{.attributes = {.access = {.remote_write = true, .remote_read = true}},
                                .domain = domain,
                                .send_queue = sends,
                                .receive_queue = receives,
                                .context = reinterpret_cast<std::uintptr_t>(&end),
                                .observer = &observer};
    end.endpoint = check("Endpoint::create", Endpoint::create(config));
}

// A message that comes before its receive waits, unless the sender is a program of VIPL.
inline void post_receive(End& end) {
    const Sge piece{end.in, end.region->key(), room};
    check("Endpoint::post_receive", end.endpoint->post_receive({.sges = {&piece, 1}}));
}

inline void expect_connection(ConnectionEventKind expected, const ConnectionEvent& event) {
    if (event.kind != expected)
        throw std::runtime_error(event.why.empty() ? "unexpected connection event" : event.why.c_str());
}

inline Address address_of(const char* address, const char* port) {
    std::uint8_t host[4];
    if (inet_pton(AF_INET, address, host) != 1) throw std::runtime_error("not an IPv4 address");
    return {HostAddress(host), service_of(static_cast<std::uint16_t>(std::atoi(port)))};
}

inline void connect_to(End& end, const char* address, const char* port) {
    create_endpoint(end);
    ConnectParameters parameters{.local = {device->attributes().host, {}}, .remote = address_of(address, port)};
    parameters.deadline = Deadline::after(timeout);
    parameters.grace = timeout;  // while nobody listens, the library asks again
    check("Endpoint::connect", end.endpoint->connect(parameters));
    expect_connection(ConnectionEventKind::Established, observer.next_event());
}

inline void accept_request(End& end, ConnectionRequest& request) {
    create_endpoint(end);
    post_receive(end);  // before the client can send
    check("Endpoint::accept", end.endpoint->accept(request, {}));
}

inline void accept_client(End& end, const char* address, const char* port) {
    const auto listener = check("Device::listen", device->listen(address_of(address, port)));
    auto request = listener->next_request();
    while (request.status().code() == Code::WouldBlock) {
        pollfd waiting{listener->fd(), POLLIN, 0};
        poll(&waiting, 1, -1);
        request = listener->next_request();
    }
    accept_request(end, *check("Listener::next_request", std::move(request)));
    expect_connection(ConnectionEventKind::Established, observer.next_event());
}

// Waits without spinning for a completion and returns the number of bytes.
inline std::size_t wait_completion(CompletionQueue& queue, const char* call) {
    Completion done;
    while (queue.wait({&done, 1}, Deadline::never()) == 0) continue;
    if (done.code != CompletionCode::Success)
        throw std::runtime_error(std::string(call) + ": completion code " + std::to_string(int(done.code)));
    return done.bytes;
}

inline void send_message(End& end, std::size_t length) {
    const Sge piece{end.out, end.region->key(), static_cast<std::uint32_t>(length)};
    check("Endpoint::post_send", end.endpoint->post_send({.sges = {&piece, 1}}));
    wait_completion(*sends, "Endpoint::post_send");
}

inline std::size_t wait_receive(End&) { return wait_completion(*receives, "Endpoint::post_receive"); }

inline void register_shared(void* address, std::size_t length, std::uint8_t usage) {
    const Access access{.remote_write = true, .remote_read = true};
    shared = check("MemoryRegion::create", MemoryRegion::create(domain, address, length, access));
    ours = {reinterpret_cast<std::uintptr_t>(address), length, shared->key(), usage};
}

// Takes the descriptor from the message that has just arrived.
inline void learn_key(End& end, std::size_t length) {
    std::memcpy(&theirs, end.in, sizeof theirs);
    if (length != sizeof theirs || theirs.size < room) throw std::runtime_error("not the descriptor of enough memory");
}

// RDMA between `out` and the peer's memory.
inline void rdma(End& end, Opcode opcode, std::size_t offset, std::size_t length, const char* call) {
    const Sge piece{end.out, end.region->key(), static_cast<std::uint32_t>(length)};
    const RemoteAddress remote{theirs.address + offset, theirs.key};
    check(call, end.endpoint->post_send({.opcode = opcode, .remote = remote, .sges = {&piece, 1}}));
    wait_completion(*sends, call);
}
inline void rdma_read(End& end, std::size_t offset, std::size_t length) {
    rdma(end, Opcode::RdmaRead, offset, length, "RDMA read");
}
inline void rdma_write(End& end, std::size_t offset, std::size_t length) {
    rdma(end, Opcode::RdmaWrite, offset, length, "RDMA write");
}

// When the flush has completed, the earlier writes to this part survive a loss of power of the server. Its program has
// no part in this.
inline void flush(End& end, std::size_t offset, std::size_t length) {
    SendRequest request{.opcode = Opcode::Flush, .flush_to = FlushTarget::Persistence};
    request.flush_bytes = length;
    request.remote = {theirs.address + offset, theirs.key};
    check("Endpoint::post_send", end.endpoint->post_send(request));
    wait_completion(*sends, "flush");
}

// When the client disconnects, there is an event.
inline void wait_disconnect(End&) { expect_connection(ConnectionEventKind::Disconnected, observer.next_event()); }

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
    const auto listener = check("Device::listen", device->listen(address_of(address, port)));
    pollfd waiting[] = {{listener->fd(), POLLIN, 0}, {receives->fd(), POLLIN, 0}};
    for (int i = 0; i < clients; ++i) register_memory(guests[i]);
    for (int left = clients, present = 0; left > 0;) {
        // Completions that are already there wake nobody: arm the queue, look at it, and only then sleep.
        check("CompletionQueue::arm", receives->arm());
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
        accept_request(guests[present], *check("Listener::next_request", std::move(request)));
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
