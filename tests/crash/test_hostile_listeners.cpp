// SPDX-License-Identifier: BSD-3-Clause
// Listeners of the loopback backend that stop in the middle of an answer. Their requesters must continue within the
// timeout.
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
        require(honest.port.event().kind == Kind::TimedOut, "the time-out");
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
