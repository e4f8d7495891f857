// SPDX-License-Identifier: BSD-3-Clause
#include <core/endpoint.hpp>
#include <cstdio>
#include <semaphore>
#include <stdexcept>

using namespace viaduct;

static Completion wait_for(CompletionQueue& queue) {
    Completion done;
    if (queue.wait({&done, 1}, Deadline::after(std::chrono::seconds(5))) == 0) throw std::runtime_error("timed out");
    if (done.code != CompletionCode::Success) throw std::runtime_error("a request failed");
    return done;
}

struct Observer final : DeviceObserver, EndpointObserver {  // called from threads of the library
    void on_async_event(const AsyncEvent&) noexcept override {}
    void on_connection_event(const ConnectionEvent& event) noexcept override {
        if (event.kind == ConnectionEventKind::Established) established.release();
    }
    std::counting_semaphore<> established{0};
};

int main() try {
    Observer observer;
    const auto device = Device::open(Device::default_number().value_or_throw(), observer).value_or_throw();
    const auto domain = ProtectionDomain::create(device).value_or_throw();
    const auto sent = CompletionQueue::create(device, 8, 0).value_or_throw();
    const auto received = CompletionQueue::create(device, 8, 0).value_or_throw();
    const EndpointConfig config{.attributes = {.access = {.remote_write = true}},
                                .domain = domain,
                                .send_queue = sent,
                                .receive_queue = received,
                                .observer = &observer};
    const auto client = Endpoint::create(config).value_or_throw(), server = Endpoint::create(config).value_or_throw();

    char memory[48] = "hello, receiver";  // the client's, and from 16 on the server's
    const auto region = MemoryRegion::create(domain, memory, sizeof memory, {.remote_write = true}).value_or_throw();
    const Sge message{memory, region->key(), 16}, room{memory + 16, region->key(), 16};
    server->post_receive({.sges = {&room, 1}}).or_throw();  // before connecting: no message can come too early

    const std::uint8_t service[] = {'h', 'e', 'l', 'l', 'o'};
    const Address address{device->attributes().host, Bytes<Address::max_service>(service)};
    const auto listener = device->listen(address).value_or_throw();
    client->connect({.local = {address.host, {}}, .remote = address}).or_throw();
    auto request = listener->next_request();
    while (request.status().code() == Code::WouldBlock) request = listener->next_request();  // or poll(2) its fd()
    server->accept(*std::move(request).value_or_throw(), {}).or_throw();
    observer.established.acquire();
    observer.established.acquire();  // of both

    client->post_send({.sges = {&message, 1}}).or_throw();
    std::printf("%s, a message of %u bytes\n", memory + 16, wait_for(*received).bytes);
    wait_for(*sent);

    const RemoteAddress target{reinterpret_cast<std::uintptr_t>(memory + 32), region->key()};  // as the server tells it
    client->post_send({.opcode = Opcode::RdmaWrite, .remote = target, .sges = {&message, 1}}).or_throw();
    wait_for(*sent);
    std::printf("%s, an RDMA write\n", memory + 32);
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
