// SPDX-License-Identifier: BSD-3-Clause
// What the servers of the tools have in common: taking clients.
#pragma once

#include <atomic>
#include <memory>

#include "tools/measure/api.hpp"

namespace viaduct::measure {

/// How often waits look whether they shall stop.
inline constexpr Timeout slice(100);

/// Calls `serve` with each client that comes and its number, until `stop` is set or `limit` clients (0: any number)
/// were served. A Client is made of an Api and has a link() to connect.
template <class Client, class Serve>
void serve_clients(Api& api, Listener& listener, std::uint64_t limit, const std::atomic<bool>& stop, Serve serve) {
    auto next = std::make_unique<Client>(api);
    for (std::uint64_t clients = 0; !stop.load() && (limit == 0 || clients < limit);) {
        if (!listener.accept(next->link(), slice)) continue;
        serve(std::move(next), ++clients);
        next = std::make_unique<Client>(api);
    }
}

}  // namespace viaduct::measure
