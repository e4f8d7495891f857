// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/endpoint.hpp"

#include "backends/software/connection.hpp"
#include "backends/software/device.hpp"
#include "backends/support/endings.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/post_each.hpp"

namespace viaduct::software {

Endpoint::Endpoint(Device& device, const backend::EndpointInit& init)
    : EndpointBase(device, init),
      node_(device.node()),
      send_(*this, *static_cast<CompletionQueue*>(init.send_queue), init.send_depth),
      receive_(*this, *static_cast<CompletionQueue*>(init.receive_queue), init.receive_depth,
               static_cast<SharedReceiveQueue*>(init.shared_receives)) {
    const Node::Guard guard(node_);
    node_.joins(*this);
}

Endpoint::~Endpoint() {
    disconnect();
    const Node::Guard guard(node_);
    node_.leaves(*this);
    device_.endpoint_closed();
}

// ---- Posting -----------------------------------------------------------------------------------------------------

Status Endpoint::post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept {
    const Node::Guard guard(node_);
    return support::post_each(requests, posted, [this](const SendRequest& request) { return send_.enqueue(request); });
}

Status Endpoint::post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
    const Node::Guard guard(node_);
    return support::post_each(requests, posted,
                              [this](const ReceiveRequest& request) { return receive_.enqueue(request); });
}

Status Endpoint::bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept {
    return support::guarded([&] {
        const Node::Guard guard(node_);
        return post_bind(window, request, [this](const SendRequest& turn) { return send_.enqueue(turn); });
    });
}

// ---- Rights ------------------------------------------------------------------------------------------------------

bool Endpoint::may_use(const Sge& sge, std::uint64_t bytes, bool written) const noexcept {
    if (bytes == 0) return true;
    const RegionView* region = node_.regions().find(sge.key);
    return region != nullptr && region->domain == domain_id_ && region->is_usable(written) &&
           region->covers(reinterpret_cast<std::uint64_t>(sge.address), bytes);
}

Status Endpoint::modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept {
    const Node::Guard guard(node_);
    if (!is_idle()) return {Code::InvalidState, "the attributes can be changed only while the endpoint is idle"};
    change(attributes, domain);
    return {};
}

// ---- Connections -------------------------------------------------------------------------------------------------

Status Endpoint::connect(const ConnectParameters& parameters) noexcept {
    const Node::Guard guard(node_);
    if (!is_idle()) return {Code::InvalidState, "the endpoint is not idle"};
    const Status status = support::guarded([&] {
        const auto connection = connection_ = std::make_shared<Connection>(node_, *this);
        return connection->connect(parameters);
    });
    if (!status.ok() && connection_ != nullptr) std::exchange(connection_, nullptr)->end(true, CompletionCode::Success);
    return status;
}

void Endpoint::establish(std::shared_ptr<Connection> connection, const ConnectionEvent& event) noexcept {
    breaking_ = ending_ = false;
    connection_ = std::move(connection);
    receive_.attach(*connection_);
    send_.attach(*connection_);
    observer_.on_connection_event(event);
}

bool Endpoint::handle(const Frame& frame) noexcept {
    if (breaking_) return false;
    const FrameHeader& header = frame.header;
    if (header.kind == FrameKind::Data) {
        if (!send_.take_data(frame)) {
            connection_->lose("sends data that nobody wants");
        }
        return true;
    }
    if (header.kind == FrameKind::Refused) {
        const bool failed = header.immediate == static_cast<std::uint32_t>(CompletionCode::RemoteOperation);
        if (is_reliable())
            connection_->lose("refuses a request of a reliable connection");
        else
            send_.take_refusal(header.key, failed ? CompletionCode::RemoteOperation : CompletionCode::RemoteProtection);
        return true;
    }
    const bool done = receive_.execute(frame);
    if (breaking_) return false;  // the request that was refused does not count as executed
    if (!done) node_.wait_for_consumer(connection_);
    return done;
}

void Endpoint::has_placed(const FrameHeader& header) noexcept {
    if (header.kind == FrameKind::Data)
        send_.has_placed(header);
    else
        receive_.has_placed(header);
}

/// Flushes both queues and releases the connection.
void Endpoint::end_connection(bool on_purpose, bool reject_receives, CompletionCode in_flight,
                              CompletionCode refused) noexcept {
    const std::shared_ptr<Connection> connection = connection_;
    send_.detach(in_flight, refused);
    receive_.detach(reject_receives);
    connection_ = nullptr;
    breaking_ = ending_ = false;
    if (connection == nullptr) return;
    if (connection->is_open()) node_.regions().end_windows_of(connection->number());
    connection->end(on_purpose, receive_.refusal());
}

void Endpoint::leave(bool fails) noexcept {
    const Node::Guard guard(node_);
    if (is_connected()) node_.progress();  // messages that have arrived are received
    end_connection(!fails && !breaking_, fails, CompletionCode::Flushed);
    broken_ = fails;
}

void Endpoint::drain() noexcept {
    const Node::Guard guard(node_);
    if (!is_connected()) return;
    node_.send_held();
    send_.drain();
}

void Endpoint::broke(const ConnectionEvent& event, CompletionCode in_flight, bool on_purpose,
                     CompletionCode refused) noexcept {
    end_connection(on_purpose, true, in_flight, refused);
    broken_ = true;
    observer_.on_connection_event(event);
}

void Endpoint::end() noexcept {
    if (!is_connected() || !std::exchange(ending_, false)) return;
    if (breaking_)
        broke(loss_here(receive_.peer_failed()), CompletionCode::Transport);
    else if (send_.has_drained())
        broke({.kind = ConnectionEventKind::Disconnected, .why = support::endings::drained}, CompletionCode::Flushed,
              true);
}

void Endpoint::connection_lost(Connection& connection, bool by_peer) noexcept {
    if (connection_.get() != &connection) return;
    const ConnectionEvent loss{.kind = ConnectionEventKind::Lost,
                               .reason = by_peer ? Code::Unreachable : Code::Ok,
                               .why = by_peer ? support::endings::peer_ended : "the connection to the peer failed"};
    broke(breaking_ ? loss_here(receive_.peer_failed()) : loss, CompletionCode::Transport);
}

void Endpoint::peer_ended(Connection& connection, bool on_purpose, CompletionCode refused) noexcept {
    if (connection_.get() != &connection) return;
    if (breaking_)
        broke(loss_here(receive_.peer_failed()), CompletionCode::Transport, false, refused);
    else if (refused != CompletionCode::Success)
        broke({.kind = ConnectionEventKind::Lost, .why = support::words_of_peer(refused)}, CompletionCode::Transport,
              false, refused);
    else if (on_purpose)
        broke({.kind = ConnectionEventKind::Disconnected, .why = support::endings::disconnected},
              CompletionCode::Flushed);
    else
        broke({.kind = ConnectionEventKind::Lost, .reason = Code::Unreachable, .why = support::endings::peer_ended},
              CompletionCode::Transport);
}

}  // namespace viaduct::software
