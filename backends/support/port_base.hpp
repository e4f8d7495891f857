// SPDX-License-Identifier: BSD-3-Clause
// Who uses a port: the listeners of services, and peer-to-peer connections that wait for their peers.
#pragma once

#include <algorithm>
#include <vector>

namespace viaduct::support {

/// A `Listener` has service(), and a `Peer` has expects().
template <class Listener, class Peer>
class PortBase {
public:
    void add(Listener& listener) { listeners_.push_back(&listener); }
    void add(Peer& peer) { peers_.push_back(&peer); }
    void remove(const Listener& listener) noexcept { std::erase(listeners_, &listener); }
    void remove(const Peer& peer) noexcept { std::erase(peers_, &peer); }

    /// Finds the first peer that expects this, or returns null.
    template <class... Arrived>
    Peer* find_peer(const Arrived&... arrived) const noexcept {
        const auto found = std::ranges::find_if(peers_, [&](const Peer* peer) { return peer->expects(arrived...); });
        return found == peers_.end() ? nullptr : *found;
    }

protected:
    bool is_unused() const noexcept { return listeners_.empty() && peers_.empty(); }

    /// Alternates between the listeners of a service. Null: it has none.
    template <class Service>
    Listener* next_listener(const Service& service) noexcept {
        const auto found = std::ranges::find(listeners_, service, &Listener::service);
        if (found == listeners_.end()) return nullptr;
        std::rotate(found, found + 1, listeners_.end());
        return listeners_.back();
    }

    std::vector<Listener*> listeners_;  // in the order of their turns
    std::vector<Peer*> peers_;
};

}  // namespace viaduct::support
