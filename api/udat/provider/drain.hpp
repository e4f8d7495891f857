// SPDX-License-Identifier: BSD-3-Clause
// Waiting until an endpoint that is being disconnected gracefully has done its work.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace viaduct::dat {

/// A thread that asks again and again, while it is needed: no event tells that a queue has become empty.
class Drain {
public:
    Drain() = default;
    ~Drain() { stop(); }
    Drain(const Drain&) = delete;
    Drain& operator=(const Drain&) = delete;

    /// Calls `finished` until it returns true or somebody stops it. Throws std::system_error.
    void start(std::function<bool()> finished);

    /// Returns when `finished` is not called any more. Not to be called by it.
    void stop() noexcept;

private:
    std::mutex lock_;
    std::condition_variable wake_;
    bool stopped_ = false;
    std::thread thread_;
};

}  // namespace viaduct::dat
