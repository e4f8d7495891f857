// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <viaduct/endpoint.hpp>

using namespace viaduct;

int main() try {
    const auto device = Device::open_default().value_or_throw();
    const auto domain = ProtectionDomain::create(device).value_or_throw();
    const auto sent = CompletionQueue::create(device).value_or_throw();
    const auto received = CompletionQueue::create(device).value_or_throw();
    const EndpointConfig config{.attributes = {.access = {.remote_write = true}},
                                .domain = domain,
                                .send_queue = sent,
                                .receive_queue = received};
    const auto client = Endpoint::create(config).value_or_throw(), server = Endpoint::create(config).value_or_throw();

    char memory[48] = "hello, receiver";  // the client's, and from 16 on the server's
    const auto region = MemoryRegion::create(domain, memory, sizeof memory, {.remote_write = true}).value_or_throw();
    const Sge message{memory, region->key(), 16}, room{memory + 16, region->key(), 16};
    server->post_receive({.sges = {&room, 1}}).or_throw();  // before connecting: no message can come too early

    const Address address{device->attributes().host, service_of(7471)};
    const Deadline deadline = Deadline::after(std::chrono::seconds(5));
    const auto listener = device->listen(address).value_or_throw();
    client->connect({.remote = address, .deadline = deadline}).or_throw();
    server->accept(*listener->next_request(deadline).value_or_throw()).or_throw();
    for (const auto* end : {&client, &server}) (*end)->next_event(deadline).value_or_throw().or_throw();  // established

    client->post_send({.sges = {&message, 1}}).or_throw();
    received->wait(deadline).value_or_throw().or_throw();
    sent->wait(deadline).value_or_throw().or_throw();
    std::printf("%s, a message\n", memory + 16);

    const RemoteAddress target{reinterpret_cast<std::uintptr_t>(memory + 32), region->key()};  // as the server tells it
    client->post_send({.opcode = Opcode::RdmaWrite, .remote = target, .sges = {&message, 1}}).or_throw();
    sent->wait(deadline).value_or_throw().or_throw();
    std::printf("%s, an RDMA write\n", memory + 32);
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
