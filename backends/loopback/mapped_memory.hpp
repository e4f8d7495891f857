// SPDX-License-Identifier: BSD-3-Clause
// Whether registered memory of this process is still mapped: programs may unmap what a request refers to.
#pragma once

#include <cstdint>
#include <span>

#include "core/work.hpp"

namespace viaduct::loopback {

/// How many bytes of the pieces can be accessed, up to the first page that is not mapped. One system call for each
/// piece where everything is mapped.
std::uint64_t mapped_bytes(std::span<const Sge> pieces) noexcept;

}  // namespace viaduct::loopback
