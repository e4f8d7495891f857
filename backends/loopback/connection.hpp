// SPDX-License-Identifier: BSD-3-Clause
// One connection: the shared segment, the socket that tells of the peer's death, and who the peer is.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "backends/loopback/agent.hpp"
#include "backends/loopback/peer.hpp"
#include "core/base/fence.hpp"

namespace viaduct::loopback {

class Device;
class Endpoint;

/// Lets the agent find an endpoint that may be destroyed at any time. The mutex also orders everything that changes
/// the connection of the endpoint. Lock order: this mutex, then the locks of the completion queues.
struct EndpointRef {
    std::mutex mutex;
    Endpoint* endpoint = nullptr;
};

class Connection final : public AgentClient {
public:
    /// As the requester, with a new segment; as the acceptor, with the segment of a request.
    static Result<std::shared_ptr<Connection>> offer(Device& device, std::shared_ptr<EndpointRef> owner);
    static Result<std::shared_ptr<Connection>> take(Device& device, const UniqueFd& segment);
    ~Connection() override;

    /// Ties the acceptor's connection to its endpoint and gives it a number on the doorbell boards.
    static Status assign(const std::shared_ptr<Connection>& connection, std::shared_ptr<EndpointRef> owner);

    /// Who the peer is, from its handshake; takes the descriptors. InvalidParameter: they are not sound.
    Status set_peer(const Handshake& handshake, std::span<UniqueFd> descriptors, int socket);

    /// Lets the agent watch the socket and then takes it; on failure it stays the caller's. The mutex of the owner is
    /// held, so the agent waits until the endpoint is ready.
    Status open(UniqueFd& socket, const std::shared_ptr<Connection>& self);

    /// SystemError: the peer is gone, which the hang-up of the socket tells as well.
    Status send(const HandshakeMessage& message, std::span<const int> descriptors) noexcept;

    /// Closes the socket: the peer's agent notices. `on_purpose`: it is a disconnection, not a failure.
    void close(bool on_purpose) noexcept;

    bool closed_on_purpose_by_peer() const noexcept { return segment().closing[1 - role_].load() != 0; }

    /// Moves a handshake from one of two states to another; false where it was in neither.
    bool advance(wire::Handshake from, wire::Handshake to) noexcept {
        return segment().handshake.compare_exchange_strong(from, to);
    }
    wire::Handshake handshake() const noexcept { return segment().handshake.load(); }

    /// What the peer is told of the endpoint.
    InstanceInfo instance_info(const Endpoint& endpoint) const noexcept;
    int segment_fd() const noexcept { return segment_fd_.get(); }

    /// What that process is handed: doorbell memory, doorbell event, region table. Throws std::bad_alloc.
    Result<std::array<int, 3>> descriptors_for(pid_t process);

    std::uint32_t number() const noexcept { return number_; }

    // What the work queues use.
    wire::Direction& outgoing() noexcept { return segment().directions[role_]; }
    wire::Direction& incoming() noexcept { return segment().directions[1 - role_]; }
    wire::Slot* outgoing_slots() noexcept { return segment().slots[role_]; }
    wire::Slot* incoming_slots() noexcept { return segment().slots[1 - role_]; }
    std::byte* outgoing_area() noexcept { return segment().area[role_]; }
    std::byte* incoming_area() noexcept { return segment().area[1 - role_]; }
    Peer& peer() noexcept { return *peer_; }
    std::uint32_t peer_domain() const noexcept { return peer_domain_; }
    std::uint32_t peer_number() const noexcept { return peer_number_; }
    const EndpointAttributes& remote_attributes() const noexcept { return remote_attributes_; }
    bool asymmetric_fences() const noexcept { return asymmetric_; }
    bool peer_shares_receives() const noexcept { return peer_shares_receives_; }
    /// For every message on the hot path: rings only where nobody polls at the peer.
    void ring_unless_polled() noexcept {
        Fence::light(asymmetric_);
        if (outgoing().attention.wanted.load(std::memory_order_relaxed) != 0) ring_peer();
    }
    /// Where the peer's help is needed.
    void ring_peer() const noexcept { peer_->doorbell().ring(peer_number_); }

    /// Where a stretch of the peer's memory is here: its own place within one process, else a mapping. Null where it is
    /// not mapped; the peer is asked for the file then, once. Good as Peer::mapped() is.
    std::byte* find_memory(const RegionView& region, std::uint32_t key, std::uint64_t address, std::uint64_t length,
                           bool to_write) noexcept {
        if (peer_->is_this_process()) return reinterpret_cast<std::byte*>(address);
        if (!region.is_mappable()) return nullptr;
        if (std::byte* found = peer_->mapped(key, address, length, to_write)) return found;
        if (peer_->should_request(key)) request_mapping(key);
        return nullptr;
    }

    /// Receives that the peer has posted, as its last message said; a cache of the peer's credit line.
    std::atomic<std::uint32_t> piggybacked_credit{0};

    /// Slots that the peer has consumed, likewise: added up from 16 bits, so it may fall short by multiples of 2^16,
    /// and never says too much.
    std::atomic<std::uint64_t> piggybacked_consumed{0};

    /// Called by the agent, or by a consumer that polls a oversubscribed queue. Tells whether consumers poll by
    /// themselves.
    bool serve() noexcept;

    /// Called by the agent now and then while serve() has found the consumer polling. False: it has stopped, and the
    /// peer was asked to ring for every message; serve() is to be called once every processor has seen that
    /// (Fence::heavy()).
    bool is_still_polled() noexcept;

    bool is_with(const Peer& peer) const noexcept { return peer_.get() == &peer; }

    /// The peer is gone.
    void hang_up() noexcept;

private:
    Connection(Device& device, std::shared_ptr<EndpointRef> owner, unsigned role) noexcept
        : device_(device), owner_(std::move(owner)), role_(role) {}
    wire::Segment& segment() const noexcept { return *mapping_.as<wire::Segment>(); }
    void request_mapping(std::uint32_t key) noexcept;
    void on_readable(int fd) noexcept override;
    void answer_map_request(const MapMessage& request) noexcept;

    Device& device_;
    std::shared_ptr<EndpointRef> owner_;
    const unsigned role_;  // 0: requester, 1: acceptor
    std::uint32_t number_ = 0;
    bool registered_ = false;
    UniqueFd segment_fd_;
    Mapping mapping_;
    UniqueFd socket_;
    std::shared_ptr<DoorbellBoard> doorbell_;  // on which the peer rings
    std::shared_ptr<Peer> peer_;
    std::uint32_t peer_number_ = 0;
    std::uint32_t peer_domain_ = 0;
    bool asymmetric_ = false;
    bool peer_shares_receives_ = false;
    EndpointAttributes remote_attributes_;
};

}  // namespace viaduct::loopback
