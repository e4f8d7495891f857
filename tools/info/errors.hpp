// SPDX-License-Identifier: BSD-3-Clause
// Explanations of the codes of the APIs, which are in codes.json.
#pragma once

#include <cstdint>
#include <span>

namespace viaduct::info {

/// What a code of an API means, and why it occurs with Viaduct.
struct Explanation {
    std::int64_t code = 0;
    const char* name = "";
    const char* kind = "";  ///< such as "return code"
    const char* meaning = "";
    const char* causes = "";   ///< may be empty
    const char* section = "";  ///< of the specification
};

std::span<const Explanation> vipl_codes() noexcept;
std::span<const Explanation> dat2_codes() noexcept;
std::span<const Explanation> dat1_codes() noexcept;
std::span<const Explanation> rpma_codes() noexcept;

}  // namespace viaduct::info
