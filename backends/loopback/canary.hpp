// SPDX-License-Identifier: BSD-3-Clause
// By what peers tell a process that registered memory from whoever takes its place: docs/adr/0015-canaries.md.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/loopback/layout.hpp"
#include "core/status.hpp"

namespace viaduct::loopback {

/// A page at a random address, which a new program after execve(2), or another process with the same number, does not
/// have. Each copy through the kernel begins there.
class Canary {
public:
    static Result<Canary> create(std::uint64_t token) noexcept;

    std::uint64_t address() const noexcept { return reinterpret_cast<std::uint64_t>(page_.get()); }

private:
    struct Unmap {
        void operator()(wire::Canary* page) const noexcept;
    };

    Canary() noexcept = default;

    std::unique_ptr<wire::Canary, Unmap> page_;
};

}  // namespace viaduct::loopback
