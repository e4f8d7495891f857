// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>

namespace viaduct {

/// Two digits for each byte. Throws std::bad_alloc.
inline std::string hex(std::span<const std::uint8_t> bytes) { return fmt::format("{:02x}", fmt::join(bytes, "")); }

}  // namespace viaduct
