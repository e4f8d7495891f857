// SPDX-License-Identifier: BSD-3-Clause
// What two processes send to each other over a link, called frames: docs/tcp-wire.md. A peer that holds the key may
// still be hostile: copy the header once, check it, and use the copy.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace viaduct::software {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

enum class FrameKind : std::uint8_t {
    // About links and connections. The payload is a body of messages.hpp.
    Hello = 1,    ///< the first frame of either side
    Connect,      ///< a request; `connection` is 0
    Accepted,     ///< this and the following five answer a request; `connection` is that of the requester
    Rejected,     ///< by the program that listens
    NoListener,   ///< nobody listens to the service any more, or never did
    NoResources,  ///< the responder has no descriptor for a connection; the requester may try again
    Dropped,      ///< the responder has closed its device with the request unanswered
    Conflict,     ///< the attributes do not match
    Cancel,       ///< the requester has given up; `key` is its number
    Closing,      ///< the last frame of a connection

    Acknowledge,  ///< carries only the counter of the header

    // Requests: executed in order, possibly late.
    Message,      ///< a fragment of a send
    Write,        ///< a fragment of an RDMA write
    Read,         ///< `total` bytes
    AtomicWrite,  ///< the payload is the value
    FetchAdd,     ///< the payload is the value to add
    CompareSwap,  ///< the payload is the value to compare and the one to store
    FlushVisible,
    FlushPersistent,  ///< the payload is the length of the range

    // Responses: handled when they arrive.
    Data,     ///< a fragment of what a Read, FetchAdd or CompareSwap returns
    Refused,  ///< `immediate` is a CompletionCode, `key` the number of the refused request; unreliable connections only
};

constexpr bool is_message(FrameKind kind) noexcept { return kind <= FrameKind::Closing; }
constexpr bool is_request(FrameKind kind) noexcept { return kind >= FrameKind::Message && kind < FrameKind::Data; }
constexpr bool is_response(FrameKind kind) noexcept { return kind >= FrameKind::Data; }

/// Whether the payload can be handled in parts, as they arrive.
constexpr bool is_divisible(FrameKind kind) noexcept {
    return kind == FrameKind::Message || kind == FrameKind::Write || kind == FrameKind::Data;
}

namespace frame_flags {
inline constexpr std::uint8_t more = 1;        ///< further fragments of the operation follow
inline constexpr std::uint8_t immediate = 2;   ///< `immediate` is data for the receive
inline constexpr std::uint8_t solicited = 4;   ///< wakes consumers that wait for solicited messages only
inline constexpr std::uint8_t invalidate = 8;  ///< `immediate` is the key of a window to invalidate
inline constexpr std::uint8_t confirm = 16;    ///< the sender waits until this frame is acknowledged
inline constexpr std::uint8_t aborted = 32;    ///< the operation ends early: the rest of its source was unmapped
}  // namespace frame_flags

struct FrameHeader {
    std::uint64_t address = 0;     ///< RDMA: of the payload in the memory of the target
    std::uint32_t bytes = 0;       ///< length of the payload
    std::uint32_t connection = 0;  ///< the receiver's number of the connection
    std::uint32_t executed = 0;    ///< how many requests of the receiver the sender has executed
    std::uint32_t immediate = 0;
    std::uint32_t total = 0;  ///< length of the whole operation
    std::uint32_t key = 0;    ///< RDMA: of the target's region or window
    FrameKind kind = FrameKind::Acknowledge;
    std::uint8_t flags = 0;
    std::uint16_t reserved[3] = {0, 0, 0};
};
static_assert(sizeof(FrameHeader) == 40);

/// The largest payload of a frame.
inline constexpr std::size_t fragment_bytes = 64 * 1024;

/// A connection sends at most so many of them in its turn, by one system call.
inline constexpr std::size_t fragments_at_once = 16;

/// A payload of at most so many bytes is copied behind its header; larger ones are sent from where they are.
inline constexpr std::size_t most_copied = 4096;

/// The body of a message.
inline constexpr std::size_t max_message_bytes = 1024;

/// What a connection sends before it is acknowledged: at most so many requests, and bytes of their frames. A receiver
/// keeps no more for requests that have to wait.
inline constexpr std::uint32_t window_requests = 1024;
inline constexpr std::uint64_t window_bytes = 4 << 20;

inline std::uint64_t size_of(const FrameHeader& header) noexcept { return sizeof header + header.bytes; }

/// A frame, or a part of one.
struct Frame {
    FrameHeader header;
    std::span<const std::byte> payload;
};

/// Whether a header can be that of a frame. Fields other than kind and lengths are not checked.
inline bool is_valid(const FrameHeader& header) noexcept {
    for (const std::uint16_t reserved : header.reserved)
        if (reserved != 0) return false;
    if (header.kind < FrameKind::Hello || header.kind > FrameKind::Refused) return false;
    switch (header.kind) {
        case FrameKind::Message:
        case FrameKind::Write:
        case FrameKind::Data: return header.bytes <= fragment_bytes && header.bytes <= header.total;
        case FrameKind::AtomicWrite:
        case FrameKind::FetchAdd:
        case FrameKind::FlushVisible:
        case FrameKind::FlushPersistent: return header.bytes == 8;
        case FrameKind::CompareSwap: return header.bytes == 16;
        default: return is_message(header.kind) ? header.bytes <= max_message_bytes : header.bytes == 0;
    }
}

/// A number in the payload.
inline std::uint64_t word_at(std::span<const std::byte> payload, std::size_t index) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, payload.data() + index * sizeof value, sizeof value);
    return value;
}

/// Compares counters, which wrap around.
constexpr bool reaches(std::uint32_t number, std::uint32_t other) noexcept {
    return static_cast<std::int32_t>(number - other) >= 0;
}

}  // namespace viaduct::software
