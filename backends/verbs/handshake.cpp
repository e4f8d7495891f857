// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/handshake.hpp"

#include <algorithm>

#include "backends/support/attribute_codec.hpp"

namespace viaduct::verbs {
namespace {

constexpr std::array<std::uint8_t, 3> magic{0xF1, 0x56, 0x44};
constexpr std::uint8_t version = 1;

/// Version 2.0 of DAT and version 2.0 of a provider. Stock librpma does not recognize a rejection without it.
constexpr std::array<std::uint8_t, 4> bare_refusal{2, 0, 2, 0};

/// Whether the message is sent with a connection request.
bool asks(Handshake::Kind kind) noexcept {
    return kind == Handshake::Kind::Request || kind == Handshake::Kind::PeerRequest || kind == Handshake::Kind::Probe;
}

std::uint64_t number(std::span<const std::uint8_t> bytes) noexcept {
    std::uint64_t value = 0;
    for (const std::uint8_t byte : bytes) value = value << 8 | byte;
    return value;
}

bool has_header(std::span<const std::uint8_t> bytes) noexcept {
    if (bytes.size() < header_size || !std::ranges::equal(bytes.first(magic.size()), magic)) return false;
    const auto kind = bytes[3] & 0xF;
    const std::size_t told = bytes[5] + std::size_t{bytes[18]};
    return bytes[3] >> 4 == version && kind >= static_cast<int>(Handshake::Kind::Request) &&
           kind <= static_cast<int>(Handshake::Kind::Conflict) &&
           support::decode({.flags = bytes[4], .max_transfer_bytes = 0}) && bytes[5] <= Service::capacity &&
           told <= bytes.size() - header_size;
}

}  // namespace

EndpointAttributes Handshake::stock_attributes() noexcept {
    return {.reliability = Reliability::ReliableDelivery,
            .receiver_not_ready = ReceiverNotReady::Wait,
            .refused_write = RefusedWrite::Reported,
            .any_reliable = true,
            .max_transfer_bytes = 0,
            .qos = 0,
            .access = {.remote_write = true, .remote_read = true, .remote_atomic = true}};
}

void EncodedHandshake::append(std::span<const std::uint8_t> bytes) noexcept {
    std::ranges::copy(bytes, bytes_.begin() + size_);
    size_ = static_cast<std::uint8_t>(size_ + bytes.size());
}

std::optional<EncodedHandshake> EncodedHandshake::encode(const Handshake& handshake) noexcept {
    EncodedHandshake encoded;
    const auto data = handshake.private_data.span();
    const auto service = handshake.local_service.span();
    const std::size_t capacity = asks(handshake.kind) ? request_capacity : answer_capacity;
    const bool conflicts = handshake.kind == Handshake::Kind::Conflict;
    if (!handshake.framed && !conflicts) {
        const bool refuses = handshake.kind == Handshake::Kind::Reject;
        if (data.size() + (refuses ? bare_refusal.size() : 0) > capacity) return std::nullopt;
        if (refuses) encoded.append(bare_refusal);
        encoded.append(data);
        return encoded;
    }
    const std::size_t before = handshake.framed ? 0 : bare_refusal.size();  // only of a conflict
    if (before + header_size + service.size() + data.size() > capacity) return std::nullopt;
    if (!handshake.framed) encoded.append(bare_refusal);
    const support::EncodedAttributes attributes = support::encode(handshake.attributes);
    encoded.append(magic);
    encoded.append(static_cast<std::uint64_t>(version << 4 | static_cast<int>(handshake.kind)), 1);
    encoded.append(attributes.flags, 1);
    encoded.append(service.size(), 1);
    encoded.append(attributes.max_transfer_bytes, 4);
    encoded.append(handshake.service, 8);
    encoded.append(data.size(), 1);
    encoded.append(service);
    encoded.append(data);
    return encoded;
}

Handshake decode(std::span<const std::uint8_t> bytes) noexcept {
    Handshake handshake;
    if (!has_header(bytes)) {
        handshake.private_data = PrivateData(bytes);
        return handshake;
    }
    handshake.framed = true;
    handshake.kind = static_cast<Handshake::Kind>(bytes[3] & 0xF);
    const auto max_transfer_bytes = static_cast<std::uint32_t>(number(bytes.subspan(6, 4)));
    handshake.attributes = *support::decode({.flags = bytes[4], .max_transfer_bytes = max_transfer_bytes});
    handshake.service = number(bytes.subspan(10, 8));
    handshake.local_service = Service(bytes.subspan(header_size, bytes[5]));
    handshake.private_data = PrivateData(bytes.subspan(header_size + bytes[5], bytes[18]));
    return handshake;
}

Handshake decode_refusal(std::span<const std::uint8_t> bytes) noexcept {
    const std::size_t told = bare_refusal.size();
    const bool bare = bytes.size() >= told && std::ranges::equal(bytes.first(told), bare_refusal);
    return decode(bare ? bytes.subspan(told) : bytes);
}

}  // namespace viaduct::verbs
