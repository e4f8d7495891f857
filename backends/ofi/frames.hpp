// SPDX-License-Identifier: BSD-3-Clause
// The messages that two engines exchange through libfabric, called frames: docs/ofi-wire.md. Whoever sends them may be
// hostile: copy the header once, check it, and use the copy.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace viaduct::ofi {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

enum class FrameKind : std::uint8_t {
    Open = 1,     ///< makes libfabric connect the two engines; no sequence number
    Acknowledge,  ///< carries only the counters of the header; no sequence number

    // Requests: executed in order, possibly late.
    Message,      ///< a fragment of a send
    Write,        ///< a fragment of an RDMA write
    Read,         ///< `total` bytes
    AtomicWrite,  ///< the payload is the value
    FetchAdd,     ///< the payload is the value to add
    CompareSwap,  ///< the payload is the value to compare and the one to store
    FlushVisible,
    FlushPersistent,  ///< the payload is the length of the range

    // Responses: handled as soon as all earlier ones have arrived.
    Data,     ///< a fragment of what a Read, FetchAdd or CompareSwap returns
    Refused,  ///< `immediate` is a CompletionCode, `key` the number of the refused frame; unreliable connections only
};

constexpr bool has_sequence(FrameKind kind) noexcept { return kind > FrameKind::Acknowledge; }
constexpr bool is_response(FrameKind kind) noexcept { return kind >= FrameKind::Data; }

namespace frame_flags {
inline constexpr std::uint8_t more = 1;        ///< further fragments of the operation follow
inline constexpr std::uint8_t immediate = 2;   ///< `immediate` is data for the receive
inline constexpr std::uint8_t solicited = 4;   ///< wakes consumers that wait for solicited messages only
inline constexpr std::uint8_t invalidate = 8;  ///< `immediate` is the key of a window to invalidate
inline constexpr std::uint8_t confirm = 16;    ///< the sender waits until this frame is acknowledged
inline constexpr std::uint8_t aborted = 32;    ///< the operation ends early: the rest of its source was unmapped
inline constexpr std::uint8_t offered = 64;    ///< the receiver has to read the payload; the frame carries an Offer
}  // namespace frame_flags

struct FrameHeader {
    std::uint64_t token = 0;       ///< chosen by the receiver, so that only its peer can send to the connection
    std::uint32_t connection = 0;  ///< the receiver's number of the connection
    std::uint32_t sequence = 0;    ///< the number of this request or response, from 1
    std::uint32_t executed = 0;    ///< how many requests of the receiver the sender has executed
    std::uint32_t handled = 0;     ///< how many responses of the receiver the sender has handled
    FrameKind kind = FrameKind::Open;
    std::uint8_t flags = 0;
    std::uint16_t reserved = 0;
    std::uint32_t immediate = 0;
    std::uint32_t total = 0;  ///< length of the whole operation
    std::uint32_t key = 0;    ///< RDMA: of the target's region or window
    std::uint64_t address = 0;
};
static_assert(sizeof(FrameHeader) == 48);

/// The payload of a frame. Larger data are offered.
inline constexpr std::size_t fragment_bytes = 64 * 1024;
inline constexpr std::size_t max_frame_bytes = sizeof(FrameHeader) + fragment_bytes;

/// Where the receiver reads a fragment that is larger than a frame.
struct Offer {
    std::uint64_t address = 0;
    std::uint64_t key = 0;
    std::uint64_t stamp = 0;  ///< follows the data there until the sender uses the memory for something else
    std::uint32_t bytes = 0;
    std::uint32_t reserved = 0;
};
static_assert(sizeof(Offer) == 32);

inline constexpr std::size_t max_offer_bytes = 256 * 1024;

struct Frame {
    FrameHeader header;
    std::span<const std::byte> payload;
};

inline bool is_offered(const FrameHeader& header) noexcept { return (header.flags & frame_flags::offered) != 0; }

/// Returns the offer that a frame carries, or nothing if it is invalid.
inline std::optional<Offer> offer_in(const Frame& frame) noexcept {
    Offer offer;
    if (frame.payload.size() != sizeof offer) return std::nullopt;
    std::memcpy(&offer, frame.payload.data(), sizeof offer);
    if (offer.bytes == 0 || offer.bytes > max_offer_bytes || offer.reserved != 0) return std::nullopt;
    return offer;
}

/// Returns nothing if the bytes are not a frame. Fields other than kind and lengths are not checked.
inline std::optional<Frame> parse_frame(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < sizeof(FrameHeader) || bytes.size() > max_frame_bytes) return std::nullopt;
    Frame frame;
    std::memcpy(&frame.header, bytes.data(), sizeof frame.header);
    frame.payload = bytes.subspan(sizeof frame.header);
    const FrameKind kind = frame.header.kind;
    if (kind < FrameKind::Open || kind > FrameKind::Refused || frame.header.reserved != 0) return std::nullopt;
    std::size_t expected = 0;
    switch (kind) {
        case FrameKind::Message:
        case FrameKind::Write:
        case FrameKind::Data:
            if (is_offered(frame.header)) {
                const auto offer = offer_in(frame);
                if (!offer || offer->bytes > frame.header.total) return std::nullopt;
            } else if (frame.payload.size() > frame.header.total) {
                return std::nullopt;
            }
            return frame;
        case FrameKind::AtomicWrite:
        case FrameKind::FetchAdd:
        case FrameKind::FlushVisible:
        case FrameKind::FlushPersistent: expected = 8; break;
        case FrameKind::CompareSwap: expected = 16; break;
        default: break;
    }
    if (is_offered(frame.header) || frame.payload.size() != expected) return std::nullopt;
    return frame;
}

/// A number in the payload.
inline std::uint64_t word_at(std::span<const std::byte> payload, std::size_t index) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, payload.data() + index * sizeof value, sizeof value);
    return value;
}

/// Compares sequence numbers, which wrap around.
constexpr bool reaches(std::uint32_t number, std::uint32_t other) noexcept {
    return static_cast<std::int32_t>(number - other) >= 0;
}

}  // namespace viaduct::ofi
