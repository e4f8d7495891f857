// SPDX-License-Identifier: BSD-3-Clause
// Counters of endpoints and devices: what was transferred, by which operation and in which way, and what delayed it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "viaduct/detail/export.hpp"

namespace viaduct {

/// The operations that are counted. Those of the peer are counted where this process takes part in them: an RDMA
/// operation that the peer or its device executes alone is counted at the peer only.
enum class CountedOperation : std::uint8_t {
    Send,
    RdmaWrite,  ///< without immediate data
    RdmaRead,
    RdmaWriteImmediate,  ///< with immediate data, which takes a receive of the peer
    AtomicWrite,
    FetchAdd,
    CompareSwap,
    Receive,           ///< a message of the peer
    ReceiveImmediate,  ///< the immediate data of an RDMA write of the peer; the bytes are those of the write
    ServeWrite,        ///< an RDMA write of the peer, executed by this process
    ServeRead,
    ServeAtomic,
};
inline constexpr std::size_t counted_operations = 12;
inline constexpr CountedOperation first_incoming = CountedOperation::Receive;

/// The way by which the data of an operation were moved.
enum class Way : std::uint8_t {
    Slot,    ///< loopback: in a slot of the ring
    Area,    ///< loopback: through the shared area
    Mapped,  ///< loopback: by a copy to or from memory of the peer that is mapped here
    Kernel,  ///< loopback: with process_vm_readv(2) or process_vm_writev(2)
    Agent,   ///< loopback: by the target's agent
    Device,  ///< verbs: by the RDMA device
    Frame,   ///< tcp: in frames
};
inline constexpr std::size_t ways = 7;

/// As in the JSON documents of viaduct/introspection.hpp: "rdma_write", "slot".
VIADUCT_EXPORT std::string_view to_string(CountedOperation operation) noexcept;
VIADUCT_EXPORT std::string_view to_string(Way way) noexcept;

struct Traffic {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;

    Traffic& operator+=(const Traffic& other) noexcept {
        messages += other.messages;
        bytes += other.bytes;
        return *this;
    }
    bool operator==(const Traffic&) const = default;
};

/// Values since the endpoint was created. An operation is counted when this side has executed it, even if the peer
/// has not confirmed it yet; one that fails here or is flushed is not counted. With verbs, operations of this side are
/// counted when they are handed to the device, with tcp when they are sent, even if the peer then refuses them. The
/// values are read one by one: while the endpoint is in use, they may belong to slightly different times.
struct VIADUCT_EXPORT EndpointCounters {
    std::array<std::array<Traffic, ways>, counted_operations> traffic{};
    Traffic posted_receives;         ///< receives posted to the endpoint's own queue, and their capacity
    std::uint64_t credit_waits = 0;  ///< requests that had to wait because the peer had posted no receive
    std::uint64_t refusals = 0;  ///< requests that the peer's memory or queue did not permit, as far as reported here
    std::uint64_t retries = 0;   ///< connection requests that were repeated
    std::uint64_t wakeups = 0;   ///< how often the peer was asked to act because its consumer did not poll

    Traffic& at(CountedOperation operation, Way way) noexcept {
        return traffic[static_cast<std::size_t>(operation)][static_cast<std::size_t>(way)];
    }
    const Traffic& at(CountedOperation operation, Way way) const noexcept {
        return traffic[static_cast<std::size_t>(operation)][static_cast<std::size_t>(way)];
    }

    /// Sums.
    Traffic of(CountedOperation operation) const noexcept;
    Traffic of(Way way) const noexcept;
    Traffic outgoing() const noexcept;
    Traffic incoming() const noexcept;

    EndpointCounters& operator+=(const EndpointCounters& other) noexcept;
};

struct DeviceCounters {
    EndpointCounters endpoints;             ///< the sum over all endpoints, also of those that are destroyed
    std::uint64_t endpoints_created = 0;    ///< endpoints that exist are not subtracted
    std::uint64_t connections = 0;          ///< connections that were established
    std::uint64_t refused_connections = 0;  ///< attempts to connect that were refused, or were not answered
    std::uint64_t lost_connections = 0;     ///< connections that broke
    std::uint64_t agent_wakeups = 0;        ///< how often the thread of the device was woken
};

}  // namespace viaduct
