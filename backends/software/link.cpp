// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/link.hpp"

#include <algorithm>

#include "backends/software/connection.hpp"
#include "backends/software/listener.hpp"
#include "backends/software/node.hpp"
#include "backends/support/guarded.hpp"

namespace viaduct::software {

void Link::tell_waiting(const Status& status) noexcept {
    const auto waiting = std::exchange(waiting_, {});
    for (const auto& entry : waiting)
        if (const auto connection = entry.lock()) connection->on_link(*this, status);
}

void Link::leave() noexcept {
    --users_;
    last_use_id = node_.next_id();
}

void Link::await_no_more(const Connection& connection) noexcept {
    std::erase_if(waiting_, [&](const auto& entry) {
        const auto other = entry.lock();
        return other == nullptr || other.get() == &connection;
    });
    if (waiting_.empty() && !is_usable() && !is_closed()) abandon();
}

void Link::drop(std::uint32_t requester) noexcept {
    if (is_closed()) return;
    (void)support::guarded([&] { dropped_.push_back(requester); });
}

void Link::end_users(const Status& why) noexcept {
    tell_waiting(why);
    if (users_ != 0) node_.link_lost(*this, why);  // looks at all connections
    for (ConnectionRequest* request : std::exchange(requests_, {})) request->link_lost();
}

std::shared_ptr<Connection> Link::receiver(const FrameHeader& header) noexcept {
    return node_.find(header.connection, *this);
}

Status Link::take_message(const FrameHeader& header, std::span<const std::byte> body) noexcept {
    const bool asks = header.kind == FrameKind::Connect || header.kind == FrameKind::Cancel;
    if (asks && side_ == Side::Connects)  // whoever accepted this link has not authenticated as a client
        return {Code::InvalidParameter, "the peer sends a request over a link of this side"};
    switch (header.kind) {
        case FrameKind::Connect: {
            Connect message;
            if (const Status status = decode(body, message); !status.ok()) return status;
            return request(message);
        }
        case FrameKind::Cancel: cancel(header.key); return {};
        case FrameKind::NoResources: refused_ = true; break;
        default: break;
    }
    const auto connection = receiver(header);
    return connection == nullptr ? Status() : connection->on_message(header, body);
}

/// Answers a request that is not wanted any more, unless its answer is on the way.
void Link::cancel(std::uint32_t requester) noexcept {
    const auto found = std::ranges::find(requests_, requester, &ConnectionRequest::requester);
    if (found != requests_.end()) {
        (*found)->link_lost();
        requests_.erase(found);
    } else if (std::erase(dropped_, requester) == 0) {
        return;
    }
    tell(requester, NoListener{});
}

Status Link::request(const Connect& message) noexcept {
    if (refuses()) {
        tell(message.end.connection, NoResources{});
        close();
        return {};
    }
    const Status status = support::guarded([&]() -> Status {
        const auto port = node_.ports().find(port_);
        if (port == node_.ports().end()) return {Code::NoListener, "the port is closed"};
        const auto keep = port->second;
        return keep->take(self(), message);
    });
    if (status.code() == Code::NoResources) tell(message.end.connection, NoResources{});
    if (status.code() == Code::NoListener) tell(message.end.connection, NoListener{});
    return {};
}

}  // namespace viaduct::software
