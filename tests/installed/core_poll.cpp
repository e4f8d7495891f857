// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>
#include <cstdio>
#include <viaduct/endpoint.hpp>

using namespace viaduct;

int main() try {
    const auto device = Device::open_default().value_or_throw();
    const auto domain = ProtectionDomain::create(device).value_or_throw();
    const auto queue = CompletionQueue::create(device).value_or_throw();  // of both ends and both directions
    const EndpointConfig config{.domain = domain, .send_queue = queue, .receive_queue = queue};
    const auto client = Endpoint::create(config).value_or_throw(), server = Endpoint::create(config).value_or_throw();

    char memory[32] = "hello, receiver";  // the client's, and from 16 on the server's
    const auto region = MemoryRegion::create(domain, memory, sizeof memory, {}).value_or_throw();
    const Sge message{memory, region->key(), 16}, room{memory + 16, region->key(), 16};

    const Address address{device->attributes().host, service_of(7472)};
    const auto listener = device->listen(address).value_or_throw();
    client->connect({.remote = address}).or_throw();

    pollfd sources[] = {
        {listener->fd(), POLLIN, 0}, {client->fd(), POLLIN, 0}, {server->fd(), POLLIN, 0}, {queue->fd(), POLLIN, 0}};
    int completed = 0;
    for (bool ended = false; !ended;) {
        if (auto request = listener->next_request(); request.ok()) {
            server->post_receive({.sges = {&room, 1}}).or_throw();
            server->accept(**request).or_throw();
        }
        if (auto event = client->next_event(); event.ok()) {
            event->or_throw();
            client->post_send({.sges = {&message, 1}}).or_throw();
        }
        while (true) {
            const auto event = server->next_event();
            if (!event.ok()) break;
            ended = event.value().kind == ConnectionEventKind::Disconnected;
        }
        queue->arm().or_throw();  // first, because completions that are there already make no descriptor readable
        for (Completion done; queue->poll(done);) {
            done.or_throw();
            if (done.queue() == QueueKind::Receive) std::printf("received: %s\n", memory + 16);
            if (++completed == 2) client->disconnect();
        }
        if (!ended) poll(sources, 4, -1);
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
