// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/farewell.hpp"

#include <chrono>

#include "backends/ofi/node.hpp"
#include "backends/support/guarded.hpp"

namespace viaduct::ofi {
namespace {

using namespace std::chrono_literals;

/// How long a peer may take to close its socket. It is shorter than the time to send a request, so that a stranger
/// gains nothing by being refused.
constexpr auto farewell_time = 1s;

/// How much a peer may send meanwhile. A requester sends nothing after its request.
constexpr std::size_t max_discarded = std::size_t{64} << 10;

/// A socket on which this side has finished.
class Farewell final : public AgentClient {
public:
    Farewell(Node& node, ControlSocket socket) noexcept : node_(node), socket_(std::move(socket)) {}
    ~Farewell() override { node_.agent().unwatch(socket_.fd()); }

    /// Returns false if the peer has finished, too.
    bool goes_on() noexcept { return socket_.discard(budget_); }
    Status wait() {
        node_.agent().call_at(Deadline::after(farewell_time), shared_from_this());
        return node_.agent().watch(socket_.fd(), shared_from_this());
    }

private:
    void on_ready() noexcept override {
        if (!goes_on()) node_.forget(*this);
    }
    void on_deadline() noexcept override { node_.forget(*this); }

    Node& node_;
    ControlSocket socket_;
    std::size_t budget_ = max_discarded;
};

}  // namespace

void take_leave(Node& node, ControlSocket socket, const std::optional<control::Message>& last) noexcept {
    if (!socket || (last && !socket.send(*last).ok())) return;  // a peer that is gone needs no answer
    socket.finish_sending();
    // If anything fails, the socket is closed at once.
    (void)support::guarded([&]() -> Status {
        const auto farewell = std::make_shared<Farewell>(node, std::move(socket));
        if (!farewell->goes_on()) return {};
        if (const Status kept = node.keep(farewell); !kept.ok()) return kept;
        const Status watched = support::guarded([&] { return farewell->wait(); });
        if (!watched.ok()) node.forget(*farewell);
        return watched;
    });
}

}  // namespace viaduct::ofi
