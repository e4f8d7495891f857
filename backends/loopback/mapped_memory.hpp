// SPDX-License-Identifier: BSD-3-Clause
// Whether registered memory of this process is still mapped: programs may unmap what a request refers to.
#pragma once

#include <cstdint>
#include <span>

#include "core/work.hpp"

namespace viaduct::loopback {

/// From this size on a message is worth the system call: it takes as long as copying some 8 KiB. An access to smaller
/// pieces that were unmapped faults, as any access of the program does.
inline constexpr std::uint64_t checked_from_bytes = 256 * 1024;

enum class Probe : std::uint8_t {
    Mapping,  ///< is something mapped there: quick, whatever the size
    Access,   ///< can it be read: looks at each page
};

/// How many bytes of the pieces are there, up to the first page that is not. One system call for each piece where all
/// is.
std::uint64_t mapped_bytes(std::span<const Sge> pieces, Probe probe) noexcept;

}  // namespace viaduct::loopback
