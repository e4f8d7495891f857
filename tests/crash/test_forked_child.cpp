// SPDX-License-Identifier: BSD-3-Clause
// A process that dies while a child that it forked lives on. The child holds copies of all its descriptors, so no
// socket hangs up; the survivor must see the loss all the same.
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

/// Accepts, leaves a child behind, and waits for its end.
[[noreturn]] void connect_and_fork(backend::Provider& provider, Wire& wire) {
    Node node(provider);
    Port port(node);
    const auto listener = node.listen(meeting_place);
    wire.notify();
    accept_on(port, *listener);
    const pid_t heir = fork();
    require(heir >= 0, "fork");
    if (heir != 0) wire.send(heir);
    while (true) pause();
}

}  // namespace

TEST_CASE("crash: the death of a peer is seen although a child that it forked lives on") {
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
