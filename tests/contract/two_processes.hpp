// SPDX-License-Identifier: BSD-3-Clause
// Shared by tests with two processes: the ends of a connection, and the methods of access to a peer's memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

#include "tests/contract/backends.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/rig.hpp"

namespace viaduct::testing {

/// One end of a connection between two processes. The client connects after the server has started to listen.
struct End {
    explicit End(backend::Provider& provider, const PortOptions& options = {});

    void serve(Wire& wire);
    void call(Wire& wire);

    Node node;
    Port port;
};

/// A method of access to the target's memory.
struct Path {
    const char* name;
    Memory memory;
    bool process_vm;
};

/// Returns all methods of the system, or a single one for RDMA devices.
std::span<const Path> paths(const BackendUnderTest& backend) noexcept;

/// Disables the methods that are not part of the path in this process.
void prepare(const Path& path);

/// Reads the memory of another process without its help. Returns false if the system does not allow it.
bool peek(pid_t process, std::uint64_t address, std::span<std::byte> bytes);

}  // namespace viaduct::testing
