// SPDX-License-Identifier: BSD-3-Clause
// Listeners of the loopback backend that stop in the middle of an answer. Their requesters must continue within the
// timeout.
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>

#include "tests/crash/hostile.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;
using Kind = ConnectionEventKind;

TEST_CASE("hostile: a listener that accepts and sends nothing does not delay the deadline") {
    const auto client = [](Wire& wire) {
        Honest honest(wire);
        honest.connect(Deadline::after(100ms));
        require(honest.port.event().kind == Kind::TimedOut, "the timeout");
        require(honest.port.endpoint->state() == EndpointState::Unconnected, "the state");
        wire.notify();
        wire.await();
    };
    const auto listener = [](Wire& wire) {
        const Hostile hostile(wire);
        const Talk talk = hostile.await_request();
        talk.segment().handshake.store(loopback::wire::Handshake::Accepted);
        wire.await();
        require(readable(talk.socket.get(), patience()), "the hang-up");
        require(talk.segment().closing[0].load() == 1, "a disconnection, not a death");
        wire.notify();
    };
    CHECK_NOTHROW(run_processes(client, listener));
}

TEST_CASE("hostile: a listener that accepts and hangs up ends the attempt immediately") {
    const auto client = [](Wire& wire) {
        Honest honest(wire);
        honest.connect(Deadline::after(10min));
        require(honest.port.event().kind == Kind::Unreachable, "the end");
        wire.notify();
    };
    const auto listener = [](Wire& wire) {
        const Hostile hostile(wire);
        {
            const Talk talk = hostile.await_request();
            talk.segment().handshake.store(loopback::wire::Handshake::Accepted);
        }
        wire.await();
    };
    CHECK_NOTHROW(run_processes(client, listener));
}

TEST_CASE("hostile: the answer of a peer that has not read everything arrives") {
    using namespace viaduct::loopback;
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0);
    const UniqueFd own(ends[0]);
    const HandshakeMessage request = make_handshake(MessageType::Connect, {}, {}, {});
    const HandshakeMessage answer = make_handshake(MessageType::Rejected, {}, {}, {});
    {
        const UniqueFd peer(ends[1]);
        must(send_message(own.get(), &request, sizeof request, {}));
        must(send_message(peer.get(), &answer, sizeof answer, {}));
    }
    CHECK(must(receive_handshake(own.get())).type == MessageType::Rejected);
    CHECK(must(receive_handshake(own.get())).hung_up);
}
