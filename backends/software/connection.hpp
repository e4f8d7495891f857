// SPDX-License-Identifier: BSD-3-Clause
// A connection: the order of its requests, and how far the two sides have come with them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/software/frames.hpp"
#include "backends/software/link.hpp"
#include "core/attributes.hpp"
#include "core/base/fifo.hpp"
#include "core/work.hpp"

namespace viaduct::software {

class Connector;
class Endpoint;
class Node;

/// The lock of the node must be held.
class Connection final : public std::enable_shared_from_this<Connection> {
public:
    explicit Connection(Node& node) noexcept : node_(node) {}
    ~Connection();

    /// Gives the connection a number. Throws std::bad_alloc. NoResources: all numbers are in use.
    static Result<std::shared_ptr<Connection>> create(Node& node);

    std::uint32_t number() const noexcept { return number_; }

    /// Returns what the peer has to know of this end.
    End describe(const Endpoint& endpoint) const noexcept;

    /// Sends a request for the connector, which gets the answers. The link must be usable.
    void request(Connector& connector, const std::shared_ptr<Link>& link, const Connect& message) noexcept;

    /// The connector gives up, or has an answer that ends the attempt.
    void withdraw() noexcept;

    /// Starts to exchange frames for the endpoint.
    void open(Endpoint& owner, const std::shared_ptr<Link>& link, const End& peer) noexcept;

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

    /// Ends the connection and tells the peer why. The endpoint is not accessed any more. `code`: why the request after
    /// those that were executed was refused, or Success.
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

private:
    void confirm(std::uint32_t count) noexcept;
    bool handle(const Frame& frame) noexcept;
    void handle_held() noexcept;
    void hold(const Frame& frame, bool last) noexcept;
    void finished(const FrameHeader& header) noexcept;
    bool may_send(const FrameHeader& header, std::uint32_t ahead_requests = 0,
                  std::uint64_t ahead_bytes = 0) const noexcept;
    void was_sent(const FrameHeader& header) noexcept;
    FrameHeader complete(FrameHeader header, std::size_t bytes) const noexcept;
    void on_closing(const Closing& closing) noexcept;
    void release() noexcept;

    Node& node_;
    std::uint32_t number_ = 0;
    bool has_number_ = false;
    std::shared_ptr<Link> link_;
    Connector* connector_ = nullptr;  // waits for the answer to its request
    Endpoint* owner_ = nullptr;       // null: not connected, or not any more
    bool requested_ = false;          // the peer has not answered the request
    bool closed_ = false;             // this side has sent Closing
    bool peer_closed_ = false;
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
