// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/socket_address.hpp"

#include <netinet/in.h>

#include <cstddef>
#include <cstring>

namespace viaduct {
namespace {

HostAddress bytes_of(const auto& host) noexcept {
    return HostAddress({reinterpret_cast<const std::uint8_t*>(&host), sizeof host});
}

}  // namespace

SocketAddress::SocketAddress(const HostAddress& host, std::uint16_t port) noexcept {
    const auto bytes = host.span();
    if (bytes.size() == sizeof(in_addr)) {
        auto& address = reinterpret_cast<sockaddr_in&>(storage);
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        std::memcpy(&address.sin_addr, bytes.data(), bytes.size());
    } else if (bytes.size() == sizeof(in6_addr)) {
        auto& address = reinterpret_cast<sockaddr_in6&>(storage);
        address.sin6_family = AF_INET6;
        address.sin6_port = htons(port);
        std::memcpy(&address.sin6_addr, bytes.data(), bytes.size());
    }
}

HostAddress host_of(const sockaddr* address) noexcept {
    if (address == nullptr) return {};
    switch (address->sa_family) {
        case AF_INET: return bytes_of(reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
        case AF_INET6: return bytes_of(reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
        default: return {};
    }
}

std::uint16_t port_of(const sockaddr* address) noexcept {
    static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
    return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
}

}  // namespace viaduct
