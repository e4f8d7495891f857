// SPDX-License-Identifier: BSD-3-Clause
// Checks that registered memory of this process is still mapped, because programs may unmap the buffers of a request.
#pragma once

#include <cstdint>
#include <span>

#include "core/work.hpp"

namespace viaduct::support {

/// The sources of messages of at least this size are checked. The system call takes as long as copying about 8 KiB.
/// With smaller buffers an access to unmapped memory faults, like any access of the program itself.
inline constexpr std::uint64_t checked_from_bytes = 256 * 1024;

enum class Probe : std::uint8_t {
    Mapping,  ///< whether memory is mapped: fast, independent of the size
    Reading,  ///< whether memory is readable: checks each page
    Writing,  ///< whether memory is writable: checks each page
};

/// Returns the number of bytes before the first page that fails the check. Takes one system call per SGE if all is
/// mapped.
std::uint64_t mapped_bytes(std::span<const Sge> pieces, Probe probe) noexcept;

}  // namespace viaduct::support
