// SPDX-License-Identifier: BSD-3-Clause
// Hello, with the core, in C++: the client sends a text; the server prints it and sends it back.
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

static struct { char in[room], out[room]; } memory;

[[noreturn]] static void fail(const char* call, const Status& status) {
    throw std::runtime_error(std::string(call) + ": " + to_string(status.code()) + " (" + status.where() + ")");
}
static void check(const char* call, const Status& status) {
    if (!status.ok()) fail(call, status);
}
template <class T>
static T check(const char* call, Result<T> result) {
    check(call, result.status());
    return std::move(*result);
}

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

static Observer observer;
static std::shared_ptr<Device> device;
static std::shared_ptr<ProtectionDomain> domain;
static std::shared_ptr<CompletionQueue> sends, receives;
static std::unique_ptr<MemoryRegion> region;
static std::unique_ptr<Endpoint> endpoint;

static void open_device() {
    device = check("Device::open", Device::open(check("default_number", Device::default_number()), observer));
    domain = check("ProtectionDomain::create", ProtectionDomain::create(device));
    sends = check("CompletionQueue::create", CompletionQueue::create(device, 8, 0));
    receives = check("CompletionQueue::create", CompletionQueue::create(device, 8, 0));
}

static void register_memory() {
    const Access access{};  // the peer may neither read nor write here
    region = check("MemoryRegion::create", MemoryRegion::create(domain, &memory, sizeof memory, access));
}

static void create_endpoint() {
    // The default is reliable delivery, the level of DAT and librpma.
    const EndpointConfig config{
        .domain = domain, .send_queue = sends, .receive_queue = receives, .observer = &observer};
    endpoint = check("Endpoint::create", Endpoint::create(config));
}

// A message that comes before its receive waits, unless the sender is a program of VIPL.
static void post_receive() {
    const Sge piece{memory.in, region->key(), room};
    check("Endpoint::post_receive", endpoint->post_receive({.sges = {&piece, 1}}));
}

static void expect_connection(ConnectionEventKind expected, const ConnectionEvent& event) {
    if (event.kind != expected)
        throw std::runtime_error(event.why.empty() ? "unexpected connection event" : event.why.c_str());
}

static Address address_of(const char* address, const char* port) {
    std::uint8_t host[4];
    if (inet_pton(AF_INET, address, host) != 1) throw std::runtime_error("not an IPv4 address");
    return {HostAddress(host), service_of(static_cast<std::uint16_t>(std::atoi(port)))};
}

static void connect_to(const char* address, const char* port) {
    create_endpoint();
    ConnectParameters parameters{.local = {device->attributes().host, {}}, .remote = address_of(address, port)};
    parameters.deadline = Deadline::after(timeout);
    parameters.grace = timeout;  // while nobody listens, the library asks again
    check("Endpoint::connect", endpoint->connect(parameters));
    expect_connection(ConnectionEventKind::Established, observer.next_event());
}

static void accept_client(const char* address, const char* port) {
    create_endpoint();
    post_receive();  // before the client can send
    const auto listener = check("Device::listen", device->listen(address_of(address, port)));
    auto request = listener->next_request();
    while (request.status().code() == Code::WouldBlock) {
        pollfd waiting{listener->fd(), POLLIN, 0};
        poll(&waiting, 1, -1);
        request = listener->next_request();
    }
    check("Endpoint::accept", endpoint->accept(*check("Listener::next_request", std::move(request)), {}));
    expect_connection(ConnectionEventKind::Established, observer.next_event());
}

// Waits and returns the number of bytes.
static std::size_t wait_completion(CompletionQueue& queue, const char* call) {
    Completion done;
    while (queue.wait({&done, 1}, Deadline::never()) == 0) continue;
    if (done.code != CompletionCode::Success)
        throw std::runtime_error(std::string(call) + ": completion code " + std::to_string(int(done.code)));
    return done.bytes;
}

static void send_message(std::size_t length) {
    const Sge piece{memory.out, region->key(), static_cast<std::uint32_t>(length)};
    check("Endpoint::post_send", endpoint->post_send({.sges = {&piece, 1}}));
    wait_completion(*sends, "Endpoint::post_send");
}

static std::size_t wait_receive() { return wait_completion(*receives, "Endpoint::post_receive"); }

// When the client disconnects, there is an event.
static void wait_disconnect() { expect_connection(ConnectionEventKind::Disconnected, observer.next_event()); }

static void disconnect() {
    endpoint->disconnect();
    endpoint.reset();  // and the rest in the reverse order of creation
    region.reset();
    sends.reset();
    receives.reset();
    domain.reset();
    device.reset();
}

static void server(const char* address, const char* port) {
    open_device();
    register_memory();
    accept_client(address, port);
    const std::size_t length = wait_receive();
    std::printf("%.*s\n", static_cast<int>(length), memory.in);
    std::memcpy(memory.out, memory.in, length);
    send_message(length);
    wait_disconnect();
    disconnect();
}

static void client(const char* address, const char* port, const char* text) {
    const std::size_t length = strnlen(text, room);
    open_device();
    register_memory();
    connect_to(address, port);
    post_receive();  // for the answer, before it can come
    std::memcpy(memory.out, text, length);
    send_message(length);
    std::printf("%.*s\n", static_cast<int>(wait_receive()), memory.in);
    disconnect();
}

int main(int argc, char** argv) try {
    if (argc == 4 && std::strcmp(argv[1], "server") == 0)
        server(argv[2], argv[3]);
    else if (argc == 5 && std::strcmp(argv[1], "client") == 0)
        client(argv[2], argv[3], argv[4]);
    else
        return std::fprintf(stderr, "usage: hello server ADDRESS PORT | hello client ADDRESS PORT TEXT\n"), 2;
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
