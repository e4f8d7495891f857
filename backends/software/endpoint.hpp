// SPDX-License-Identifier: BSD-3-Clause
// An endpoint: its queues, its attributes and its connection.
#pragma once

#include "backends/software/receive_queue.hpp"
#include "backends/software/send_queue.hpp"
#include "backends/support/endpoint_base.hpp"
#include "core/backend.hpp"

namespace viaduct::software {

class Device;

class Endpoint final : public support::EndpointBase<Endpoint, Device> {
public:
    Endpoint(Device& device, const backend::EndpointInit& init);
    ~Endpoint() override;

    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept override;
    Status bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept override;
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override;
    Status modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept override;
    Status connect(const ConnectParameters& parameters) noexcept override;
    void disconnect() noexcept override { leave(false); }
    void drain() noexcept override;
    void fail() noexcept override { leave(true); }

    // The lock of the node must be held for the functions below.
    Node& node() noexcept { return node_; }
    bool is_idle() const noexcept { return connection_ == nullptr && !broken_; }

    // For the work queues.
    std::uint32_t connection_number() const noexcept { return connection_->number(); }
    /// Checks access to the first `bytes` bytes of an SGE.
    bool may_use(const Sge& sge, std::uint64_t bytes, bool written) const noexcept;
    bool has_file(std::uint32_t key) const noexcept {
        const RegionView* region = node_.regions().find(key);
        return region != nullptr && region->has_file();
    }

    /// Called after an error that ends the connection. The queues stop; end() follows.
    void request_break() noexcept {
        if (!is_connected() || std::exchange(breaking_, true)) return;
        request_end();
    }
    bool is_breaking() const noexcept { return breaking_; }
    /// Makes the node call end().
    void request_end() noexcept {
        if (!std::exchange(ending_, true)) node_.end_soon(*this);
    }
    /// Ends the connection if it breaks or if the send queue has drained.
    void end() noexcept;

    // For connections.
    /// Executes a request or handles a response. Returns false if it has to wait.
    bool handle(const Frame& frame) noexcept;
    /// See Connection.
    std::size_t find_destination(const FrameHeader& header, std::span<iovec> pieces) noexcept {
        if (breaking_) return 0;
        return header.kind == FrameKind::Data ? send_.find_destination(header, pieces)
                                              : receive_.find_destination(header, pieces);
    }
    void has_placed(const FrameHeader& header) noexcept;
    void progress() noexcept { send_.progress(); }
    /// Starts to use an open connection, and reports the event.
    void establish(std::shared_ptr<Connection> connection, const ConnectionEvent& event) noexcept;
    /// The connection broke. `by_peer`: the peer's process has ended, or it does not follow the protocol.
    void connection_lost(Connection& connection, bool by_peer) noexcept;

    /// The peer has ended the connection. `refused`: how the oldest request without an answer completes.
    void peer_ended(Connection& connection, bool on_purpose, CompletionCode refused = CompletionCode::Success) noexcept;

    /// The attempt to connect has ended. Reports the event.
    void attempt_failed(const ConnectionEvent& event) noexcept {
        connection_.reset();
        observer_.on_connection_event(event);
    }

private:
    friend EndpointBase;
    bool is_connected() const noexcept { return connection_ != nullptr && connection_->is_open(); }
    void end_connection(bool on_purpose, bool reject_receives, CompletionCode in_flight,
                        CompletionCode refused = CompletionCode::Success) noexcept;
    void leave(bool fails) noexcept;
    void broke(const ConnectionEvent& event, CompletionCode in_flight, bool on_purpose = false,
               CompletionCode refused = CompletionCode::Success) noexcept;

    Node& node_;
    SendQueue send_;
    ReceiveQueue receive_;
    std::shared_ptr<Connection> connection_;  // from the first attempt on
    bool breaking_ = false;                   // end() follows
    bool ending_ = false;                     // likewise
    bool broken_ = false;
};

}  // namespace viaduct::software
