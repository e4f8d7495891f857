// SPDX-License-Identifier: BSD-3-Clause
// The thread of an IA that hears of connection requests.
#pragma once

#include <mutex>
#include <thread>
#include <unordered_map>

#include "core/base/event_channel.hpp"
#include "core/base/unique_fd.hpp"

namespace viaduct::dat {

class ServicePoint;

/// Thread-safe. Starts its thread with the first service point.
class Acceptor {
public:
    Acceptor() noexcept = default;
    ~Acceptor();
    Acceptor(const Acceptor&) = delete;
    Acceptor& operator=(const Acceptor&) = delete;

    /// Calls on_request() of the service point for each readiness of its descriptor. Throws std::bad_alloc and
    /// std::system_error.
    void add(ServicePoint& point);

    /// After this the service point is not called any more. To be called for each that was added.
    void remove(ServicePoint& point) noexcept;

    /// Calls a function while no service point is called, or ends.
    template <class Function>
    auto hold(Function function) {
        const std::lock_guard lock(lock_);
        return function();
    }

    /// Waits until a service point that is called, or ends, is done: what it held on to is free then.
    void await_quiet() noexcept { const std::lock_guard lock(lock_); }

private:
    void run() noexcept;
    void start();

    UniqueFd epoll_;
    ReadableFlag stop_;
    std::thread thread_;

    std::recursive_mutex lock_;  // held while a service point is called, which may remove itself
    std::unordered_map<int, ServicePoint*> points_;
};

}  // namespace viaduct::dat
