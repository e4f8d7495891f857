// SPDX-License-Identifier: BSD-3-Clause
// A connection, from the first attempt on: the shared segment, the socket that signals the peer's death, and the
// identity of the peer.
#pragma once

#include <atomic>
#include <memory>

#include "backends/loopback/agent.hpp"
#include "backends/loopback/peer.hpp"
#include "backends/loopback/ring.hpp"
#include "viaduct/connection.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {

class Device;
class Endpoint;

/// Allows the agent to find an endpoint that may be destroyed at any time. The mutex also serializes all changes of the
/// endpoint's connection. Lock order: this mutex, then the locks of the completion queues.
struct EndpointRef {
    Mutex mutex;
    Endpoint* endpoint VIADUCT_GUARDED_BY(mutex) = nullptr;
};

class Connection final : public AgentClient {
public:
    /// The requester's side.
    Connection(Device& device, std::shared_ptr<EndpointRef> owner) noexcept;
    /// The acceptor's side, with the segment of a request.
    static Result<std::shared_ptr<Connection>> take(Device& device, const UniqueFd& segment);
    ~Connection() override;

    // ---- The active side of connection setup: connecting.cpp; with the mutex of the owner held ----

    /// Sends a request to a listener, or meets a peer, until there is an answer or the deadline passes. Then calls
    /// Endpoint::establish() or attempt_failed(), possibly before it returns. NoListener: there is no listener
    /// (client/server model). Throws std::bad_alloc.
    Status connect(const ConnectParameters& parameters);

    /// Called when the endpoint gives up. No event follows.
    void abandon() noexcept;

    // ---- Setup ----

    /// Gives the connection a number on the doorbell boards, unless it has one.
    Status take_number();

    /// Identifies the peer by its handshake and its process, and takes the descriptors. InvalidParameter: they are
    /// invalid.
    Status set_peer(const Handshake& handshake, std::span<UniqueFd> descriptors, pid_t process);

    /// Assigns the connection to its endpoint, makes the agent watch the socket, and takes ownership of it. On failure,
    /// the caller keeps it, and the agent cannot find the connection, which may be assigned to another endpoint. The
    /// caller holds the owner's mutex, so the agent waits until the endpoint is ready.
    Status open(UniqueSocket& socket, std::shared_ptr<EndpointRef> owner);

    /// SystemError: the peer is gone. The socket reports that as well.
    Status send(const HandshakeMessage& message, std::span<const int> descriptors) noexcept {
        return send_message(socket_.get(), &message, sizeof message, descriptors);
    }

    /// Closes the socket, which notifies the peer's agent. `on_purpose`: this is a disconnect, not a failure.
    void close(bool on_purpose) noexcept {
        if (on_purpose) segment().closing[role_].store(1);
        drop_socket();
    }

    bool closed_on_purpose_by_peer() const noexcept { return segment().closing[1 - role_].load() != 0; }

    /// While it is due, this end asks for no files: the peer takes its first message for the answer to its request.
    void set_answer_due(bool due) noexcept { answer_due_.store(due, std::memory_order_release); }

    /// Changes the state of the handshake. Returns false if it is not in the state `from`.
    bool advance(wire::Handshake from, wire::Handshake to) noexcept {
        return segment().handshake.compare_exchange_strong(from, to);
    }
    wire::Handshake handshake() const noexcept { return segment().handshake.load(); }

    /// Returns the information about the endpoint for the peer.
    InstanceInfo instance_info(const Endpoint& endpoint) const noexcept;
    int segment_fd() const noexcept { return segment_fd_.get(); }

    /// Returns the descriptors to pass to this process: doorbell memory, doorbell event, region table. Throws
    /// std::bad_alloc.
    Result<std::array<int, 3>> descriptors_for(pid_t process);

    std::uint32_t number() const noexcept { return number_; }

    // For the work queues.
    Ring outgoing() const noexcept { return ring(role_); }
    Ring incoming() const noexcept { return ring(1 - role_); }
    Peer& peer() noexcept { return *peer_; }
    std::uint32_t peer_domain() const noexcept { return peer_domain_; }
    std::uint32_t peer_number() const noexcept { return peer_number_; }
    const EndpointAttributes& remote_attributes() const noexcept { return remote_attributes_; }
    bool peer_shares_receives() const noexcept { return peer_shares_receives_; }
    /// Returns the local address of a range of the peer's memory: the same address within one process, otherwise an
    /// address in a mapping. If the memory is not mapped, returns null and requests the file from the peer once. Valid
    /// as long as the result of Peer::mapped().
    std::byte* find_memory(const RegionView& region, std::uint32_t key, std::uint64_t address, std::uint64_t length,
                           bool to_write) noexcept {
        if (peer_->is_this_process()) return reinterpret_cast<std::byte*>(address);
        if (!region.is_mappable()) return nullptr;
        if (std::byte* found = peer_->mapped(key, address, length, to_write)) return found;
        if (!answer_due_.load(std::memory_order_acquire) && peer_->should_request(key)) request_mapping(key);
        return nullptr;
    }

