// SPDX-License-Identifier: BSD-3-Clause
// What processes share: the memory of a connection, the doorbell board and the region table of a device.
// docs/shm-wire.md describes the same for readers. Everything here is written by another process that may be hostile:
// copy a value once, check the copy, use the copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::loopback::wire {

inline constexpr std::uint64_t magic = 0x3154434455414956;  // "VIAUDCT1", first byte lowest
inline constexpr std::uint32_t version = 5;

inline constexpr std::uint32_t slot_count = 256;  // in each direction; a power of two
inline constexpr std::uint32_t slot_mask = slot_count - 1;
inline constexpr std::uint32_t inline_bytes = 44;
inline constexpr std::uint32_t area_bytes = 512 * 1024;
inline constexpr std::uint32_t fragment_bytes = 32 * 1024;

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

enum class SlotKind : std::uint8_t {
    Message = 1,     ///< one fragment of a send
    WriteNotice,     ///< an RDMA write with immediate data: the data are in place already
    RefusedNotice,   ///< the same, but the write was refused by the target's protection
    MessageAborted,  ///< the message whose fragments came before ends here: the rest of its source is gone
    NoticeAborted,   ///< an RDMA write with immediate data ended in the middle, likewise
    WriteAborted,    ///< the same without immediate data
    NoReceive,       ///< a message for which no receive was posted
    WriteRefused,    ///< an RDMA write without immediate data was refused by the target's protection
    ReadRefused,
    AgentWrite,     ///< the target copies from the area into its region
    AgentRead,      ///< the target copies from its region into the area
    AgentAtomic,    ///< the target stores 8 bytes
    AgentFlush,     ///< the target makes a range durable
    AgentFetchAdd,  ///< the target adds to 8 bytes, and puts what was there into the area
    AgentCompareSwap,
};

namespace slot_flags {
inline constexpr std::uint8_t more = 1;  ///< further fragments of the message follow
inline constexpr std::uint8_t immediate = 2;
inline constexpr std::uint8_t external = 4;     ///< the payload lies in the area, at External::offset
inline constexpr std::uint8_t acknowledge = 8;  ///< the producer waits for this slot to be consumed: tell at once
inline constexpr std::uint8_t solicited = 16;   ///< wakes those who wait for solicited messages only
inline constexpr std::uint8_t invalidate = 32;  ///< the message ends the window whose key stands for immediate data
inline constexpr std::uint8_t confirm = 64;     ///< as acknowledge, but the next slot of the other direction may tell
}  // namespace slot_flags

/// Payload of a slot whose data lie in the area.
struct External {
    std::uint32_t offset;
    std::uint32_t total;  ///< length of the whole message
};

/// Payload of the Agent kinds.
struct AgentTransfer {
    std::uint64_t address;
    std::uint64_t value;    ///< atomics: what is stored or added; AgentFlush: the length of the range
    std::uint64_t compare;  ///< AgentCompareSwap
    std::uint32_t key;
    std::uint32_t offset;  ///< into the area
};

/// One message or fragment: exactly one cache line. The sequence is written last; slot i of lap n holds n * slot_count
/// + i + 1, so that an old lap is never taken for the present one.
struct alignas(64) Slot {
    std::atomic<std::uint32_t> sequence;
    SlotKind kind;
    std::uint8_t flags;
    std::atomic<std::uint16_t>
        consumed;  ///< slots of the other direction that the producer has consumed, in total, modulo 2^16
    std::uint32_t length;
    std::uint32_t immediate;
    std::uint32_t credit;  ///< receives that the producer has posted for the other direction, in total
    std::byte payload[inline_bytes];
};
static_assert(sizeof(Slot) == 64);

/// Written by the producer of a direction.
struct alignas(64) ProducerLine {
    std::atomic<std::uint32_t> waiting;  ///< 1: ring my doorbell when slots were consumed or receives posted
};

/// Why a consumer broke the connection.
enum class Fault : std::uint32_t {
    None,
    Operation,   ///< what came could not be received
    Length,      ///< it was longer than the receive
    Protection,  ///< the order of an RDMA operation was refused
};

