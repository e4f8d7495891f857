// SPDX-License-Identifier: BSD-3-Clause
// Echo, with the core, in C++: a server for several clients, which waits for all of them without spinning.
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
constexpr int messages = 100, max_clients = 64;

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

static void create_endpoint(std::uint64_t context) {
    // The default is reliable delivery, the level of DAT and librpma.
    const EndpointConfig config{
        .domain = domain, .send_queue = sends, .receive_queue = receives, .context = context, .observer = &observer};
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
    create_endpoint(0);
    ConnectParameters parameters{.local = {device->attributes().host, {}}, .remote = address_of(address, port)};
    parameters.deadline = Deadline::after(timeout);
    parameters.grace = timeout;  // while nobody listens, the library asks again
    check("Endpoint::connect", endpoint->connect(parameters));
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

static void disconnect() {
    endpoint->disconnect();
    endpoint.reset();  // and the rest in the reverse order of creation
    region.reset();
    sends.reset();
    receives.reset();
    domain.reset();
    device.reset();
}

// One client of the server.
struct Guest {
    char in[room], out[room];
    std::unique_ptr<Endpoint> endpoint;
};
static Guest guests[max_clients];
static std::unique_ptr<MemoryRegion> guests_region;

static void post_guest_receive(Guest& guest) {
    const Sge piece{guest.in, guests_region->key(), room};
    check("Endpoint::post_receive", guest.endpoint->post_receive({.sges = {&piece, 1}}));
}

// The receive is posted again before the echo is sent, because the next message may follow at once.
static void echo(Guest& guest, std::uint32_t length) {
    std::memcpy(guest.out, guest.in, length);
    post_guest_receive(guest);
    const Sge piece{guest.out, guests_region->key(), length};
    check("Endpoint::post_send", guest.endpoint->post_send({.sges = {&piece, 1}}));
    wait_completion(*sends, "Endpoint::post_send");
}

static void accept_guest(ConnectionRequest& request, int index) {
    create_endpoint(static_cast<std::uint64_t>(index));
    guests[index].endpoint = std::move(endpoint);
    post_guest_receive(guests[index]);  // before the client can send
    check("Endpoint::accept", guests[index].endpoint->accept(request, {}));
}

// One thread waits for everything, without spinning, with poll(2).
static void serve(Listener& listener, int clients) {
    pollfd waiting[] = {{listener.fd(), POLLIN, 0}, {receives->fd(), POLLIN, 0}};
    for (int left = clients, present = 0; left > 0;) {
        // Completions that are already there wake nobody: arm the queue, look at it, and only then sleep.
        check("CompletionQueue::arm", receives->arm());
        Completion done;
        while (receives->poll(done)) {
            if (done.code == CompletionCode::Success)
                echo(guests[done.endpoint_context], done.bytes);
            else
                --left;  // flushed: the client has disconnected
        }
        if (left == 0 || poll(waiting, 2, -1) < 0) continue;
        if (waiting[1].revents != 0) (void)receives->channel().take_event();
        if (waiting[0].revents == 0) continue;
        auto request = listener.next_request();
        if (request.status().code() == Code::WouldBlock) continue;
        accept_guest(*check("Listener::next_request", std::move(request)), present);
        if (++present == clients) waiting[0].fd = -1;
    }
}

static void server(const char* address, const char* port, int clients) {
    open_device();
    guests_region = check("MemoryRegion::create", MemoryRegion::create(domain, guests, sizeof guests, Access{}));
    const auto listener = check("Device::listen", device->listen(address_of(address, port)));
    serve(*listener, clients);
    std::printf("%d clients\n", clients);
    for (Guest& guest : guests) guest.endpoint.reset();
    guests_region.reset();
}

static void client(const char* address, const char* port, const char* text) {
    const std::size_t length = strnlen(text, room);
    open_device();
    register_memory();
    connect_to(address, port);
    std::memcpy(memory.out, text, length);
    for (int message = 0; message < messages; ++message) {
        post_receive();  // for the echo, before it can come
        send_message(length);
        if (wait_receive() != length || std::memcmp(memory.in, memory.out, length) != 0)
            throw std::runtime_error("the echo differs from the message");
    }
    std::printf("%d echoes\n", messages);
    disconnect();
}

int main(int argc, char** argv) try {
    if (argc == 5 && std::strcmp(argv[1], "server") == 0 && std::atoi(argv[4]) > 0 && std::atoi(argv[4]) <= max_clients)
        server(argv[2], argv[3], std::atoi(argv[4]));
    else if (argc == 5 && std::strcmp(argv[1], "client") == 0)
        client(argv[2], argv[3], argv[4]);
    else
        return std::fprintf(stderr, "usage: echo server ADDRESS PORT CLIENTS | echo client ADDRESS PORT TEXT\n"), 2;
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
