// SPDX-License-Identifier: BSD-3-Clause
// The pieces of a request.
#pragma once

#include <cstdint>
#include <span>

#include "core/work.hpp"

namespace viaduct::support {

/// No 32 bits hold what so many pieces may have.
inline std::uint64_t total_length(std::span<const Sge> sges) noexcept {
    std::uint64_t total = 0;
    for (const Sge& sge : sges) total += sge.length;
    return total;
}

}  // namespace viaduct::support
