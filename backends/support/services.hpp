// SPDX-License-Identifier: BSD-3-Clause
// Maps services, which are any bytes, to ports: docs/verbs-wire.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>

#include "viaduct/address.hpp"

namespace viaduct::support {

/// A hash to distinguish byte strings: 64-bit FNV-1a. A hash may be the start value of another one.
constexpr std::uint64_t fingerprint(std::span<const std::uint8_t> bytes,
                                    std::uint64_t hash = 0xcbf29ce484222325u) noexcept {
    for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
    return hash;
}
inline std::uint64_t fingerprint(const Service& service) noexcept { return fingerprint(service.span()); }

/// Returns a port between 16384 and 32767, below the system's range of ephemeral ports.
constexpr std::uint16_t hashed_port(std::uint64_t hash) noexcept {
    return static_cast<std::uint16_t>(0x4000 | ((hash ^ hash >> 29) & 0x3FFF));
}

/// Returns the port of a service: the port itself if the service consists of the two bytes of a port, otherwise a
/// hashed one. Services that share a port have different fingerprints.
inline std::uint16_t port_for(const Service& service) noexcept {
    const std::uint16_t port = port_of(service);
    return port != 0 ? port : hashed_port(fingerprint(service));
}

inline bool is_lower(const HostAddress& one, const HostAddress& other) noexcept {
    return std::ranges::lexicographical_compare(one.span(), other.span());
}

/// Returns the port of a peer-to-peer connection. It is the same on both hosts and, unless hashes collide, not used by
/// any listener.
inline std::uint16_t peer_to_peer_port(const HostAddress& one, const HostAddress& other,
                                       const Service& service) noexcept {
    const auto& [lower, higher] = is_lower(one, other) ? std::tie(one, other) : std::tie(other, one);
    return hashed_port(fingerprint(service.span(), fingerprint(higher.span(), fingerprint(lower.span()))));
}

}  // namespace viaduct::support
