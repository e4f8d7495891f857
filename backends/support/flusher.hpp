// SPDX-License-Identifier: BSD-3-Clause
// Makes memory that is mapped from files durable, on a separate thread, because msync(2) may be slow.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "viaduct/detail/mutex.hpp"

namespace viaduct::support {

/// A flush requested by a peer.
struct FlushJob {
    enum class State : std::uint8_t { Running, Done, Failed };
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint32_t connection = 0;  ///< for which the flush is done
    std::atomic<State> state{State::Running};
};

class Flusher {
public:
    /// `done` is called by the thread of the flusher, with the number of the connection.
    explicit Flusher(std::function<void(std::uint32_t)> done) : done_(std::move(done)) {}
    ~Flusher();

    /// Starts a job. Throws std::bad_alloc, or std::system_error if the thread cannot be started.
    std::shared_ptr<FlushJob> start(std::uint64_t address, std::uint64_t length, std::uint32_t connection);

private:
    void run() noexcept;

    const std::function<void(std::uint32_t)> done_;
    Mutex mutex_;
    ConditionVariable news_;
    std::deque<std::shared_ptr<FlushJob>> jobs_ VIADUCT_GUARDED_BY(mutex_);
    bool stop_ VIADUCT_GUARDED_BY(mutex_) = false;
    std::thread thread_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::support
