// SPDX-License-Identifier: BSD-3-Clause
// Enumerations as users name their values.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace viaduct::measure {

/// The names of all values of an enumeration, in their order.
template <class Enum>
inline constexpr std::array<std::string_view, 0> names{};

template <class Enum>
requires std::is_enum_v<Enum>
constexpr std::string_view text_of(Enum value) noexcept {
    const auto index = static_cast<std::size_t>(value);
    return index < names<Enum>.size() ? names<Enum>[index] : "unknown";
}

}  // namespace viaduct::measure
