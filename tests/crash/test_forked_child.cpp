// SPDX-License-Identifier: BSD-3-Clause
// A process dies while a child that it forked is alive. The survivor must detect the loss nevertheless.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "core/provider.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr std::string_view meeting_place = "forked child";

[[noreturn]] void fork_and_wait_to_be_killed(Wire& wire) {
    const pid_t heir = fork();
    require(heir >= 0, "fork");
    if (heir != 0) wire.send(heir);
    while (true) pause();
}

[[noreturn]] void connect_and_fork(backend::Provider& provider, Wire& wire) {
    Node node(provider);
    Port port(node);
    const auto listener = node.listen(meeting_place);
    wire.notify();
    accept_on(port, *listener);
    fork_and_wait_to_be_killed(wire);
}

[[noreturn]] void fork_without_an_answer(backend::Provider& provider, Wire& wire) {
    Node node(provider);
    const auto listener = node.listen(meeting_place);
    wire.notify();
    const auto request = next_request(*listener);
    require(request != nullptr, "a request");
    fork_and_wait_to_be_killed(wire);
}

}  // namespace

TEST_CASE("crash: the death of a peer is detected although its forked child survives") {
    backend::Provider* provider = must(find_provider("loopback"));
    Child victim([&](Wire& wire) { connect_and_fork(*provider, wire); });
    Node node(*provider);
    Port port(node);
    victim.wire().await();
    connect_to(port, node.address(meeting_place));
    const auto heir = victim.wire().receive<pid_t>();

    victim.kill();
    CHECK(port.event().kind == ConnectionEventKind::Lost);
    CHECK(::kill(heir, 0) == 0);
    ::kill(heir, SIGKILL);
}

TEST_CASE("crash: a request whose listener dies ends although the listener's forked child survives") {
    backend::Provider* provider = must(find_provider("loopback"));
    Child victim([&](Wire& wire) { fork_without_an_answer(*provider, wire); });
    Node node(*provider);
    Port port(node);
    victim.wire().await();
    const Address address = node.address(meeting_place);
    REQUIRE(port.endpoint->connect(parameters_for(node, address)).ok());
    const auto heir = victim.wire().receive<pid_t>();

    victim.kill();
    CHECK(port.event().kind == ConnectionEventKind::Rejected);
    CHECK(::kill(heir, 0) == 0);
    CHECK(attempt(port, parameters_for(node, address)) == Code::NoListener);
    ::kill(heir, SIGKILL);
}
