// SPDX-License-Identifier: BSD-3-Clause
// A connection, from the first attempt on: the order of its requests, and how far the two sides have come with them.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "backends/software/link.hpp"
#include "core/base/fifo.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/work.hpp"

namespace viaduct::software {

class Endpoint;
class Node;

/// Owned by its endpoint until that ends it, and then by the node until the peer has noticed. The lock of the node must
/// be held.
class Connection final : public AgentClient {
public:
    Connection(Node& node, Endpoint& owner) noexcept;
    ~Connection() override;

    // ---- Setup: connecting.cpp ----

    /// Sends a request to a listener, or meets a peer: until there is an answer or the deadline passes. The endpoint
    /// learns the outcome: Endpoint::establish() or Endpoint::attempt_failed(). Unreachable: there is no route. Throws
    /// std::bad_alloc.
    Status connect(const ConnectParameters& parameters);

    /// Accepts a request that has arrived over the link. NoResources. Throws std::bad_alloc.
    Status accept(const std::shared_ptr<Link>& link, const End& peer, const Service& answered_by,
                  const PrivateData& private_data, const ConnectionEvent& established);

    /// Reports whether it waits for a peer-to-peer request.
    bool expects(const HostAddress& host, const Service& service) const noexcept;
    void on_peer(const std::shared_ptr<Link>& link, const Connect& request) noexcept;

    /// The link that was awaited is usable, or has failed.
    void on_link(Link& link, const Status& status) noexcept;

    // ---- For the endpoint ----

    std::uint32_t number() const noexcept { return number_; }
    bool is_open() const noexcept { return progress_ == Progress::Open || progress_ == Progress::PeerClosed; }
    Link* link() const noexcept { return link_.get(); }
    const EndpointAttributes& remote_attributes() const noexcept { return remote_attributes_; }
    bool peer_shares_receives() const noexcept { return peer_shares_receives_; }

    /// Sends a frame, for which the caller fills in the kind, flags, immediate, total, key and address. Returns false
    /// if this is not possible now; then the owner is resumed later.
    bool send(FrameHeader header, std::span<const std::byte> payload = {}) noexcept;

    /// Sends the next fragments of the SGEs, of which `moved` bytes were sent and `left` are left. `header` has the
    /// address of the first one, `flags` are those of the last one. Returns how many bytes were sent, or nothing where
    /// send() returns false. Also nothing if `there` is false: the memory is not there.
    std::optional<std::uint64_t> send_fragments(FrameHeader header, std::span<const Sge> sges, std::uint64_t moved,
                                                std::uint64_t left, std::uint8_t flags, bool& there) noexcept;

    /// Returns the number of the last request that was sent.
    std::uint32_t last_request() const noexcept { return sent_; }

    /// Reports whether the system has taken this request and all before it.
    bool is_sent(std::uint32_t request) const noexcept { return reaches(taken_, request); }

    /// Reports whether the peer has executed this request and all before it.
    bool is_executed(std::uint32_t request) const noexcept { return reaches(confirmed_, request); }

    /// The number of the request of the peer that is being executed.
    std::uint32_t current_request() const noexcept { return done_ + 1; }

    /// Ends the connection or the attempt, and tells the peer why. The endpoint is not accessed any more. `code`: why
    /// the request after those that were executed was refused, or Success.
    void end(bool on_purpose, CompletionCode code) noexcept;

    // ---- For the link ----

    /// Called for each frame, or for its parts; `last`: of the frame.
    void on_frame(const Frame& frame, bool last) noexcept;

    /// Finds memory of the program for a part of a frame that has not arrived yet. Returns the number of pieces; 0: it
    /// has to be read elsewhere.
    std::size_t find_destination(const FrameHeader& header, std::span<iovec> pieces) noexcept;
    /// The beginning of that has been read.
    void has_placed(const FrameHeader& header) noexcept;

    Status on_message(const FrameHeader& header, std::span<const std::byte> body) noexcept;
    void link_lost(const Status& why) noexcept;

    /// Calls resume_sending() when the link has room.
    void wait_for(std::vector<std::weak_ptr<Connection>>& list) noexcept;
    void resume_sending() noexcept {
        is_blocked_ = false;
        taken_ = sent_;
        resume();
    }