/// Written by the consumer of a direction.
struct alignas(64) ConsumerLine {
    std::atomic<std::uint32_t> consumed;    ///< slots, in total; published now and then
    std::atomic<std::uint32_t> fault_slot;  ///< with a fault: the slot that could not be received
    std::atomic<Fault> fault;
};

/// Written by the consumer of a direction whenever it posts a receive.
struct alignas(64) CreditLine {
    std::atomic<std::uint32_t> posted;  ///< in total
};

/// Written by the consumer of a direction, now and then.
struct alignas(64) AttentionLine {
    std::atomic<std::uint32_t> wanted;  ///< not 0: ring my doorbell for every slot, nobody polls
};

struct Direction {
    ProducerLine producer;
    ConsumerLine consumer;
    CreditLine credit;
    AttentionLine attention;
};

enum class Handshake : std::uint32_t {
    Offered,  ///< by the requester
    Taken,    ///< a listener has handed it to its consumer
    Accepted,
    Refused,    ///< rejected, or in conflict
    Abandoned,  ///< the requester has given up, or the listener's consumer has dropped it unanswered
};

/// The memory of one connection. Direction 0 goes from the requester to the acceptor.
struct Segment {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t reserved;
    alignas(64) std::atomic<Handshake> handshake;
    alignas(64) std::atomic<std::uint32_t> closing[2];  ///< by role: this side ends the connection on purpose
    alignas(256) Direction directions[2];
    alignas(4096) Slot slots[2][slot_count];
    alignas(4096) std::byte area[2][area_bytes];
};
static_assert(offsetof(Segment, directions) == 256 && sizeof(Direction) == 256);
static_assert(offsetof(Segment, slots) == 4096 && offsetof(Segment, area) == 4096 + 2 * slot_count * 64);
static_assert(sizeof(Segment) == 4096 + 2 * slot_count * 64 + 2 * area_bytes);

inline constexpr std::uint32_t max_connections = 16384;  // of one open device

/// Where a peer process tells a device which of its connections want attention: a bit for each, and a summary above.
struct DoorbellBoard {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t reserved;
    alignas(64) std::atomic<std::uint32_t> agent_asleep;  ///< whoever turns 1 into 0 writes the eventfd
    alignas(64) std::atomic<std::uint64_t> summary[max_connections / 64 / 64];
    alignas(64) std::atomic<std::uint64_t> words[max_connections / 64];
};

inline constexpr std::uint32_t max_regions = 65536;  // and windows

namespace region_flags {
inline constexpr std::uint32_t remote_write = 1;
inline constexpr std::uint32_t remote_read = 2;
inline constexpr std::uint32_t local_write = 4;      ///< the owner may write, and the pages can be written
inline constexpr std::uint32_t mappable = 8;         ///< a memfd stands behind the pages, and cannot shrink
inline constexpr std::uint32_t writable_pages = 16;  ///< the pages themselves can be written
inline constexpr std::uint32_t window = 32;          ///< a part of a region, for peers
inline constexpr std::uint32_t remote_atomic = 64;
inline constexpr std::uint32_t file = 128;  ///< behind some of the pages at least: flushes go there
}  // namespace region_flags

/// A registered region, or what a window shows. Only the owner can write the table: peers map it read-only, and a seal
/// keeps it so. The key is written last and cleared first.
struct alignas(64) RegionEntry {
    std::atomic<std::uint32_t> key;           ///< 0: free
    std::atomic<std::uint32_t> only_through;  ///< the owner's connection whose peer alone may use it, + 1; 0: any
    std::atomic<std::uint64_t> base;
    std::atomic<std::uint64_t> length;
    std::atomic<std::uint64_t> rights;  ///< protection domain in the upper half, region_flags in the lower
};
static_assert(sizeof(RegionEntry) == 64);

struct RegionTable {
    RegionEntry entries[max_regions];
};

/// What a process has at an address of its own choice. Copies through the kernel begin here: a read with the token,
/// which has to be right, and a write with the scratch word. Where the page is not, the kernel copies nothing.
struct alignas(4096) Canary {
    std::uint64_t token;  ///< the instance id
    alignas(64) std::uint64_t scratch;
};

}  // namespace viaduct::loopback::wire
