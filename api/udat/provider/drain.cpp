// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/drain.hpp"

#include <chrono>
#include <utility>

#include "core/thread.hpp"

namespace viaduct::dat {

void Drain::start(std::function<bool()> finished) {
    stop();
    stopped_ = false;
    thread_ = start_thread([this, finished = std::move(finished)] {
        std::unique_lock lock(lock_);
        while (!stopped_ && !finished()) wake_.wait_for(lock, std::chrono::milliseconds(1));
    });
}

void Drain::stop() noexcept {
    {
        const std::lock_guard lock(lock_);
        stopped_ = true;
    }
    wake_.notify_all();
    end_thread(thread_);
}

}  // namespace viaduct::dat