    /// Called by the agent, or by a consumer that polls an oversubscribed queue. Reports whether consumers poll.
    bool serve() noexcept;

    /// Called periodically by the agent while serve() finds that the consumer polls. Returns false if the consumer has
    /// stopped and the peer was asked to ring for every message. Then serve() must be called after Fence::heavy().
    bool is_still_polled() noexcept;

    /// Called when the peer is gone. `gone`: the one that is, if it may be that of another connection.
    void hang_up(const Peer* gone = nullptr) noexcept;

private:
    struct Attempt;

    Connection(Device& device, unsigned role) noexcept;
    wire::Segment& segment() const noexcept { return *mapping_.as<wire::Segment>(); }
    Ring ring(unsigned direction) const noexcept {
        wire::Segment& shared = segment();
        return {.direction = &shared.directions[direction],
                .slots = shared.slots(direction),
                .first = wire::first_position[direction],
                .area = shared.area[direction],
                .doorbell = peer_ != nullptr ? &peer_->doorbell() : nullptr,  // null before set_peer()
                .peer_number = peer_number_,
                .asymmetric_fences = asymmetric_};
    }
    Status attempt() VIADUCT_REQUIRES(owner_->mutex);
    void ask_again() VIADUCT_REQUIRES(owner_->mutex);
    Status ask_listener() VIADUCT_REQUIRES(owner_->mutex);
    Status connect_peer() VIADUCT_REQUIRES(owner_->mutex);
    Status make_offer() VIADUCT_REQUIRES(owner_->mutex);
    Status send_request(UniqueSocket socket) VIADUCT_REQUIRES(owner_->mutex);
    bool is_answered_soon() noexcept VIADUCT_REQUIRES(owner_->mutex);
    template <class Step>
    void run_step(Step step) noexcept
        VIADUCT_REQUIRES(owner_->mutex);  ///< a failure to allocate memory ends the attempt
    void on_deadline() noexcept override;
    void check_time() VIADUCT_REQUIRES(owner_->mutex);
    void go_on(int fd) noexcept VIADUCT_REQUIRES(owner_->mutex);
    bool read_answer() VIADUCT_REQUIRES(owner_->mutex);
    void answered(Handshake& answer) VIADUCT_REQUIRES(owner_->mutex);
    void answer_hung_up() VIADUCT_REQUIRES(owner_->mutex);
    void server_lacks_resources() VIADUCT_REQUIRES(owner_->mutex);
    bool may_still_answer() noexcept VIADUCT_REQUIRES(owner_->mutex);
    void rest() VIADUCT_REQUIRES(owner_->mutex);
    void take_peer_requests() VIADUCT_REQUIRES(owner_->mutex);
    void established_with(Handshake& handshake) VIADUCT_REQUIRES(owner_->mutex);
    void begin(const ConnectionEvent& event, Status status, bool hung_up) VIADUCT_REQUIRES(owner_->mutex);
    void fail(const Status& status) noexcept VIADUCT_REQUIRES(owner_->mutex);
    const char* describe_time_out(bool untaken) const noexcept;
    void finish(const ConnectionEvent& event) noexcept VIADUCT_REQUIRES(owner_->mutex);
    void drop_socket() noexcept;
    void end_attempt() noexcept;

    void request_mapping(std::uint32_t key) noexcept;
    void on_readable(int fd) noexcept override;
    void answer_map_request(const MapMessage& request);
    std::shared_ptr<Connection> self() noexcept { return std::static_pointer_cast<Connection>(shared_from_this()); }

    Device& device_;
    std::shared_ptr<EndpointRef> owner_;
    const unsigned role_;               // 0: requester, 1: acceptor
    std::unique_ptr<Attempt> attempt_;  // null: it has ended, or there was none
    std::uint32_t number_ = 0;
    bool numbered_ = false;
    UniqueFd segment_fd_;
    Mapping mapping_;
    UniqueSocket socket_;
    std::shared_ptr<DoorbellBoard> doorbell_;  // the board on which the peer rings
    std::shared_ptr<Peer> peer_;
    std::uint32_t peer_number_ = 0;
    std::uint32_t peer_domain_ = 0;
    std::atomic<bool> answer_due_{false};
    bool asymmetric_ = false;
    bool peer_shares_receives_ = false;
    EndpointAttributes remote_attributes_;
};

}  // namespace viaduct::loopback
