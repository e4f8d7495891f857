// SPDX-License-Identifier: BSD-3-Clause
// Shared by the tests of hostile peers: a process that uses the library, and one that uses the wire protocol directly.
#pragma once

#include "core/provider.hpp"
#include "tests/crash/wire_speaker.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/rig.hpp"

namespace viaduct::testing {

inline backend::Provider& loopback_provider() {
    backend::Provider* provider = must(find_provider("loopback"));
    require(provider != nullptr, "the loopback backend");
    return *provider;
}

inline constexpr std::size_t page = 4096;
inline constexpr std::uint32_t hostile_key = 0x10001;  // the key of a hostile target's region

/// A process that uses the library, with a port. It tells the test's other process its address.
struct Honest {
    explicit Honest(Wire& wire, bool shared = false)
        : shared_receives(shared ? node.make_shared_receives() : nullptr),
          port(node, {.shared_receives = shared_receives}) {
        wire.send(node.address("hostile"));
        wire.await();
    }

    void connect(const Deadline& deadline = patience()) {
        auto parameters = parameters_for(node, node.address("hostile"));
        parameters.deadline = deadline;
        must(port.endpoint->connect(parameters));
    }
    void be_connected() {
        connect();
        require(port.event().kind == ConnectionEventKind::Established, "a connection");
    }

    void post_receive(const ReceiveRequest& request) {
        shared_receives ? post(*shared_receives, request) : port.post(request);
    }

    CompletionCode read(std::uint64_t address, const Buffer& into) {
        const Sge piece = into.sge(0, 8);
        port.post(read_of(1, piece, {.address = address, .key = hostile_key}));
        return port.sent().code;
    }
    CompletionCode write(std::uint64_t address, const Buffer& from) {
        const Sge piece = from.sge(0, 8);
        port.post(write_of(1, piece, {.address = address, .key = hostile_key}));
        return port.sent().code;
    }

    Node node{loopback_provider()};
    std::shared_ptr<SharedReceiveQueue> shared_receives;  // or null
    Port port;
};

/// A speaker that listens for the process that uses the library.
struct Hostile : Speaker {
    explicit Hostile(Wire& wire) {
        listen(wire.receive<Address>());
        wire.notify();
    }
};

}  // namespace viaduct::testing
