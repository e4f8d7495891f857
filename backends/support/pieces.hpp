// SPDX-License-Identifier: BSD-3-Clause
// The scatter/gather elements (SGEs) of a request.
#pragma once

#include <cstdint>
#include <span>

#include "viaduct/work.hpp"

namespace viaduct::support {

/// The sum may exceed 32 bits.
inline std::uint64_t total_length(std::span<const Sge> sges) noexcept {
    std::uint64_t total = 0;
    for (const Sge& sge : sges) total += sge.length;
    return total;
}

}  // namespace viaduct::support
