// SPDX-License-Identifier: BSD-3-Clause
// The private data of connection requests and their answers.
//
// A *bare* connection carries only the consumer's data, as librpma and DAT programs expect that use the connection
// manager directly. A *framed* one has a header before them, with all numbers big-endian:
//
//    0  3  the bytes F1 56 44                        10  8  fingerprint() of the requested service, 0 in an answer
//    3  1  version (high 4 bits), Kind (low 4)       18  1  m
//    4  1  attributes: see encode()                   19  n  the service of the sender's local address
//    5  1  n                                             m  the consumer's data
//    6  4  maximum transfer size
//
// A request has room for 56 bytes in total. Of the bare messages, only a refusal has four bytes before the data: a
// version. It allows DAT providers to distinguish a refusal from one that the kernel sends when a process ends.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "backends/support/services.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/events.hpp"

namespace viaduct::verbs {

struct Handshake {
    enum class Kind : std::uint8_t {
        Request = 1,
        Accept = 2,
        Reject = 3,
        NoListener = 4,
        PeerRequest = 5,  ///< peer-to-peer: see peer_connector.hpp
        Probe = 6,
        Conflict = 7,  ///< refuses a request of either model because the attributes conflict; never bare
    };

    Kind kind = Kind::Request;
    bool framed = false;  ///< the members below were received rather than assumed; of an answer: the request was framed
    EndpointAttributes attributes = stock_attributes();
    std::uint64_t service = 0;
    Service local_service{};
    PrivateData private_data{};

    /// Assumptions about a peer that sends no header: a program that uses librdmacm directly.
    static EndpointAttributes stock_attributes() noexcept;
};

/// The maximum size of the private data of a request, and of the part before the service and the data in a framed one.
inline constexpr std::size_t request_capacity = 56;
inline constexpr std::size_t answer_capacity = 148;
inline constexpr std::size_t header_size = 19;

class EncodedHandshake {
public:
    const std::uint8_t* data() const noexcept { return bytes_.data(); }
    std::uint8_t size() const noexcept { return size_; }

    /// Returns nothing if the service and the data are too long together.
    static std::optional<EncodedHandshake> encode(const Handshake& handshake) noexcept;

private:
    void append(std::span<const std::uint8_t> bytes) noexcept;
    void append(std::uint64_t value, int bytes) noexcept {
        while (bytes-- > 0) bytes_[size_++] = static_cast<std::uint8_t>(value >> (8 * bytes));
    }

    std::array<std::uint8_t, answer_capacity> bytes_{};
    std::uint8_t size_ = 0;
};

/// Private data without a valid header are the consumer's data. InfiniBand pads them with zeros to the size of the
/// message. Framed data contain their length; for bare data the padding is part of the data.
Handshake decode(std::span<const std::uint8_t> bytes) noexcept;

/// Like decode(), for the private data of a refusal.
Handshake decode_refusal(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace viaduct::verbs
