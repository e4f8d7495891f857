// SPDX-License-Identifier: BSD-3-Clause
// What tests between two processes share: the ends of a connection, and the ways to a peer's memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

#include "tests/contract/backends.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/rig.hpp"

namespace viaduct::testing {

/// One end of a connection between two processes. The server listens before it lets the client go on.
struct End {
    explicit End(backend::Provider& provider, const PortOptions& options = {});

    void serve(Wire& wire);
    void call(Wire& wire);

    Node node;
    Port port;
};

/// How the initiator reaches the target's memory.
struct Path {
    const char* name;
    Memory memory;
    bool process_vm;
};

/// All of them where memory is shared by the system's means; where a device reaches it, there is one.
std::span<const Path> paths(const BackendUnderTest& backend) noexcept;

/// Closes the ways that the path does not have, in this process.
void prepare(const Path& path);

/// What another process has in its memory, without its help. False where the system does not tell.
bool peek(pid_t process, std::uint64_t address, std::span<std::byte> bytes);

}  // namespace viaduct::testing
