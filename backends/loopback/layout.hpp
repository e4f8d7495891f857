// SPDX-License-Identifier: BSD-3-Clause
// The memory that processes share: the segment of a connection, the doorbell board and the region table of a device.
// docs/shm-wire.md documents it. Another process, which may be hostile, can write everything here: copy a value once,
// check the copy, and use the copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/support/region_view.hpp"

namespace viaduct::loopback::wire {

inline constexpr std::uint64_t magic = 0x3154434455414956;  // "VIAUDCT1", first byte lowest
inline constexpr std::uint32_t version = 8;

inline constexpr std::uint32_t slot_count = 256;  // in each direction; a power of two
inline constexpr std::uint32_t slot_mask = slot_count - 1;
inline constexpr std::uint32_t near_slots =
    24;  // the first ones of each direction are in the page of the control lines
inline constexpr std::uint32_t first_position[2] = {0, slot_count - near_slots};  // of a slot in each direction
inline constexpr std::uint32_t inline_bytes = 44;
inline constexpr std::uint32_t area_bytes = 512 * 1024;
inline constexpr std::uint32_t fragment_bytes = 32 * 1024;

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

enum class SlotKind : std::uint8_t {
    Message = 1,     ///< one fragment of a send
    WriteNotice,     ///< an RDMA write with immediate data; the data are already in place
    RefusedNotice,   ///< likewise, but the target's protection refused the write
    MessageAborted,  ///< ends the message of the preceding fragments, because the rest of its source is no longer
                     ///< mapped
    NoticeAborted,   ///< an RDMA write with immediate data was aborted for the same reason
    WriteAborted,    ///< likewise, without immediate data
    NoReceive,       ///< a message or, with the flag `immediate`, a write for which no receive was posted
    WriteRefused,    ///< the target's protection refused an RDMA write without immediate data
    ReadRefused,
    AgentWrite,     ///< the target copies from the area into its region
    AgentRead,      ///< the target copies from its region into the area
    AgentAtomic,    ///< the target stores 8 bytes
    AgentFlush,     ///< the target makes a range durable
    AgentFetchAdd,  ///< the target adds to 8 bytes and stores the previous value in the area
    AgentCompareSwap,
};

namespace slot_flags {
inline constexpr std::uint8_t more = 1;  ///< further fragments of the message follow
inline constexpr std::uint8_t immediate = 2;
inline constexpr std::uint8_t external = 4;     ///< the payload is in the area, at External::offset
inline constexpr std::uint8_t acknowledge = 8;  ///< the producer waits for this slot to be consumed; confirm it
                                                ///< immediately
inline constexpr std::uint8_t solicited = 16;   ///< wakes consumers that wait for solicited messages only
inline constexpr std::uint8_t invalidate = 32;  ///< the message invalidates the window whose key replaces the immediate
                                                ///< data
inline constexpr std::uint8_t confirm = 64;     ///< like acknowledge, but the next slot in the other direction may
                                                ///< carry the confirmation
}  // namespace slot_flags

/// Payload of a slot with data in the area.
struct External {
    std::uint32_t offset;
    std::uint32_t total;  ///< length of the whole message
};

/// Payload of the Agent kinds.
struct AgentTransfer {
    std::uint64_t address;
    std::uint64_t value;    ///< atomics: the value to store or add; AgentFlush: the length of the range
    std::uint64_t compare;  ///< AgentCompareSwap
    std::uint32_t key;
    std::uint32_t offset;  ///< into the area
};

/// A message or fragment. A slot is exactly one cache line. The sequence number is written last. Slot i in lap n has
/// the number n * slot_count + i + 1, so slots of different laps are distinguishable. The first lap begins at
/// first_position.
struct alignas(64) Slot {
    std::atomic<std::uint32_t> sequence;
    SlotKind kind;
    std::uint8_t flags;
    std::atomic<std::uint16_t>
        consumed;  ///< total number of slots of the other direction that the producer has consumed, modulo 2^16
    std::uint32_t length;
    std::uint32_t immediate;
    std::uint32_t credit;  ///< total number of receives that the producer has posted for the other direction
    std::byte payload[inline_bytes];
};
static_assert(sizeof(Slot) == 64);

/// Reads a field of a slot. The compiler may otherwise read it again after the copy was checked.
template <class T>
[[gnu::always_inline]] inline T read_once(const T& field) noexcept {
    return *static_cast<const volatile T*>(&field);
}

/// The same for the structure with which the payload begins.
template <class T>
[[gnu::always_inline]] inline T read_payload(const Slot& slot) noexcept {
    T copy;
    std::memcpy(&copy, slot.payload, sizeof copy);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return copy;
}

/// Written by the producer of a direction.
struct alignas(64) ProducerLine {
    std::atomic<std::uint32_t> waiting;  ///< 1: ring the producer's doorbell when slots are consumed or receives posted
};

/// The reason why a consumer broke the connection.
enum class Fault : std::uint32_t {
    None,
    Operation,   ///< the message could not be received
    Length,      ///< the message was longer than the receive
    Protection,  ///< an RDMA operation for the agent was refused
};

/// Written by the consumer of a direction.
struct alignas(64) ConsumerLine {
    std::atomic<std::uint32_t> consumed;    ///< total number of consumed slots; not updated for every slot
    std::atomic<std::uint32_t> fault_slot;  ///< if there is a fault: the slot that could not be received
    std::atomic<Fault> fault;
};

/// Written by the consumer of a direction whenever it posts a receive.
struct alignas(64) CreditLine {
    std::atomic<std::uint32_t> posted;  ///< total number of posted receives
};

/// Written by the consumer of a direction, rarely.
struct alignas(64) WakeupLine {
    std::atomic<std::uint32_t> need_wakeup;  ///< nonzero: ring the consumer's doorbell for every slot, because it does
                                             ///< not poll
};

struct Direction {
    ProducerLine producer;
    ConsumerLine consumer;
    CreditLine credit;
    WakeupLine wakeup;
};

enum class Handshake : std::uint32_t {
    Offered,  ///< by the requester
    Taken,    ///< a listener has passed it to its consumer
    Accepted,
    Refused,    ///< rejected, or incompatible attributes
    Abandoned,  ///< the requester has given up, or the listener's consumer dropped the request without an answer
};

/// The shared memory of a connection. Direction 0 is from the requester to the acceptor. The control lines are in one
/// page with the slots that are used first: the end of one ring and the beginning of the other.
struct Segment {
    alignas(4096) std::byte unused[near_slots * sizeof(Slot)];
    Slot slots_to_requester[slot_count];
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t reserved;
    alignas(64) std::atomic<Handshake> handshake;
    alignas(64) std::atomic<std::uint32_t> closing[2];  ///< by role: this side disconnects deliberately
    alignas(256) Direction directions[2];
    alignas(64) std::byte unused_lines[256];
    Slot slots_to_acceptor[slot_count];
    alignas(4096) std::byte area[2][area_bytes];

