// SPDX-License-Identifier: BSD-3-Clause
// The state of the core's endpoint, which follows calls and events of the backend.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>

#include "backends/faults/provider.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/internals.hpp"
#include "tests/support/fault_plan.hpp"
#include "tests/support/memory_backend.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;

namespace {

struct Pair {
    MemoryProvider provider;
    Node node{provider};
    Port client{node};
    Port server{node};
};

}  // namespace

TEST_CASE("endpoint: unsupported attributes are refused and leave nothing behind") {
    MemoryProvider provider;
    Node node(provider);
    const auto queue = node.make_queue();
    const auto code = [&](const EndpointAttributes& attributes) {
        return Endpoint::create(
                   {.attributes = attributes, .domain = node.domain, .send_queue = queue, .receive_queue = queue})
            .status()
            .code();
    };
    const auto limit = node.device->attributes().max_transfer_bytes;
    CHECK(code({.max_transfer_bytes = limit + 1}) == Code::InvalidTransferSize);
    CHECK(code({.max_transfer_bytes = 100, .qos = 1}) == Code::InvalidQos);
    CHECK(code({.reliability = static_cast<Reliability>(9), .max_transfer_bytes = 100}) == Code::InvalidReliability);
    CHECK_FALSE(queue->in_use());
    CHECK_FALSE(node.domain->in_use());
}

TEST_CASE("endpoint: connect, accept and disconnect move both states") {
    Pair pair;
    CHECK(pair.client.endpoint->state() == EndpointState::Unconnected);
    const auto listener = pair.node.listen("service");
    must(pair.client.endpoint->connect(parameters_for(pair.node, pair.node.address("service"))));
    CHECK(pair.client.endpoint->state() == EndpointState::ActivePending);
    accept_on(pair.server, *listener);
    CHECK(pair.server.endpoint->state() == EndpointState::Connected);
    CHECK(pair.client.event().kind == ConnectionEventKind::Established);
    CHECK(pair.client.endpoint->state() == EndpointState::Connected);

    pair.client.endpoint->disconnect();
    CHECK(pair.client.endpoint->state() == EndpointState::Unconnected);
    CHECK(pair.server.event().kind == ConnectionEventKind::Disconnected);
    CHECK(pair.server.endpoint->state() == EndpointState::Disconnected);
    pair.server.endpoint->disconnect();
    CHECK(pair.server.endpoint->state() == EndpointState::Unconnected);
    CHECK(pair.client.quiet());
    CHECK(pair.server.quiet());
}

TEST_CASE("endpoint: a refused call restores the state") {
    Pair pair;
    const auto& address = pair.node.address("service");
    CHECK(attempt(pair.client, parameters_for(pair.node, address)) == Code::NoListener);
    CHECK(pair.client.endpoint->state() == EndpointState::Unconnected);

    const auto listener = pair.node.listen("service");
    must(pair.client.endpoint->connect(parameters_for(pair.node, address)));
    must(next_request(*listener)->reject({}));
    CHECK(pair.client.event().kind == ConnectionEventKind::Rejected);
    CHECK(pair.client.endpoint->state() == EndpointState::Unconnected);

    auto parameters = parameters_for(pair.node, address);
    parameters.deadline = Deadline::after(1ms);
    must(pair.client.endpoint->connect(parameters));
    CHECK(pair.client.event().kind == ConnectionEventKind::TimedOut);
    CHECK(pair.client.endpoint->state() == EndpointState::Unconnected);
}

TEST_CASE("endpoint: calls that the state does not allow") {
    Pair pair;
    join(pair.client, pair.server);
    const auto listener = pair.node.listen("service");
    Port third(pair.node);
    must(third.endpoint->connect(parameters_for(pair.node, pair.node.address("service"))));
    const auto request = next_request(*listener);
    CHECK(pair.server.endpoint->accept(*request, {}).code() == Code::InvalidState);
    CHECK(pair.client.endpoint->connect(parameters_for(pair.node, pair.node.address("service"))).code() ==
          Code::InvalidState);
    CHECK(pair.client.endpoint->modify(pair.client.endpoint->attributes(), pair.node.domain).code() ==
          Code::InvalidState);
    CHECK(pair.client.endpoint->state() == EndpointState::Connected);

    Port fourth(pair.node);
    accept(fourth, *request);
    CHECK(third.event().kind == ConnectionEventKind::Established);
}

TEST_CASE("endpoint: a late accept leaves it idle") {
    Pair pair;
    const auto listener = pair.node.listen("service");
    auto parameters = parameters_for(pair.node, pair.node.address("service"));
    parameters.deadline = Deadline::after(500ms);  // long enough to take the request
    must(pair.client.endpoint->connect(parameters));
    const auto request = next_request(*listener);
    CHECK(pair.client.event().kind == ConnectionEventKind::TimedOut);
    CHECK(pair.server.endpoint->accept(*request, {}).code() == Code::TimedOut);
    CHECK(pair.server.endpoint->state() == EndpointState::Unconnected);
    CHECK(pair.server.quiet());
}

