// SPDX-License-Identifier: BSD-3-Clause
// Where an endpoint is found: the bytes of a host and the bytes of a service.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace viaduct {

/// A byte string of bounded length, by value.
template <std::size_t Capacity>
class Bytes {
public:
    static constexpr std::size_t capacity = Capacity;

    Bytes() noexcept = default;

    /// Longer input is cut: callers check against `capacity` first and report the length themselves.
    explicit Bytes(std::span<const std::uint8_t> bytes) noexcept
        : size_(static_cast<std::uint16_t>(std::min(bytes.size(), Capacity))) {
        std::memcpy(bytes_.data(), bytes.data(), size_);
    }

    std::span<const std::uint8_t> span() const noexcept { return {bytes_.data(), size_}; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

    friend bool operator==(const Bytes& a, const Bytes& b) noexcept { return std::ranges::equal(a.span(), b.span()); }

private:
    std::array<std::uint8_t, Capacity> bytes_{};
    std::uint16_t size_ = 0;
};

/// A host address is 4 bytes (IPv4) or 16 bytes (IPv6), network order. A service is any bytes: a port or connection
/// qualifier is its two-byte big-endian form, so that every front-end finds the others; longer VIPL discriminators
/// stay as they are.
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

/// 0 where the service is not a port.
inline std::uint16_t port_of(const Service& service) noexcept {
    const auto bytes = service.span();
    return bytes.size() == 2 ? static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]) : std::uint16_t{0};
}

}  // namespace viaduct
