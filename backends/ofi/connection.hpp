// SPDX-License-Identifier: BSD-3-Clause
// A connection: the order of its frames, and the control socket that tells how it ends.
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "backends/ofi/agent.hpp"
#include "backends/ofi/control_socket.hpp"
#include "backends/ofi/engine.hpp"
#include "backends/ofi/frames.hpp"
#include "core/attributes.hpp"
#include "core/work.hpp"

namespace viaduct::ofi {

class Endpoint;
class Node;

/// The engine of another process, or this one.
class Peer {
public:
    Peer(Node& node, const control::FabricAddress& address, fi_addr_t number) noexcept;
    ~Peer();

    const control::FabricAddress& address() const noexcept { return address_; }
    fi_addr_t number() const noexcept { return number_; }

    /// Frames cross safely only after one side has sent the first one. The side with the lower address does.
    bool sends_first() const noexcept { return sends_first_; }
    bool is_open() const noexcept { return open_; }
    void opened() noexcept { open_ = true; }

private:
    Node& node_;
    const control::FabricAddress address_;
    const fi_addr_t number_;
    bool sends_first_;
    bool open_ = false;
};

/// The lock of the node must be held.
class Connection final : public AgentClient {
public:
    /// How many requests, and how many responses, may be sent before they are acknowledged.
    static constexpr std::uint32_t window = 64;

    /// How many of them may offer what the peer has to read.
    static constexpr std::size_t max_offers = 16;

    explicit Connection(Node& node);
    ~Connection() override;

    /// Gives the connection a number and a token. Throws std::bad_alloc. NoResources: all numbers are in use.
    static Result<std::shared_ptr<Connection>> create(Node& node);

    std::uint32_t number() const noexcept { return number_; }

    /// Returns what the peer has to know of this end.
    control::End describe(const Endpoint& endpoint) const noexcept;

    /// Starts to exchange frames for the endpoint, and owns the control socket. Throws std::bad_alloc.
    Status open(Endpoint& owner, const control::End& peer, ControlSocket socket);

    /// Sends a control message.
    void tell(const control::Message& message) noexcept { (void)socket_.send(message); }

    const EndpointAttributes& remote_attributes() const noexcept { return remote_attributes_; }
    bool peer_shares_receives() const noexcept { return peer_shares_receives_; }

    /// Sends a frame, for which the caller fills in the kind, flags, immediate, total, key and address. `fill` writes
    /// the payload of `bytes` bytes; if it returns false, nothing is sent. Returns false then, or if this is not
    /// possible now; then the owner is resumed later.
    template <class Fill>
    bool send(FrameHeader header, std::size_t bytes, Fill fill) noexcept;
    bool send(FrameHeader header, std::span<const std::byte> payload = {}) noexcept;

    /// Sends the next fragment of an operation of which `left` bytes are left: as many as possible. `flags` are those
    /// of the last fragment. `fill(memory, bytes)` writes the payload. Returns the number of bytes, or nothing where
    /// send() returns false.
    template <class Fill>
    std::optional<std::uint64_t> send_fragment(FrameHeader header, std::uint64_t left, std::uint8_t flags,
                                               Fill fill) noexcept;

    /// Returns the number of the last request that was sent.
    std::uint32_t last_request() const noexcept { return requests_.next - 1; }

    /// Reports whether the peer has executed this request and all before it.
    bool is_executed(std::uint32_t request) const noexcept { return reaches(requests_.confirmed, request); }

    /// Ends the connection and tells the peer why. The endpoint is not accessed any more. `code`: why the request after
    /// those that were executed was refused, or Success.
    void end(bool on_purpose, CompletionCode code) noexcept;

    /// Called for each frame with the connection's number.
    void on_frame(const Frame& frame) noexcept;

    /// libfabric could not transfer something. If the peer's process has ended, the control socket tells so in a
    /// moment; otherwise the connection breaks.
    void on_failure() noexcept;

    /// Gives back a block of a frame that waits for a consumer. It will be read again, because the peer keeps its own
    /// until then. Returns false if there is none.
    bool give_up_block() noexcept;

    /// Called for each block that the connection has read.
    void on_read(Engine::Block& block, bool intact) noexcept;

    /// Continues what waited.
    void resume() noexcept;

    /// Sends the counters.
    void acknowledge() noexcept;

    // Used by Node to queue each connection at most once.
    bool is_blocked = false;
    bool is_waiting = false;
    bool is_owing = false;

