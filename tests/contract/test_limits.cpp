// SPDX-License-Identifier: BSD-3-Clause
// Requests that the core refuses for all backends (core/limits.hpp), and cleanup afterwards. Limits of completion
// queues, depths, memory and windows are in test_queues.cpp, test_work_queues.cpp, test_shared_receives.cpp,
// test_shared_receive_limits.cpp, test_memory.cpp and test_windows.cpp.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"
#include "tests/support/descriptors.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

/// Returns attributes that the device does not support, with the expected error codes.
std::vector<std::pair<EndpointAttributes, Code>> unsupported_attributes(const DeviceAttributes& device) {
    std::vector<std::pair<EndpointAttributes, Code>> wrong{
        {{.reliability = static_cast<Reliability>(3)}, Code::InvalidReliability},
        {{.reliability = static_cast<Reliability>(255)}, Code::InvalidReliability},
        {{.max_transfer_bytes = device.max_transfer_bytes + 1}, Code::InvalidTransferSize},
        {{.qos = 1}, Code::InvalidQos}};
    const bool unreliable = device.capabilities.unreliable;
    const Code code = unreliable ? Code::InvalidRdmaRead : Code::InvalidReliability;
    wrong.push_back({{.reliability = Reliability::Unreliable, .access = {.remote_read = true}}, code});
    wrong.push_back({{.reliability = Reliability::Unreliable, .access = {.remote_atomic = true}}, code});
    if (!unreliable) wrong.push_back({{.reliability = Reliability::Unreliable}, code});
    return wrong;
}

HostAddress other_host(const HostAddress& host) {
    std::vector<std::uint8_t> bytes(host.span().begin(), host.span().end());
    bytes.back() ^= 0x80;
    return HostAddress(bytes);
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "limits: endpoints with unsupported attributes are refused", "[no-peer]") {
    const auto queue = near.make_queue();
    for (const auto& [attributes, code] : unsupported_attributes(near.device->attributes())) {
        CAPTURE(to_string(code));
        const auto endpoint = Endpoint::create(
            {.attributes = attributes, .domain = near.domain, .send_queue = queue, .receive_queue = queue});
        CHECK(endpoint.status().code() == code);
        CHECK_FALSE(queue->in_use());
        CHECK_FALSE(near.domain->in_use());
    }
}

TEST_CASE_METHOD(EveryBackend, "limits: modifying to unsupported attributes keeps the old ones") {
    Port client(near);
    Port server(far);
    const EndpointAttributes before = client.endpoint->attributes();
    for (const auto& [attributes, code] : unsupported_attributes(near.device->attributes())) {
        CAPTURE(to_string(code));
        CHECK(client.endpoint->modify(attributes, near.domain).code() == code);
        CHECK(client.endpoint->attributes() == before);
    }
    join(client, server);
}

TEST_CASE_METHOD(EveryBackend, "limits: endpoints for more SGEs than the device supports are refused", "[no-peer]") {
    const auto queue = near.make_queue();
    const auto limit = near.device->attributes().max_sges;
    const auto code = [&](std::uint32_t pieces) {
        return Endpoint::create({.attributes = {},
                                 .domain = near.domain,
                                 .send_queue = queue,
                                 .receive_queue = queue,
                                 .max_sges = pieces})
            .status()
            .code();
    };
    CHECK(code(limit) == Code::Ok);
    CHECK(code(limit + 1) == Code::InvalidParameter);
    CHECK_FALSE(queue->in_use());
}

TEST_CASE_METHOD(EveryBackend, "limits: listening at a foreign address is refused", "[no-peer]") {
    Address local = near.exact_address("limits");
    const HostAddress own = local.host;
    for (const HostAddress& host : {other_host(own), HostAddress()}) {
        local.host = host;
        CHECK(near.device->listen(local).status().code() == Code::InvalidParameter);
    }
}

