// SPDX-License-Identifier: BSD-3-Clause
// Makes memory of files durable, on a thread of its own: msync(2) takes as long as the storage does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "backends/loopback/doorbell.hpp"

namespace viaduct::loopback {

/// A flush that a peer ordered.
struct FlushJob {
    enum class State : std::uint8_t { Running, Done, Failed };
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint32_t connection = 0;  ///< rung at the end
    std::atomic<State> state{State::Running};
};

class Flusher {
public:
    explicit Flusher(Doorbells& board) : board_(board) {}
    ~Flusher();

    /// Starts a job. Throws std::bad_alloc, or std::system_error where the first one finds no thread.
    std::shared_ptr<FlushJob> start(std::uint64_t address, std::uint64_t length, std::uint32_t connection);

private:
    void run() noexcept;

    Doorbells& board_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable news_;
    std::deque<std::shared_ptr<FlushJob>> jobs_;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace viaduct::loopback