    Slot* slots(unsigned direction) noexcept { return direction == 0 ? slots_to_acceptor : slots_to_requester; }
};
inline constexpr std::size_t control_page = 4 * 4096;
static_assert(sizeof(Direction) == 256 && offsetof(Segment, magic) == control_page + near_slots * sizeof(Slot));
static_assert(offsetof(Segment, slots_to_requester) + first_position[1] * sizeof(Slot) == control_page);
static_assert(offsetof(Segment, slots_to_acceptor) + near_slots * sizeof(Slot) == control_page + 4096);
static_assert(offsetof(Segment, area) == 36864 && sizeof(Segment) == 36864 + 2 * area_bytes);

inline constexpr std::uint32_t max_connections = 16384;  // per open device

/// A peer process uses it to tell a device which of its connections need service: one bit per connection, and a summary
/// of the words.
struct DoorbellBoard {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t reserved;
    alignas(64) std::atomic<std::uint32_t> agent_asleep;  ///< the thread that changes 1 to 0 writes the eventfd
    alignas(64) std::atomic<std::uint64_t> summary[max_connections / 64 / 64];
    alignas(64) std::atomic<std::uint64_t> words[max_connections / 64];
};

inline constexpr std::uint32_t max_regions = 65536;  // including windows

namespace region_flags = support::region_flags;

/// A registered region or a bound window. Only the owner can write the table: peers map it read-only, which a seal
/// enforces. The key is written last and cleared first.
struct alignas(64) RegionEntry {
    std::atomic<std::uint32_t> key;           ///< 0: free
    std::atomic<std::uint32_t> only_through;  ///< if not 0: only the peer of the owner's connection with this number +
                                              ///< 1 may use it
    std::atomic<std::uint64_t> base;
    std::atomic<std::uint64_t> length;
    std::atomic<std::uint64_t> rights;  ///< protection domain in the upper half, region_flags in the lower
};
static_assert(sizeof(RegionEntry) == 64);

struct RegionTable {
    alignas(64) std::atomic<std::uint64_t> generation;  ///< changes after a key has become invalid or lost rights
    RegionEntry entries[max_regions];
};
static_assert(offsetof(RegionTable, entries) == 64);

/// A page that a process maps at an address of its choice. Copies through the kernel access it first: reads fetch the
/// token, which is compared, and writes store to the scratch word. If the page does not exist, the kernel copies
/// nothing.
struct alignas(4096) Canary {
    std::uint64_t token;  ///< the instance id
    alignas(64) std::uint64_t scratch;
};

}  // namespace viaduct::loopback::wire