    std::shared_ptr<Connection> self() noexcept { return std::static_pointer_cast<Connection>(shared_from_this()); }

private:
    /// A numbered sequence of frames in one direction.
    struct Outgoing {
        std::uint32_t next = 1;
        std::uint32_t confirmed = 0;
        std::vector<Engine::Block*> offers;  // of the frames that are not confirmed; has room for all
        bool is_full() const noexcept { return next - 1 - confirmed >= window; }
    };
    /// A frame that has arrived, but has to wait.
    struct Held {
        std::vector<std::byte> bytes;
        bool offered = false;
        Engine::Block* block = nullptr;  // which reads what it offers
        bool is_complete() const noexcept { return !offered || (block != nullptr && block->arrived); }
        Frame frame() const noexcept;
    };
    struct Incoming {
        std::uint64_t done = 0;              // executed or handled
        std::uint32_t told = 0;              // the value that the peer knows
        std::map<std::uint64_t, Held> held;  // arrived, but not done
        std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(done); }
        bool has_all(std::uint32_t last) const noexcept;
    };

    void on_ready() noexcept override;
    void on_deadline() noexcept override;
    bool confirm(Outgoing& stream, std::uint32_t count) noexcept;
    bool handle(const Frame& frame) noexcept;
    void handle_held(Incoming& stream) noexcept;
    void hold(Incoming& stream, const Frame& frame);
    void read_offers(Incoming& stream) noexcept;
    void drop(Incoming& stream, std::map<std::uint64_t, Held>::iterator held) noexcept;
    void drop_all(Incoming& stream) noexcept;
    Engine::Block* take_block() noexcept;
    void write_offer(Engine::Block& block, std::size_t bytes, std::byte* payload) noexcept;
    void keep_offer(Outgoing& stream, Engine::Block& block, bool sent) noexcept;
    void withdraw_offers(Outgoing& stream) noexcept;
    Outgoing& outgoing(FrameKind kind) noexcept { return is_response(kind) ? responses_ : requests_; }
    void finished(const Frame& frame, Incoming& stream) noexcept;
    bool may_send(bool has_number) noexcept;
    void wait_for_engine() noexcept;
    void greet() noexcept;
    Engine::Buffer* prepare(FrameHeader& header) noexcept;
    void give_back(Engine::Buffer& buffer) noexcept;
    bool submit(Engine::Buffer& buffer, const FrameHeader& header, std::size_t bytes) noexcept;
    void on_closing(const control::Closing& closing);
    void end_if_complete() noexcept;
    void lose(bool by_peer = true) noexcept;
    void end_within(std::chrono::milliseconds time);
    void release() noexcept;

    Node& node_;
    Endpoint* owner_ = nullptr;  // null: not yet or no longer connected
    bool ended_ = false;         // this side has ended it
    std::uint32_t number_ = 0;
    bool has_number_ = false;
    std::uint64_t token_ = 0;  // expected in frames
    std::shared_ptr<Peer> peer_;
    std::uint32_t peer_number_ = 0;
    std::uint64_t peer_token_ = 0;
    EndpointAttributes remote_attributes_;
    bool peer_shares_receives_ = false;
    ControlSocket socket_;
    Outgoing requests_;
    Outgoing responses_;
    Incoming requested_;
    Incoming responded_;
    bool greets_ = false;   // has to send the first frame
    bool greeted_ = false;  // a frame of the peer has arrived
    bool handling_ = false;
    bool failed_ = false;                      // see on_failure()
    std::optional<control::Closing> closing_;  // what the peer has told
    Deadline close_by_ = Deadline::never();

    friend class Node;
};

template <class Fill>
bool Connection::send(FrameHeader header, std::size_t bytes, Fill fill) noexcept {
    Engine::Buffer* buffer = prepare(header);
    if (buffer == nullptr) return false;
    if (fill(buffer->bytes + sizeof header)) return submit(*buffer, header, bytes);
    give_back(*buffer);
    return false;
}

template <class Fill>
std::optional<std::uint64_t> Connection::send_fragment(FrameHeader header, std::uint64_t left, std::uint8_t flags,
                                                       Fill fill) noexcept {
    Outgoing& stream = outgoing(header.kind);
    Engine::Block* block = nullptr;
    if (left > fragment_bytes) {
        if (stream.offers.size() == max_offers) return std::nullopt;  // resumed by the acknowledgment
        block = take_block();
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(left, block != nullptr ? max_offer_bytes : fragment_bytes);
    header.flags |= bytes < left ? frame_flags::more : flags;
    bool sent = false;
    if (block == nullptr) {
        sent = send(header, bytes, [&](std::byte* payload) { return fill(payload, bytes); });
    } else {
        header.flags |= frame_flags::offered;
        sent = send(header, sizeof(Offer), [&](std::byte* payload) {
            if (!fill(block->bytes.get(), bytes)) return false;
            write_offer(*block, bytes, payload);
            return true;
        });
        keep_offer(stream, *block, sent);
    }
    return sent ? std::optional(bytes) : std::nullopt;
}

}  // namespace viaduct::ofi
