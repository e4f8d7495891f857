// SPDX-License-Identifier: BSD-3-Clause
// Hosts and ports as the system has them.
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "core/address.hpp"
#include "core/export.hpp"

namespace viaduct {

/// An IPv4 or IPv6 address with a port in host order. Of family AF_UNSPEC, and all zero, where the host is neither.
struct VIADUCT_EXPORT SocketAddress {
    SocketAddress(const HostAddress& host, std::uint16_t port) noexcept;

    sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
    bool valid() const noexcept { return storage.ss_family != AF_UNSPEC; }

    sockaddr_storage storage{};
};

/// Empty where the address is neither IPv4 nor IPv6, or null.
VIADUCT_EXPORT HostAddress host_of(const sockaddr* address) noexcept;

/// The port of an IPv4 or IPv6 address.
VIADUCT_EXPORT std::uint16_t port_of(const sockaddr* address) noexcept;

}  // namespace viaduct
