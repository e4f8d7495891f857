// SPDX-License-Identifier: BSD-3-Clause
// Peer-to-peer connections.
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/support/services.hpp"
#include "tests/contract/backends.hpp"
#include "tests/support/processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;
using Kind = ConnectionEventKind;

namespace {

/// Parameters of a peer-to-peer connection. Two peers connect if they request each other's host and the same service.
/// The service of the local address does not matter (guide, sections 3.3 and 6.7).
ConnectParameters meeting(const Node& mine, const Node& theirs, std::string_view service = "meet") {
    return {.model = ConnectParameters::Model::PeerToPeer,
            .local = mine.address("meet"),
            .remote = theirs.address(service),
            .private_data = {},
            .deadline = patience()};
}

class Peers : public EveryBackend {
protected:
    bool offered() const { return near.device->attributes().capabilities.peer_to_peer; }
};

}  // namespace

TEST_CASE_METHOD(Peers, "peer to peer: two matching attempts connect, in either order") {
    if (!offered()) return;
    for (const bool near_first : {true, false}) {
        Port one(near_first ? near : far);
        Port other(near_first ? far : near);
        auto parameters = meeting(one.node, other.node);
        parameters.private_data = private_data_of("from the first");
        must(one.endpoint->connect(parameters));
        CHECK(one.endpoint->state() == EndpointState::ActivePending);
        must(other.endpoint->connect(meeting(other.node, one.node)));
        const auto to_one = one.event();
        const auto to_other = other.event();
        CHECK(to_one.kind == Kind::Established);
        CHECK(to_one.remote_address == other.node.address("meet"));
        CHECK(to_other.kind == Kind::Established);
        CHECK(to_other.remote_address == one.node.address("meet"));
        CHECK(to_other.private_data == private_data_of("from the first"));
        CHECK(to_other.remote == one.endpoint->attributes());
        exchange(one, other);
        exchange(other, one);
    }
}

TEST_CASE_METHOD(Peers, "peer to peer: both may start simultaneously") {
    if (!offered()) return;
    for (int round = 0; round < 50; ++round) {
        Port one(near);
        Port other(far);
        Status status;
        std::thread thread([&] { status = other.endpoint->connect(meeting(far, near)); });
        must(one.endpoint->connect(meeting(near, far)));
        thread.join();
        must(status);
        REQUIRE(one.event().kind == Kind::Established);
        REQUIRE(other.event().kind == Kind::Established);
    }
}

TEST_CASE_METHOD(Peers, "peer to peer: the services of the local addresses are ignored") {
    if (!offered()) return;
    Port one(near);
    Port other(far);
    auto parameters = meeting(near, far);
    parameters.local = near.address("something else");
    must(one.endpoint->connect(parameters));
    must(other.endpoint->connect(meeting(far, near)));
    CHECK(one.event().kind == Kind::Established);
    CHECK(other.event().kind == Kind::Established);
    exchange(one, other);
}

TEST_CASE_METHOD(Peers, "peer to peer: attempts for different services do not match") {
    if (!offered()) return;
    Port one(near);
    Port other(far);
    auto first = meeting(near, far, "left");
    auto second = meeting(far, near, "right");
    first.deadline = second.deadline = Deadline::after(50ms);
    must(one.endpoint->connect(first));
    must(other.endpoint->connect(second));
    CHECK(one.event().kind == Kind::TimedOut);
    CHECK(other.event().kind == Kind::TimedOut);
    CHECK(one.endpoint->state() == EndpointState::Unconnected);
}

TEST_CASE_METHOD(Peers, "peer to peer: attempts for different hosts do not match") {
    if (!offered()) return;
    Port one(near);
    Port other(far);
    Port last(far);
    auto first = meeting(near, far);
    first.deadline = Deadline::after(50ms);
    must(one.endpoint->connect(first));
    must(other.endpoint->connect(meeting(far, far)));
    must(last.endpoint->connect(meeting(far, far)));
    CHECK(other.event().kind == Kind::Established);
    CHECK(last.event().kind == Kind::Established);
    CHECK(one.event().kind == Kind::TimedOut);
}

TEST_CASE_METHOD(Peers, "peer to peer: two endpoints of one device connect") {
    if (!offered()) return;
    Port one(near);
    Port other(near);
    must(one.endpoint->connect(meeting(near, near)));
    must(other.endpoint->connect(meeting(near, near)));
    CHECK(one.event().kind == Kind::Established);
    CHECK(other.event().kind == Kind::Established);
    exchange(one, other);
}

