// SPDX-License-Identifier: BSD-3-Clause
// Attributes of devices, memory and endpoints, as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/status.hpp"

namespace viaduct {

/// What a connection promises (VI Architecture guide, section 1.2.3).
enum class Reliability : std::uint8_t {
    Unreliable,         ///< at most once; a message with no receive posted is dropped
    ReliableDelivery,   ///< exactly once and in order; a send completes once its buffer is free
    ReliableReception,  ///< as above; a send completes once the data are in the target's memory
};

/// What a reliable sender does when the peer has no receive posted (unreliable senders drop).
enum class ReceiverNotReady : std::uint8_t {
    Wait,   ///< until a receive is posted (DAT, RPMA)
    Break,  ///< the connection breaks (VIPL)
};

/// What an initiator learns at ReliableDelivery of an RDMA write or a send that the target refused, whatever its size
/// (at ReliableReception it is always told).
enum class RefusedWrite : std::uint8_t {
    Reported,  ///< it completes with RemoteProtection, RemoteOperation or RemoteLength (DAT, RPMA)
    Silent,    ///< it completes as if the data had arrived; only the target is told (VIPL)
};

/// Who may use the memory of a window.
enum class WindowScope : std::uint8_t {
    Domain,    ///< the peers of all endpoints of its protection domain
    Endpoint,  ///< the peer of the endpoint that has bound it, until that connection ends; who may also end it
};

struct Access {
    bool remote_write = false;
    bool remote_read = false;
    bool remote_atomic = false;  ///< FetchAdd and CompareSwap
    bool local_write = true;     ///< regions only: receives and RDMA reads and atomics of the owner may write to it
    friend bool operator==(const Access&, const Access&) = default;

    bool lets_peers_write() const noexcept { return remote_write || remote_atomic; }
};

/// Abilities that a device may lack; asked for, never found out by a failing call.
struct Capabilities {
    bool unreliable = true;
    bool atomic_write = true;  ///< atomic to every observer; without it, to those that look through the device
    bool atomics = true;       ///< FetchAdd, CompareSwap: atomic to each other, and to whom `atomic_write` says
    bool peer_to_peer = true;  ///< two active sides may ask for each other
    bool shared_receive_queues = true;
    bool resizes_shared_receives = true;  ///< beyond the depth that they have
    bool shares_services = true;          ///< listeners of several processes may have the same service
    bool own_user_only = true;            ///< processes of other users are kept away
    bool tells_loss = true;               ///< a peer that died is not taken for one that disconnected
    bool tells_target = true;             ///< of messages without a receive, and of RDMA that was refused
    bool survives_bad_receives = true;    ///< unreliable connections go on after a receive that failed
    bool unreliable_waits = true;         ///< unreliable messages for shared receives wait; else they are dropped
    bool pages_on_demand = true;          ///< registered memory may be such as cannot be pinned (DAX files)
    bool keeps_keys = true;               ///< a region that is modified keeps its key
    bool flush_by_write = true;           ///< the right to write is enough for a flush; else it takes that to read
    bool bounds_flushes = true;           ///< a flush looks at all of its range; else at its first 8 bytes
    bool memory_windows = true;           ///< of the scope Domain
    bool invalidates = true;              ///< windows of the scope Endpoint, and messages that end them
    bool bounds_windows = true;           ///< peers reach no more than a window shows; else all of its region
    bool bounds_completions = true;       ///< messages for shared receives wait for room in the completion queue
};

struct DeviceAttributes {
    std::string name;
    Bytes<Address::max_host> host;                      ///< address of this device
    std::vector<Bytes<Address::max_host>> local_hosts;  ///< of all devices of its kind on this host, by number
    Capabilities capabilities;
    std::uint32_t max_endpoints = 0;
    std::uint32_t max_queue_depth = 0;      ///< requests in one work queue
    std::uint32_t default_queue_depth = 0;  ///< of those whose users name none
    std::uint32_t max_sges = 0;
    std::uint32_t max_completion_queues = 0;  ///< enough for two private ones of each endpoint, and more
    std::uint32_t max_completions = 0;        ///< entries of one completion queue
    std::uint32_t max_regions = 0;
    std::uint64_t max_region_bytes = 0;
    std::uint32_t max_protection_domains = 0;
    std::uint32_t max_transfer_bytes = 0;  ///< of one request
    std::uint32_t native_mtu_bytes = 0;
    std::uint32_t max_private_data_bytes = 0;
    std::uint32_t max_service_bytes = 0;
};

struct EndpointAttributes {
    Reliability reliability = Reliability::ReliableDelivery;
    ReceiverNotReady receiver_not_ready = ReceiverNotReady::Wait;
    RefusedWrite refused_write = RefusedWrite::Reported;
    std::uint32_t max_transfer_bytes = 0;  ///< 0: no limit of its own, only the device's; fits every peer
    std::uint64_t qos = 0;                 ///< no device defines a value other than 0
    Access access;                         ///< RDMA that the endpoint accepts from its peer
    friend bool operator==(const EndpointAttributes&, const EndpointAttributes&) = default;
};

/// Whether two endpoints may be connected: reliability, transfer size and quality of service must be equal
/// (guide, sections 3.3.2 and 4.6), but for an endpoint that names no transfer size. Access is told to the peer and not
/// compared.
inline Status compatible(const EndpointAttributes& local, const EndpointAttributes& remote) noexcept {
    if (local.reliability != remote.reliability) return {Code::InvalidReliability, "reliability levels differ"};
    if (local.max_transfer_bytes != remote.max_transfer_bytes && local.max_transfer_bytes != 0 &&
        remote.max_transfer_bytes != 0)
        return {Code::InvalidTransferSize, "maximum transfer sizes differ"};
    if (local.qos != remote.qos) return {Code::InvalidQos, "qualities of service differ"};
    return {};
}

}  // namespace viaduct