    /// Continues what waited.
    void resume() noexcept;

    /// Sends the counter.
    void acknowledge() noexcept;

    /// The peer does not follow the protocol, or resources are exhausted: the connection breaks.
    void lose(const char* why) noexcept;

    // Used by Node to queue each connection at most once.
    bool is_waiting = false;
    bool is_owing = false;

    /// A connection that this side has ended, and when the peer ought to have noticed.
    struct Ended {
        std::shared_ptr<Connection> connection;
        Deadline patience;
    };
    std::optional<std::list<Ended>::iterator> closing{};  // its place among those of the node

private:
    enum class Progress : std::uint8_t {
        Idle,       ///< nothing is expected of the peer
        Asked,      ///< the peer has to answer the request
        Withdrawn,  ///< the same, but the answer is not wanted any more
        Open,
        PeerClosed,  ///< the peer has sent Closing
        Closed,      ///< this side has, and the peer has to
    };
    struct Attempt;

    Status take_number();
    End describe() const noexcept;
    void open(const std::shared_ptr<Link>& link, const End& peer) noexcept;
    Status attempt();
    void attempt_again() noexcept;
    void ask(const std::shared_ptr<Link>& link) noexcept;
    Status wait_for_peer();
    void retry(bool no_listener) noexcept;
    void on_deadline() noexcept override;
    void established(const Accepted& accepted) noexcept;
    Status refused(FrameKind kind, std::span<const std::byte> body) noexcept;
    void dropped() noexcept;
    void hung_up(bool asked, const Status& why) noexcept;
    bool ask_over_new_link() noexcept;
    void no_listener_found() noexcept;
    void timed_out() noexcept;
    void fail(const Status& status) noexcept;
    void finish(const ConnectionEvent& event) noexcept;
    void end_attempt() noexcept;

    void confirm(std::uint32_t count) noexcept;
    bool handle(const Frame& frame) noexcept;
    void handle_held() noexcept;
    void forget_held() noexcept {
        held_ = {};
        held_begin_ = 0;
    }
    void hold(const Frame& frame, bool last) noexcept;
    void finished(const FrameHeader& header) noexcept;
    void lack_memory() noexcept;
    bool has_room(std::size_t frames) noexcept {
        const bool has = sizes_.reserve(sizes_.size() + frames);
        if (!has) lack_memory();
        return has;
    }
    bool may_send(const FrameHeader& header, std::uint32_t ahead_requests = 0,
                  std::uint64_t ahead_bytes = 0) const noexcept;
    bool send_frame(FrameHeader header, std::span<const iovec> payload, std::uint64_t bytes, bool& there) noexcept;
    void was_sent(const FrameHeader& header) noexcept;
    FrameHeader complete(FrameHeader header, std::size_t bytes) const noexcept;
    void on_closing(const Closing& closing) noexcept;
    void release() noexcept;
    std::shared_ptr<Connection> self() noexcept { return std::static_pointer_cast<Connection>(shared_from_this()); }

    Node& node_;
    std::uint32_t number_ = 0;
    bool has_number_ = false;
    std::shared_ptr<Link> link_;
    Endpoint* owner_;                   // null: it has ended the connection
    std::unique_ptr<Attempt> attempt_;  // null: it has ended, or there was none
    Progress progress_ = Progress::Idle;
    bool handling_ = false;
    bool is_blocked_ = false;
    std::uint32_t peer_number_ = 0;
    EndpointAttributes remote_attributes_;
    bool peer_shares_receives_ = false;

    // Requests of this side.
    std::uint32_t sent_ = 0;
    std::uint32_t taken_ = 0;  // by the system
    std::uint32_t confirmed_ = 0;
    std::uint64_t unconfirmed_bytes_ = 0;
    Fifo<std::uint32_t> sizes_;  // of the frames that are not confirmed

    // Requests of the peer.
    std::uint32_t done_ = 0;
    std::uint32_t told_ = 0;  // the value that the peer knows
    std::uint64_t untold_bytes_ = 0;
    std::vector<std::byte> held_;  // parts of frames that have to wait: for each, a header and the payload
    std::size_t held_begin_ = 0;
};

}  // namespace viaduct::software
