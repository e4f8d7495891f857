// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/port.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "backends/support/guarded.hpp"
#include "backends/tcp/link.hpp"
#include "core/log.hpp"

namespace viaduct::tcp {
namespace {

using namespace std::chrono_literals;

/// How many clients of a node may not have authenticated yet, and how many others may have links without a use: as many
/// as may come at once, but no more than a quarter of the descriptors, because a process may have several nodes. Those
/// that came first have to leave.
std::size_t most_strangers() noexcept {
    constexpr rlim_t most = 1024;
    rlimit descriptors{};
    if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return most;
    return std::clamp<rlim_t>(descriptors.rlim_cur / 4, 1, most);
}

/// How long a port accepts no clients if resources are exhausted.
constexpr auto accept_pause = 100ms;

/// How many clients are accepted before others of the node have a turn: clients may come as fast as that.
constexpr int accepts_at_once = 64;

}  // namespace

Result<std::shared_ptr<software::Port>> Port::open(Transport& transport, software::Node& node, std::uint16_t number) {
    auto socket = Socket::listen(node.host(), number);
    if (!socket.ok()) {
        log(LogLevel::Info, "tcp: cannot listen at port %u: %s: %s", number, socket.status().where(),
            std::strerror(socket.status().sys_errno()));
        return socket.status();
    }
    auto port = std::make_shared<Port>(transport, node, number, std::move(*socket));
    if (!port->reserve_) return Status::from_errno(errno, "open of /dev/null");
    if (const Status status = node.agent().watch(port->socket_.get(), port); !status.ok()) return status;
    return std::shared_ptr<software::Port>(std::move(port));
}

Port::~Port() { node_.agent().unwatch(socket_.get()); }

/// Accepts clients that have connected. `refuses`: they are to be refused. WouldBlock: there are no more.
Status Port::greet_clients(int count, bool refuses) noexcept {
    const auto self = std::static_pointer_cast<Port>(shared_from_this());
    const std::size_t most = most_strangers();
    return support::guarded([&]() -> Status {
        for (; count != 0; --count) {
            auto socket = Socket::accept(socket_.get());
            if (!socket.ok()) return socket.status();
            auto& strangers = transport_.strangers();
            std::erase_if(strangers, [](const auto& stranger) {
                const auto link = stranger.lock();
                return link == nullptr || link->is_open();
            });
            while (strangers.size() >= most) {
                const auto oldest = strangers.front().lock();
                strangers.erase(strangers.begin());
                if (oldest != nullptr) oldest->evict({Code::NoResources, "too many others have not authenticated"});
            }
            const auto link = Link::accept(transport_, node_, self, std::move(*socket), refuses);
            if (link.ok() && !link.value()->is_open()) strangers.push_back(link.value());
        }
        return {};
    });
}

/// If resources are exhausted, one client learns that, and the others wait for a moment. Called by the agent, while no
/// link handles a frame.
void Port::on_readable(int) noexcept {
    node_.close_idle_links(Link::Side::Accepts, most_strangers());
    const Status status = greet_clients(accepts_at_once);
    if (status.ok() || status.code() == Code::WouldBlock) return;
    for (const Link::Side side : {Link::Side::Accepts, Link::Side::Connects}) node_.close_idle_links(side, 0);
    node_.turn_away(number(), status.sys_errno() == EMFILE ? support::lack_of_descriptors : status);
    reserve_.reset();
    if (!greet_clients(1, true).ok()) reserve_descriptor();
    const Status continues = support::guarded([this] { node_.agent().call_at(Deadline::after(accept_pause), *this); });
    if (continues.ok()) node_.agent().pause(socket_.get(), true);
}

}  // namespace viaduct::tcp
