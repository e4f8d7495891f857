// SPDX-License-Identifier: BSD-3-Clause
// The attributes of an endpoint in wire format, for all backends; docs/verbs-wire.md lists the bits.
#pragma once

#include <cstdint>
#include <optional>

#include "viaduct/attributes.hpp"

namespace viaduct::support {

/// `qos` is omitted because no device defines a value other than 0. Local write access is omitted because only regions
/// have it.
struct EncodedAttributes {
    std::uint8_t flags;
    std::uint32_t max_transfer_bytes;
};

namespace attribute_flags {
inline constexpr std::uint8_t reliability = 3;  // a number in the lowest two bits
inline constexpr std::uint8_t breaks = 4;
inline constexpr std::uint8_t silent = 8;
inline constexpr std::uint8_t remote_write = 16;
inline constexpr std::uint8_t remote_read = 32;
inline constexpr std::uint8_t remote_atomic = 64;
inline constexpr std::uint8_t any_reliable = 128;
}  // namespace attribute_flags

inline EncodedAttributes encode(const EndpointAttributes& attributes) noexcept {
    auto flags = static_cast<std::uint8_t>(attributes.reliability);
    const auto set = [&flags](bool wanted, std::uint8_t flag) {
        if (wanted) flags = static_cast<std::uint8_t>(flags | flag);
    };
    set(attributes.receiver_not_ready == ReceiverNotReady::Break, attribute_flags::breaks);
    set(attributes.refused_write == RefusedWrite::Silent, attribute_flags::silent);
    set(attributes.access.remote_write, attribute_flags::remote_write);
    set(attributes.access.remote_read, attribute_flags::remote_read);
    set(attributes.access.remote_atomic, attribute_flags::remote_atomic);
    set(attributes.any_reliable, attribute_flags::any_reliable);
    return {.flags = flags, .max_transfer_bytes = attributes.max_transfer_bytes};
}

/// Returns nothing if the reliability level is invalid. Unknown flags are ignored.
inline std::optional<EndpointAttributes> decode(const EncodedAttributes& encoded) noexcept {
    const auto reliability = static_cast<Reliability>(encoded.flags & attribute_flags::reliability);
    if (reliability > Reliability::ReliableReception) return std::nullopt;
    const auto has = [&encoded](std::uint8_t flag) { return (encoded.flags & flag) != 0; };
    return EndpointAttributes{
        .reliability = reliability,
        .receiver_not_ready = has(attribute_flags::breaks) ? ReceiverNotReady::Break : ReceiverNotReady::Wait,
        .refused_write = has(attribute_flags::silent) ? RefusedWrite::Silent : RefusedWrite::Reported,
        .any_reliable = has(attribute_flags::any_reliable),
        .max_transfer_bytes = encoded.max_transfer_bytes,
        .qos = 0,
        .access = {.remote_write = has(attribute_flags::remote_write),
                   .remote_read = has(attribute_flags::remote_read),
                   .remote_atomic = has(attribute_flags::remote_atomic)}};
}

}  // namespace viaduct::support
