// SPDX-License-Identifier: BSD-3-Clause
// How much of the memory of a request can be used, after an access to it has failed.
#pragma once

#include <cstdint>
#include <span>

#include "viaduct/work.hpp"

namespace viaduct::support {

enum class Probe : std::uint8_t { Reading, Writing };

/// Returns the number of bytes before the first page that cannot be read or written.
std::uint64_t usable_bytes(std::span<const Sge> pieces, Probe probe) noexcept;

}  // namespace viaduct::support
