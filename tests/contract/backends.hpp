// SPDX-License-Identifier: BSD-3-Clause
// The backends that the contract suite tests. To add one, add a line to backends.cpp.
//
// Cases with the tag [no-peer] need no peer. A new backend can pass them first.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string_view>

#include "tests/support/rig.hpp"

namespace viaduct::testing {

struct BackendUnderTest {
    std::string_view name;
    bool by_default = true;          ///< tested even if VIADUCT_BACKEND does not select it
    bool several_processes = false;  ///< connects different processes
    bool by_device = false;          ///< hardware accesses any kind of memory of the peer
    /// A process counts as alive while another program has its descriptors open.
    bool lives_by_descriptors = false;
    bool counts = true;  ///< endpoints have counters
    std::shared_ptr<backend::Provider> (*provider)();
};

/// The fixture for test cases that run once for each backend, with two nodes that share nothing.
class EveryBackend {
protected:
    EveryBackend();

    /// Checks the sender's error for a message longer than the receive. Soft-RoCE does not distinguish this from an
    /// invalid receive.
    bool says_too_long(CompletionCode code) const noexcept {
        return code == CompletionCode::RemoteLength || (backend.by_device && code == CompletionCode::RemoteOperation);
    }

    /// Checks the length of a message that `far` has received. Soft-RoCE may put a packet into a receive several times
    /// (docs/verbs-wire.md).
    bool is_length(std::size_t received, std::size_t sent) const;

    const BackendUnderTest& backend;

private:
    Catch::ScopedMessage note_;  // names the backend in failure messages

protected:
    std::shared_ptr<backend::Provider> provider;
    Node near;
    Node far;
};

/// Two connected endpoints.
struct Connection {
    Connection(Node& client_node, Node& server_node, const PortOptions& options = {});
    Port client;
    Port server;
};

/// Sends a message from one endpoint to another that it is connected to.
void exchange(Port& one, Port& other);

/// The fixture for test cases that run once for each backend that connects processes. Only the scripts' processes open
/// devices.
class EveryBackendBetweenProcesses {
protected:
    EveryBackendBetweenProcesses();

    std::shared_ptr<backend::Provider> provider() const { return backend.provider(); }

    /// Returns the capabilities of the first device, which a separate process opens for this purpose.
    Capabilities able() const;

    const BackendUnderTest& backend;

private:
    Catch::ScopedMessage note_;
};

}  // namespace viaduct::testing
