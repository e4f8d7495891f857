// SPDX-License-Identifier: BSD-3-Clause
// Addresses and ports in text, as the core knows them.
#pragma once

#include "core/address.hpp"
#include "core/attributes.hpp"

namespace viaduct::rpma {

enum class Side : std::uint8_t {
    Passive,  ///< one of this host's addresses; the address for any counts, too
    Active,
};

/// The number of the device that has an address of this host, or that leads to it: the one whose address it is, else
/// the first. Unreachable: the text is no address, or that of another host. Throws std::bad_alloc.
Result<std::uint32_t> find_device(const char* host, const DeviceAttributes& device, Side side);

/// A port as a service. InvalidParameter: neither a number nor the name of a service.
Result<Bytes<Address::max_service>> find_service(const char* port);

}  // namespace viaduct::rpma
