// SPDX-License-Identifier: BSD-3-Clause
// Addresses as a person reads them, for reasons and logs.
#pragma once

#include <array>

#include "viaduct/address.hpp"
#include "viaduct/detail/export.hpp"

namespace viaduct {

/// Text that needs no memory.
struct AddressText {
    const char* c_str() const noexcept { return chars.data(); }

    std::array<char, 2 * (Address::max_service + Address::max_host) + 24> chars{};
};

/// "192.0.2.1", "2001:db8::1", or the bytes in hexadecimal if it is neither.
VIADUCT_EXPORT AddressText text_of(const HostAddress& host) noexcept;

/// A port as "port 7471", other printable bytes in quotation marks, anything else in hexadecimal.
VIADUCT_EXPORT AddressText text_of(const Service& service) noexcept;

/// Both: "port 7471 of 192.0.2.1".
VIADUCT_EXPORT AddressText text_of(const Address& address) noexcept;

}  // namespace viaduct
