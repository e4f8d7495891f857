// SPDX-License-Identifier: BSD-3-Clause
// HMAC-SHA256 by OpenSSL's libcrypto, which is loaded at the first use: linked to the library, it would double the time
// that programs take to start, also of those that use another backend.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>

#include "backends/ofi/control.hpp"
#include "core/status.hpp"

namespace viaduct::ofi {

/// Loads libcrypto, which takes about 2 ms, unless it has been loaded. Unsupported: there is none, and the reason has
/// been logged.
Status load_crypto() noexcept;

/// The MAC of the concatenated parts. NoResources: out of memory. Errors of load_crypto().
Result<control::Mac> hmac_sha256(std::span<const std::byte> key,
                                 std::initializer_list<std::span<const std::byte>> parts) noexcept;

/// Compares in a time that does not depend on where they differ.
bool equal_in_constant_time(std::span<const std::byte> one, std::span<const std::byte> other) noexcept;

}  // namespace viaduct::ofi