TEST_CASE("endpoint: fail() breaks both ends until they are reset") {
    Pair pair;
    join(pair.client, pair.server);
    Internals::fail(*pair.client.endpoint);
    CHECK(pair.client.endpoint->state() == EndpointState::Disconnected);
    CHECK(pair.server.event().kind == ConnectionEventKind::Lost);
    CHECK(pair.server.endpoint->state() == EndpointState::Disconnected);
    pair.client.endpoint->disconnect();
    pair.server.endpoint->disconnect();
    join(pair.client, pair.server);
    CHECK(pair.client.endpoint->state() == EndpointState::Connected);
}

TEST_CASE("endpoint: fail() on an idle endpoint") {
    Pair pair;
    Internals::fail(*pair.client.endpoint);
    CHECK(pair.client.endpoint->state() == EndpointState::Disconnected);
    const Buffer buffer(pair.node, 8);
    const Sge piece = buffer.sge();
    pair.client.post(receive_of(5, piece));
    const Completion completion = pair.client.received();
    CHECK(completion.code == CompletionCode::Flushed);
    CHECK(completion.context == 5);
}

TEST_CASE("endpoint: its destruction disconnects the peer") {
    MemoryProvider provider;
    Node node(provider);
    Port stays(node);
    {
        Port goes(node);
        join(goes, stays);
    }
    CHECK(stays.event().kind == ConnectionEventKind::Disconnected);
    CHECK(stays.quiet());
}

TEST_CASE("endpoint: modify() changes attributes and domain, or nothing") {
    Pair pair;
    const auto other = must(ProtectionDomain::create(pair.node.device));
    auto attributes = pair.client.endpoint->attributes();
    attributes.max_transfer_bytes = 4096;
    must(pair.client.endpoint->modify(attributes, other));
    CHECK(pair.client.endpoint->attributes() == attributes);
    CHECK(pair.client.endpoint->domain() == other);
    CHECK(other->in_use());

    auto wrong = attributes;
    wrong.max_transfer_bytes = pair.node.device->attributes().max_transfer_bytes + 1;
    CHECK(pair.client.endpoint->modify(wrong, pair.node.domain).code() == Code::InvalidTransferSize);
    CHECK(pair.client.endpoint->attributes() == attributes);
    CHECK(pair.client.endpoint->domain() == other);
}

TEST_CASE("endpoint: a backend that fails to connect or accept leaves it idle") {
    MemoryProvider inner;
    FailingCall plan;
    faults::Provider provider(inner, plan);
    Node node(provider);
    Port client(node);
    Port server(node);
    const auto listener = node.listen("service");
    const auto parameters = parameters_for(node, node.address("service"));

    plan.fail_call(1, {Code::SystemError, "injected"});
    CHECK(client.endpoint->connect(parameters).code() == Code::SystemError);
    CHECK(client.endpoint->state() == EndpointState::Unconnected);

    must(client.endpoint->connect(parameters));
    const auto request = next_request(*listener);
    plan.fail_call(1, {Code::NoResources, "injected"});
    CHECK(server.endpoint->accept(*request, {}).code() == Code::NoResources);
    CHECK(server.endpoint->state() == EndpointState::Unconnected);
    accept(server, *request);
    CHECK(client.event().kind == ConnectionEventKind::Established);
}

TEST_CASE("compatible: reliability, transfer size and quality of service must agree; access need not") {
    const EndpointAttributes mine{.reliability = Reliability::ReliableDelivery, .max_transfer_bytes = 100};
    CHECK(compatible(mine, mine).ok());
    auto theirs = mine;
    theirs.access.remote_write = true;
    theirs.receiver_not_ready = ReceiverNotReady::Break;
    theirs.refused_write = RefusedWrite::Silent;
    CHECK(compatible(mine, theirs).ok());
    theirs.max_transfer_bytes = 0;  // no limit
    CHECK(compatible(mine, theirs).ok());
    CHECK(compatible(theirs, mine).ok());
    CHECK(compatible(theirs, theirs).ok());
    theirs.qos = 1;
    CHECK(compatible(mine, theirs).code() == Code::InvalidQos);
    theirs.max_transfer_bytes = 99;
    CHECK(compatible(mine, theirs).code() == Code::InvalidTransferSize);
    theirs.reliability = Reliability::Unreliable;
    CHECK(compatible(mine, theirs).code() == Code::InvalidReliability);
}

TEST_CASE("compatible: an endpoint that joins any reliable level") {
    const EndpointAttributes any{.any_reliable = true};
    CHECK(compatible(any, any).ok());
    for (const auto level : {Reliability::ReliableDelivery, Reliability::ReliableReception}) {
        const EndpointAttributes other{.reliability = level, .refused_write = RefusedWrite::Silent};
        CHECK(compatible(any, other).ok());
        CHECK(compatible(other, any).ok());
    }
    const EndpointAttributes unreliable{.reliability = Reliability::Unreliable};
    CHECK(compatible(any, unreliable).code() == Code::InvalidReliability);
    CHECK(compatible(unreliable, any).code() == Code::InvalidReliability);
    CHECK(std::string(compatible(unreliable, any).where()) ==
          "the reliability levels differ: unreliable here, any reliable level at the peer");
}

