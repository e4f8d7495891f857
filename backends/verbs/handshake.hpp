// SPDX-License-Identifier: BSD-3-Clause
// What goes along with a request to connect and with its answer, beside the consumer's own data.
//
// A *bare* connection carries the consumer's data and nothing else, as librpma and DAT programs over the connection
// manager expect it. A *framed* one puts a header before them, all numbers big endian:
//
//    0  3  the bytes F1 56 44                        10  8  which service is asked for: fingerprint(), 0 in an answer
//    3  1  version (high 4 bits), Kind (low 4)       18  1  m
//    4  1  attributes: see encode()                   19  n  the service of the sender's local address
//    5  1  n                                             m  the consumer's data
//    6  4  maximum transfer size
//
// A request has room for 56 bytes in all. Only a bare refusal has four bytes before the data: a version, by which DAT
// providers know it from those that the kernel sends for a process that ends.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "backends/support/services.hpp"
#include "core/attributes.hpp"
#include "core/events.hpp"

namespace viaduct::verbs {

struct Handshake {
    enum class Kind : std::uint8_t {
        Request = 1,
        Accept = 2,
        Reject = 3,
        NoListener = 4,
        PeerRequest = 5,  ///< peer to peer: see peer_connector.hpp
        Probe = 6,
        Conflict = 7,  ///< refuses a PeerRequest whose attributes are others
    };

    Kind kind = Kind::Request;
    bool framed = false;  ///< the fields that follow are told, not assumed
    EndpointAttributes attributes = stock_attributes();
    std::uint64_t service = 0;
    Service local_service{};
    PrivateData private_data{};

    /// What is known of a peer that sends no header: a program over librdmacm.
    static EndpointAttributes stock_attributes() noexcept;
};

/// The room for everything in a request, and for what comes before service and data in a framed one.
inline constexpr std::size_t request_capacity = 56;
inline constexpr std::size_t answer_capacity = 148;
inline constexpr std::size_t header_size = 19;

class EncodedHandshake {
public:
    const std::uint8_t* data() const noexcept { return bytes_.data(); }
    std::uint8_t size() const noexcept { return size_; }

    /// Nothing where service and data are too long together.
    static std::optional<EncodedHandshake> encode(const Handshake& handshake) noexcept;

private:
    void append(std::span<const std::uint8_t> bytes) noexcept;
    void append(std::uint64_t value, int bytes) noexcept;

    std::array<std::uint8_t, answer_capacity> bytes_{};
    std::uint8_t size_ = 0;
};

/// Bytes that are no header are a consumer's data. InfiniBand pads them with zeros up to what a message holds: framed
/// ones say their length, of bare ones the padding is part.
Handshake decode(std::span<const std::uint8_t> bytes) noexcept;

/// The same of a refusal.
Handshake decode_refusal(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace viaduct::verbs
