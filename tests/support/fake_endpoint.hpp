// SPDX-License-Identifier: BSD-3-Clause
// The endpoint of the fake backend: work queues in fake_transfer.cpp, connections in fake_connection.cpp.
#pragma once

#include <optional>

#include "tests/support/fake_world.hpp"

namespace viaduct::testing::fake {

struct PostedSend {
    SendRequest request;
    std::vector<Sge> pieces;
    std::uint64_t bytes = 0;
    backend::BindRequest shown{};           ///< for a bind, whose key is in request.remote
    std::shared_ptr<WindowState> window{};  ///< for a bind
};

class Endpoint final : public backend::Endpoint, private CountedObject {
public:
    Endpoint(std::shared_ptr<World> world, Device& device, const backend::EndpointInit& init);
    ~Endpoint() override { disconnect(); }

    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept override;
    Status bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept override;
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override;
    std::uint32_t outstanding(QueueKind queue) const noexcept override;
    Status modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept override;
    Status connect(const ConnectParameters& parameters) noexcept override;
    void disconnect() noexcept override;
    void drain() noexcept override;
    void fail() noexcept override;

    // For World and Request, with the mutex held.
    bool idle() const noexcept { return state_ == State::Idle; }
    const Attempt& attempt() const noexcept { return *attempt_; }
    /// Sends the current attempt to a listener.
    void ask(Listener& listener);
    /// Ends the current attempt with an event and makes the endpoint idle.
    void end_attempt(const ConnectionEvent& event) noexcept;
    static void join(Endpoint& one, Endpoint& other) noexcept;
    void tell(const ConnectionEvent& event) noexcept;
    const EndpointAttributes& attributes() const noexcept { return attributes_; }
    void run_sends();

private:
    enum class State { Idle, Connecting, Connected, Broken };

    /// The outcome of a request at the head of the send queue.
    struct Outcome {
        CompletionCode code = CompletionCode::Success;
        bool breaks = false;  ///< the connection breaks at both ends
        bool waits = false;   ///< for a receive; not executed yet
        bool spoilt = false;  ///< because the receive of the peer has failed
    };

    bool reliable() const noexcept { return attributes_.reliability != Reliability::Unreliable; }
    Status enqueue(PostedSend send);
    Status enqueue(const ReceiveRequest& request);
    Outcome execute(const PostedSend& send);
    Outcome send_message(const PostedSend& send);
    Outcome write(const PostedSend& send);
    Outcome read(const PostedSend& send);
    Outcome exchange(const PostedSend& send);
    Outcome flush(const PostedSend& send);
    Outcome show(const PostedSend& send);
    bool may_show(const PostedSend& send) const noexcept;
    void close_views() noexcept;
    bool invalidate(std::uint32_t key) noexcept;
    Outcome no_receive(CompletedOperation operation);
    Outcome remote_failure(CompletionCode code) const noexcept;
    bool can_receive() const noexcept;
    PostedReceive take_receive();
    CompletionCode check(const PostedSend& send) const noexcept;
    CompletionCode check(const PostedReceive& receive, std::uint64_t needed) const noexcept;
    bool may_use(const Sge& piece, bool to_write, const backend::ProtectionDomain& domain) const noexcept;
    bool grants(const SendRequest& request, std::uint64_t bytes) const noexcept;
    std::uint64_t max_transfer_bytes() const noexcept;
    void complete_send(const PostedSend& send, CompletionCode code);
    void complete_receive(const PostedReceive& receive, const PostedSend& message, CompletionCode code);
    void report(AsyncEventKind kind, CompletedOperation operation) noexcept;

    void flush_sends();
    void flush_receives();
    void leave(State next, ConnectionEventKind to_peer) noexcept;
    void lose(ConnectionEventKind kind, Code reason = Code::Ok) noexcept;
    void end_if_drained() noexcept;
    void stop_connecting() noexcept;
    void meet_peer();

    Device& device_;
    EndpointAttributes attributes_;
    const backend::ProtectionDomain* domain_;
    CompletionQueue* send_queue_;
    CompletionQueue* receive_queue_;
    SharedReceiveQueue* shared_receives_;
    std::uint32_t send_depth_;
    std::uint32_t receive_depth_;
    std::uint64_t context_;
    EndpointObserver* observer_;

    State state_ = State::Idle;
    Endpoint* peer_ = nullptr;
    std::shared_ptr<Attempt> attempt_;
    std::deque<PostedSend> sends_;
    std::optional<std::size_t> left_to_drain_;  // number of them
    std::deque<PostedReceive> receives_;
    std::shared_ptr<Outstanding> outstanding_ = std::make_shared<Outstanding>();
};

}  // namespace viaduct::testing::fake
