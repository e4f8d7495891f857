// SPDX-License-Identifier: BSD-3-Clause
// Addresses: a host and a service, both as bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace viaduct {

/// A byte string with a maximum length.
template <std::size_t Capacity>
class Bytes {
public:
    static constexpr std::size_t capacity = Capacity;

    Bytes() noexcept = default;

    /// Truncates longer input; callers check the length against `capacity` first.
    explicit Bytes(std::span<const std::uint8_t> bytes) noexcept
        : size_(static_cast<std::uint16_t>(std::min(bytes.size(), Capacity))) {
        std::copy_n(bytes.begin(), size_, bytes_.begin());
    }

    std::span<const std::uint8_t> span() const noexcept { return {bytes_.data(), size_}; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

    friend bool operator==(const Bytes& a, const Bytes& b) noexcept { return std::ranges::equal(a.span(), b.span()); }

private:
    std::array<std::uint8_t, Capacity> bytes_{};
    std::uint16_t size_ = 0;
};

/// A host is 4 bytes (IPv4) or 16 bytes (IPv6) in network byte order. A service is any byte string. Ports and
/// connection qualifiers are two bytes in network byte order in every API, so that each API can connect to the others;
/// longer VIPL discriminators are used unchanged.
struct Address {
    static constexpr std::size_t max_host = 16;
    static constexpr std::size_t max_service = 64;

    Bytes<max_host> host;
    Bytes<max_service> service;

    friend bool operator==(const Address&, const Address&) noexcept = default;
};

using HostAddress = Bytes<Address::max_host>;
using Service = Bytes<Address::max_service>;

inline Service service_of(std::uint16_t port) noexcept {
    const std::array bytes{static_cast<std::uint8_t>(port >> 8), static_cast<std::uint8_t>(port)};
    return Service(bytes);
}

/// The port; 0 if the service is not a port.
inline std::uint16_t port_of(const Service& service) noexcept {
    const auto bytes = service.span();
    return bytes.size() == 2 ? static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]) : std::uint16_t{0};
}

}  // namespace viaduct