TEST_CASE_METHOD(EveryBackend, "limits: connecting from a foreign address is refused") {
    const auto listener = far.listen("limits");
    Port client(near);
    Port server(far);
    auto parameters = parameters_for(near, far.address("limits"));
    const HostAddress own = parameters.local.host;
    parameters.local.host = other_host(own);
    CHECK(client.endpoint->connect(parameters).code() == Code::InvalidParameter);
    CHECK(client.endpoint->state() == EndpointState::Unconnected);
    CHECK(client.quiet());
    parameters.local.host = {};  // the device's own
    must(client.endpoint->connect(parameters));
    accept_on(server, *listener);
    CHECK(client.event().kind == ConnectionEventKind::Established);
}

TEST_CASE_METHOD(EveryBackend, "limits: devices report missing support for shared receive queues and their growth",
                 "[no-peer]") {
    const Capabilities& able = near.able();
    const auto receives = SharedReceiveQueue::create(near.domain, 4);
    CHECK(receives.status().code() == (able.shared_receive_queues ? Code::Ok : Code::Unsupported));
    if (!receives.ok()) return;
    const Code enlarged = receives.value()->resize(5).code();
    CHECK(enlarged == (able.resizes_shared_receives ? Code::Ok : Code::Unsupported));
    must(receives.value()->resize(4));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "limits: a server with few descriptors refuses with a reason, and serves when it has some",
                 "[hosts]") {
    if (backend.by_device) return;
    static constexpr int spares[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0};
    const auto server = [&](Wire& wire) {
        Node node(*provider());
        const auto listener = node.listen("few");
        wire.send(node.address("few"));
        rlimit usual{};
        require(getrlimit(RLIMIT_NOFILE, &usual) == 0, "getrlimit");
        for (const int spare : spares) {
            std::vector<std::unique_ptr<Port>> ports;
            for (int i = 0; i < 2; ++i) ports.push_back(std::make_unique<Port>(node));
            const int next = dup(wire.fd());
            close(next);
            const rlimit few{.rlim_cur = static_cast<rlim_t>(next + spare), .rlim_max = usual.rlim_max};
            require(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
            wire.notify();
            while (!readable(wire.fd())) {
                pollfd either[] = {{wire.fd(), POLLIN, 0}, {listener->fd(), POLLIN, 0}};
                (void)::poll(either, 2, -1);
                auto request = listener->next_request();
                if (request.ok())
                    (void)ports.back()->endpoint->accept(**request, {});  // may lack descriptors, too
                else
                    require(request.status().code() == Code::WouldBlock, "the listener goes on");
            }
            wire.await();
            require(setrlimit(RLIMIT_NOFILE, &usual) == 0, "setrlimit");
        }
        Port first(node);
        Port second(node);
        wire.notify();
        const auto request = next_request(*listener);
        const Status accepted = without_descriptors([&] { return first.endpoint->accept(*request, {}); });
        require(accepted.ok() || accepted.code() == Code::NoResources, "the request can still be accepted");
        if (!accepted.ok()) accept(second, *request);
        wire.await();
    };
    const auto client = [&](Wire& wire) {
        Node node(*provider());
        const auto address = wire.receive<Address>();
        for (const int spare : spares) {
            wire.await();
            Port port(node);
            ConnectParameters parameters = parameters_for(node, address);
            parameters.ends_if_dropped = true;
            must(port.endpoint->connect(parameters));
            const ConnectionEvent event = port.event();
            // Sockets of the previous connection may have been closed meanwhile.
            const bool served = event.kind == ConnectionEventKind::Established;
            require(served || event.kind == ConnectionEventKind::Unreachable,
                    std::string("the client is told, not: ") + event.why.c_str());
            require(served || spare != 0 || std::strstr(event.why.c_str(), "RLIMIT_NOFILE") != nullptr, "why");
            require(served || !event.why.empty(), "why");
            wire.notify();
        }
        wire.await();
        Port port(node);
        connect_to(port, address);
        wire.notify();
    };
    CHECK_NOTHROW(run_processes(server, client));
}
