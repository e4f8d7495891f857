// SPDX-License-Identifier: BSD-3-Clause
// Attributes of devices, memory and endpoints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viaduct/address.hpp"
#include "viaduct/detail/export.hpp"
#include "viaduct/status.hpp"

namespace viaduct {

/// What a connection guarantees (VI Architecture guide, section 1.2.3).
enum class Reliability : std::uint8_t {
    Unreliable,         ///< at most once; a message without a posted receive is dropped
    ReliableDelivery,   ///< exactly once and in order; a send completes when its buffer can be reused
    ReliableReception,  ///< as above; a send completes when the data is in the peer's memory
};

/// The name of a level; never null.
VIADUCT_EXPORT const char* to_string(Reliability reliability) noexcept;

/// What a reliable sender does if the peer has no receive posted. (Unreliable senders drop the message.)
enum class ReceiverNotReady : std::uint8_t {
    Wait,   ///< waits until a receive is posted (DAT, librpma)
    Break,  ///< breaks the connection (VIPL)
};

/// How an RDMA write or a send, whatever its size, completes at ReliableDelivery if the target refuses it. (At
/// ReliableReception the error is always reported.)
enum class RefusedWrite : std::uint8_t {
    Reported,  ///< with RemoteProtection, RemoteOperation or RemoteLength (DAT, librpma)
    /// As if the data had arrived; only the target gets the error. One that is under way when the connection breaks
    /// completes with Flushed, not Transport (VIPL; guide, section 5.2, Transport Error).
    Silent,
};

/// Who may use a window.
enum class WindowScope : std::uint8_t {
    Domain,    ///< the peers of all endpoints of its protection domain
    Endpoint,  ///< the peer of the endpoint that bound it, until the connection ends; it may also invalidate it
};

/// What peers may do with a region or a window or through an endpoint, and what the owner of a region may do.
struct Access {
    bool remote_write = false;
    bool remote_read = false;
    bool remote_atomic = false;  ///< FetchAdd and CompareSwap
    bool local_write = true;     ///< regions only: receives, RDMA reads and atomics of the owner may write to it
    friend bool operator==(const Access&, const Access&) = default;

    bool lets_peers_write() const noexcept { return remote_write || remote_atomic; }
};

/// Optional abilities of a device.
struct Capabilities {
    bool unreliable = true;
    bool atomic_write =
        true;  ///< AtomicWrite is atomic with respect to all accesses; otherwise only to those through the device
    bool atomics = true;  ///< supports FetchAdd and CompareSwap: atomic with respect to each other, and as atomic_write
    bool peer_to_peer = true;  ///< two endpoints can connect to each other (Model::PeerToPeer)
    bool shared_receive_queues = true;
    bool resizes_shared_receives = true;  ///< can enlarge them; otherwise only shrink them
    bool shares_services = true;          ///< listeners of several processes can share a service
    bool own_user_only = true;            ///< processes of other users cannot connect
    bool tells_loss = true;               ///< reports Lost, not Disconnected, if the peer's process ends
    bool tells_target = true;             ///< reports messages without a receive and refused RDMA at the target
    bool survives_bad_receives = true;    ///< unreliable connections continue after a failed receive
    bool unreliable_waits = true;         ///< unreliable messages wait for shared receives; otherwise they are dropped
    bool pages_on_demand = true;          ///< can register memory that cannot be pinned (DAX files)
    bool keeps_keys = true;               ///< a modified region keeps its key
    bool flush_by_write = true;      ///< the right to write suffices for a flush; otherwise it needs the right to read
    bool bounds_flushes = true;      ///< a flush checks its whole range; otherwise its first 8 bytes
    bool memory_windows = true;      ///< supports windows of the scope Domain
    bool invalidates = true;         ///< supports windows of the scope Endpoint and SendInvalidate
    bool bounds_windows = true;      ///< a window limits peers to its range; otherwise to its region
    bool bounds_completions = true;  ///< messages for shared receives wait for room in the completion queue
};

struct DeviceAttributes {
    std::string name;
    Bytes<Address::max_host> host;  ///< the address of this device
    std::vector<Bytes<Address::max_host>>
        local_hosts;  ///< the addresses of all devices of this backend on this host, indexed by device number
    Capabilities capabilities;
    std::uint32_t max_endpoints = 0;
    std::uint32_t max_queue_depth = 0;        ///< outstanding requests of one work queue
    std::uint32_t default_queue_depth = 0;    ///< see default_depth
    std::uint32_t max_sges = 0;               ///< pieces of one request
    std::uint32_t max_completion_queues = 0;  ///< at least twice max_endpoints
    std::uint32_t max_completions = 0;        ///< capacity of one completion queue
    std::uint32_t max_regions = 0;
    std::uint64_t max_region_bytes = 0;
    std::uint32_t max_protection_domains = 0;
    std::uint32_t max_transfer_bytes = 0;  ///< of one request
    std::uint32_t native_mtu_bytes = 0;
    std::uint32_t max_private_data_bytes = 0;
    std::uint32_t max_service_bytes = 0;
};

/// The depth of a work queue, or the capacity of a completion queue: the default of the device.
inline constexpr std::uint32_t default_depth = ~std::uint32_t{0};

struct EndpointAttributes {
    Reliability reliability = Reliability::ReliableDelivery;
    ReceiverNotReady receiver_not_ready = ReceiverNotReady::Wait;
    RefusedWrite refused_write = RefusedWrite::Reported;
    bool any_reliable = false;  ///< joins a peer of either reliable level; needs one of them and RefusedWrite::Reported
    std::uint32_t max_transfer_bytes = 0;  ///< 0: the maximum of the device; matches every peer
    std::uint64_t qos = 0;                 ///< must be 0
    Access access;                         ///< RDMA operations that the endpoint accepts from its peer
    friend bool operator==(const EndpointAttributes&, const EndpointAttributes&) = default;
};

/// The size of the largest request of an endpoint.
inline std::uint32_t transfer_limit(const EndpointAttributes& attributes, const DeviceAttributes& device) noexcept {
    return attributes.max_transfer_bytes != 0 ? attributes.max_transfer_bytes : device.max_transfer_bytes;
}

/// Whether two endpoints can be connected: reliability, transfer size and quality of service must be equal (guide,
/// sections 3.3.2 and 4.6). A transfer size of 0 matches any; `any_reliable` matches both reliable levels. Access
/// rights are not compared.
VIADUCT_EXPORT Status compatible(const EndpointAttributes& local, const EndpointAttributes& remote) noexcept;

}  // namespace viaduct
