// SPDX-License-Identifier: BSD-3-Clause
// Allows peers to detect that the process which registered memory was replaced by another one:
// docs/adr/0015-canaries.md.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/loopback/layout.hpp"
#include "viaduct/status.hpp"

namespace viaduct::loopback {

/// A page at a random address. After execve(2), or in another process with the same id, it does not exist. Each copy
/// through the kernel accesses it first.
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
