// SPDX-License-Identifier: BSD-3-Clause
// Explanations of the codes of the three APIs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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

/// The kinds of the bits of a status word of VIPL.
inline constexpr std::string_view status_kind = "descriptor status";
inline constexpr std::string_view operation_kind = "descriptor operation";

std::span<const Explanation> vipl_codes() noexcept;
std::span<const Explanation> rpma_codes() noexcept;

/// A DAT_RETURN is a class, a type and a subtype; the codes of types have no subtype, and vice versa.
struct DatCodes {
    std::span<const Explanation> types;
    std::span<const Explanation> subtypes;
    std::span<const Explanation> events;
    std::span<const Explanation> statuses;  ///< of completions
};
DatCodes dat2_codes() noexcept;
DatCodes dat1_codes() noexcept;

}  // namespace viaduct::info