namespace {

/// Changes an endpoint from another thread while a request is being accepted.
class InterruptedRequest final : public ConnectionRequest {
public:
    explicit InterruptedRequest(std::function<void()> interrupt) : interrupt_(std::move(interrupt)) {}
    const Address& remote_address() const noexcept override { return address_; }
    const EndpointAttributes& remote_attributes() const noexcept override { return attributes_; }
    const PrivateData& private_data() const noexcept override { return private_data_; }
    Status accept(backend::Endpoint&, const PrivateData&) noexcept override {
        interrupt_();
        return {Code::TimedOut, "the endpoint was taken away"};
    }
    Status reject(const PrivateData&) noexcept override { return {}; }
    Status refuse() noexcept override { return {}; }
    Status conflict(const EndpointAttributes&) noexcept override { return {}; }
    void redirect(const Bytes<Address::max_service>&) noexcept override {}

private:
    std::function<void()> interrupt_;
    Address address_;
    EndpointAttributes attributes_;
    PrivateData private_data_;
};

}  // namespace

TEST_CASE("endpoint: a disconnect during accept leaves it idle") {
    Pair pair;
    Endpoint& endpoint = *pair.server.endpoint;
    InterruptedRequest request([&] {
        CHECK(endpoint.state() == EndpointState::PassivePending);
        endpoint.disconnect();
    });
    CHECK(endpoint.accept(request, {}).code() == Code::TimedOut);
    CHECK(endpoint.state() == EndpointState::Unconnected);
}

TEST_CASE("endpoint: a failure during accept breaks it") {
    Pair pair;
    Endpoint& endpoint = *pair.server.endpoint;
    InterruptedRequest request([&] { Internals::fail(endpoint); });
    CHECK(endpoint.accept(request, {}).code() == Code::TimedOut);
    CHECK(endpoint.state() == EndpointState::Disconnected);
}

TEST_CASE("endpoint: a terminated endpoint is unusable until reset, and there is no event") {
    Pair pair;
    pair.client.endpoint->terminate();
    CHECK(pair.client.endpoint->state() == EndpointState::Disconnected);
    CHECK(pair.client.quiet());
    pair.client.endpoint->disconnect();
    CHECK(pair.client.endpoint->state() == EndpointState::Unconnected);
}

TEST_CASE("endpoint: without an observer, it keeps its events, and those of one connection only") {
    MemoryProvider provider;
    Node node(provider);
    const auto queue = node.make_queue();
    const EndpointConfig config{.domain = node.domain, .send_queue = queue, .receive_queue = queue};
    const auto client = must(Endpoint::create(config)), server = must(Endpoint::create(config));
    const auto listener = node.listen("service");
    const auto deadline = Deadline::after(std::chrono::seconds(10));
    const auto readable = [](Endpoint& endpoint) { return await_readable(endpoint.fd(), Deadline::now()); };
    const auto next_descriptor = [] {
        const int next = dup(STDOUT_FILENO);
        close(next);
        return next;
    };
    const int unused = next_descriptor();
    CHECK(client->next_event().status().code() == Code::WouldBlock);
    CHECK(client->next_event(Deadline::now()).status().code() == Code::TimedOut);
    CHECK(next_descriptor() == unused);  // they do not sleep, so they need none
    CHECK(listener->next_request(Deadline::now()).status().code() == Code::TimedOut);

    for (int round = 0; round < 3; ++round) {
        must(client->connect({.remote = node.address("service")}));
        must(server->accept(*must(listener->next_request(deadline))));
        CHECK(readable(*server));
        must(server->next_event()).or_throw();
        must(client->next_event(deadline)).or_throw();
        CHECK_FALSE(readable(*client));
        client->disconnect();
        const ConnectionEvent end = must(server->next_event(deadline));
        CHECK(end.kind == ConnectionEventKind::Disconnected);
        CHECK_THROWS_WITH(end.or_throw(), std::string(end.why.c_str()));
        server->disconnect();
    }

    // Nobody takes the refusal, nor the end of the connection.
    must(client->connect({.remote = node.address("nobody's")}));
    while (!readable(*client)) continue;
    must(client->connect({.remote = node.address("service")}));
    must(server->accept(*must(listener->next_request(deadline))));
    must(client->next_event(deadline)).or_throw();
    server->disconnect();
    while (!readable(*client)) continue;
    client->disconnect();
    CHECK_FALSE(readable(*client));
    CHECK(client->next_event().status().code() == Code::WouldBlock);
}

TEST_CASE("endpoint: an observer gets the events instead") {
    Pair pair;
    CHECK(pair.client.endpoint->fd() == -1);
    CHECK(pair.client.endpoint->next_event().status().code() == Code::InvalidState);
    CHECK(pair.client.endpoint->next_event(Deadline::never()).status().code() == Code::InvalidState);
}
