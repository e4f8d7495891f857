// SPDX-License-Identifier: BSD-3-Clause
// Hosts and ports as socket addresses of the system.
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "viaduct/address.hpp"
#include "viaduct/detail/export.hpp"

namespace viaduct {

/// An IPv4 or IPv6 address with a port in host byte order; AF_UNSPEC and all zeros if the host is neither.
struct VIADUCT_EXPORT SocketAddress {
    SocketAddress(const HostAddress& host, std::uint16_t port) noexcept;

    sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
    bool valid() const noexcept { return storage.ss_family != AF_UNSPEC; }

    sockaddr_storage storage{};
};

/// Empty if the address is null, or neither IPv4 nor IPv6.
VIADUCT_EXPORT HostAddress host_of(const sockaddr* address) noexcept;

/// The port of an IPv4 or IPv6 address.
VIADUCT_EXPORT std::uint16_t port_of(const sockaddr* address) noexcept;

}  // namespace viaduct
