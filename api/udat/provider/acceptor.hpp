// SPDX-License-Identifier: BSD-3-Clause
// The thread of an IA that receives connection requests.
#pragma once

#include <thread>
#include <unordered_map>

#include "core/base/event_channel.hpp"
#include "core/base/unique_fd.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {

class ServicePoint;

/// Thread-safe. Starts its thread with the first service point.
class Acceptor {
public:
    ~Acceptor();

    /// Calls on_request() of the service point whenever its descriptor is readable. Throws std::bad_alloc and
    /// std::system_error.
    void add(ServicePoint& point);

    /// The service point is not called after this returns. Must be called for each service point that was added, unless
    /// it is finished.
    void remove(ServicePoint& point) noexcept;

    /// Calls a function while no service point is being called or destroyed.
    auto hold(auto function) {
        const LockGuard lock(lock_);
        return function();
    }

    /// Waits until no service point is being called or destroyed, so that its resources are released.
    void await_quiet() noexcept { const LockGuard lock(lock_); }

private:
    void run() noexcept;
    void start() VIADUCT_REQUIRES(lock_);
    void drop(ServicePoint& point) noexcept VIADUCT_REQUIRES(lock_);

    UniqueFd epoll_;
    ReadableFlag stop_;
    std::thread thread_;

    Mutex lock_;  // held while a service point is called or destroyed by the thread
    std::unordered_map<int, ServicePoint*> points_ VIADUCT_GUARDED_BY(lock_);
};

}  // namespace viaduct::dat
