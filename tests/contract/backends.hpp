// SPDX-License-Identifier: BSD-3-Clause
// The backends that the contract suite runs on. One line in backends.cpp puts another one under it.
//
// Cases with the tag [no-peer] need nobody at the other end of a connection. They are what a new backend can pass
// first, and what the null backend runs.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string_view>

#include "tests/support/rig.hpp"

namespace viaduct::testing {

struct BackendUnderTest {
    std::string_view name;
    bool has_peers = true;           ///< somebody answers connect(); else it runs only where VIADUCT_BACKEND names it
    bool several_processes = false;  ///< its connections lead from process to process
    bool by_device = false;          ///< hardware reaches the peer's memory, whatever it is
    std::shared_ptr<backend::Provider> (*provider)();
};

/// Test cases with this fixture run once for each backend, with two nodes that have nothing in common.
class EveryBackend {
protected:
    EveryBackend();

    /// What a sender is told of a message that is longer than the receive. Soft-RoCE does not tell it from a bad
    /// receive.
    bool says_too_long(CompletionCode code) const noexcept {
        return code == CompletionCode::RemoteLength || (backend.by_device && code == CompletionCode::RemoteOperation);
    }

    const BackendUnderTest& backend;

private:
    Catch::ScopedMessage note_;  // names the backend in what a failing test prints

protected:
    std::shared_ptr<backend::Provider> provider;
    Node near;
    Node far;
};

/// Two endpoints, connected.
struct Connection {
    Connection(Node& client_node, Node& server_node, const PortOptions& options = {});
    Port client;
    Port server;
};

/// Test cases with this fixture run once for each backend that reaches other processes. Devices are opened in the
/// processes of the scripts only.
class EveryBackendBetweenProcesses {
protected:
    EveryBackendBetweenProcesses();

    std::shared_ptr<backend::Provider> provider() const { return backend.provider(); }

    /// Of its first device, which is opened for that in a process of its own.
    Capabilities able() const;

    const BackendUnderTest& backend;

private:
    Catch::ScopedMessage note_;
};

}  // namespace viaduct::testing