TEST_CASE_METHOD(Peers, "peer to peer: several pairs connect concurrently") {
    if (!offered()) return;
    std::vector<std::unique_ptr<Port>> ones;
    std::vector<std::unique_ptr<Port>> others;
    for (int i = 0; i < 10; ++i) {
        const std::string service = "meet" + std::to_string(i);
        ones.push_back(std::make_unique<Port>(near));
        others.push_back(std::make_unique<Port>(far));
        must(ones.back()->endpoint->connect(meeting(near, far, service)));
    }
    for (int i = 9; i >= 0; --i) {
        const std::string service = "meet" + std::to_string(i);
        must(others[static_cast<std::size_t>(i)]->endpoint->connect(meeting(far, near, service)));
    }
    for (std::size_t i = 0; i < 10; ++i) {
        CHECK(ones[i]->event().kind == Kind::Established);
        CHECK(others[i]->event().kind == Kind::Established);
        exchange(*ones[i], *others[i]);
    }
}

TEST_CASE_METHOD(Peers, "peer to peer: incompatible attributes are reported to both, who become idle") {
    if (!offered()) return;
    const auto meet = [&](const PortOptions& mine, const PortOptions& theirs, Code reason) {
        Port one(near, mine);
        Port other(far, theirs);
        must(one.endpoint->connect(meeting(near, far)));
        must(other.endpoint->connect(meeting(far, near)));
        for (Port* port : {&one, &other}) {
            const auto event = port->event();
            CHECK(event.kind == Kind::Conflict);
            CHECK(event.reason == reason);
            CHECK(port->endpoint->state() == EndpointState::Unconnected);
            CHECK(port->quiet());
        }
    };
    meet({.reliability = Reliability::ReliableDelivery}, {.reliability = Reliability::ReliableReception},
         Code::InvalidReliability);
    meet({.max_transfer_bytes = 1000}, {.max_transfer_bytes = 2000}, Code::InvalidTransferSize);
}

TEST_CASE_METHOD(Peers, "peer to peer: without a peer the attempt times out") {
    if (!offered()) return;
    Port one(near);
    auto parameters = meeting(near, far);
    parameters.deadline = Deadline::after(20ms);
    must(one.endpoint->connect(parameters));
    CHECK(one.event().kind == Kind::TimedOut);

    // A request that has timed out is not matched.
    Port late(far);
    parameters = meeting(far, near);
    parameters.deadline = Deadline::after(20ms);
    must(late.endpoint->connect(parameters));
    CHECK(late.event().kind == Kind::TimedOut);
    CHECK(one.quiet());
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "peer to peer: an attempt whose port becomes free later ends at its deadline") {
    if (!able().peer_to_peer) return;
    const auto keeper = provider();
    const Script occupant = [&](Wire& wire) {
        const Node node(*keeper);
        const Address meet = node.address("meet");
        auto listener = node.listen_at(
            {.host = meet.host, .service = service_of(support::peer_to_peer_port(meet.host, meet.host, meet.service))});
        wire.notify();
        wire.await();
        listener.reset();
    };
    const Script peer = [&](Wire& wire) {
        Node node(*keeper);
        Port port(node);
        wire.await();
        auto parameters = meeting(node, node);
        parameters.deadline = Deadline::after(300ms);
        must(port.endpoint->connect(parameters));
        wire.notify();
        require(port.event().kind == Kind::TimedOut, "the end of the attempt");
    };
    CHECK_NOTHROW(run_processes(occupant, peer));
}

TEST_CASE_METHOD(Peers, "peer to peer: an aborted attempt is not matched") {
    if (!offered()) return;
    Port one(near);
    must(one.endpoint->connect(meeting(near, far)));
    one.endpoint->disconnect();
    Port late(far);
    auto parameters = meeting(far, near);
    parameters.deadline = Deadline::after(20ms);
    must(late.endpoint->connect(parameters));
    CHECK(late.event().kind == Kind::TimedOut);
    CHECK(one.quiet());
}

TEST_CASE_METHOD(Peers, "peer to peer: listeners and peers do not connect") {
    if (!offered()) return;
    {
        const auto listener = far.listen("meet");
        Port peer(near);
        auto parameters = meeting(near, far);
        parameters.deadline = Deadline::after(50ms);
        must(peer.endpoint->connect(parameters));
        CHECK(listener->next_request().status().code() == Code::WouldBlock);
        CHECK(peer.event().kind == Kind::TimedOut);
    }
    Port waiting(far);
    must(waiting.endpoint->connect(meeting(far, near)));
    Port client(near);
    CHECK(attempt(client, parameters_for(near, far.address("meet"))) == Code::NoListener);
}

TEST_CASE_METHOD(Peers, "peer to peer: an unknown host is unreachable", "[no-peer]") {
    if (!offered()) return;
    Port one(near);
    const std::array<std::uint8_t, 4> documentation{203, 0, 113, 1};
    auto parameters = meeting(near, far);
    parameters.remote.host = Bytes<Address::max_host>(documentation);
    CHECK(attempt(one, parameters) == Code::Unreachable);
    CHECK(one.endpoint->state() == EndpointState::Disconnected);
}
