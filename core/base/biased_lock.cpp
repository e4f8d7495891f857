// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/biased_lock.hpp"

#include <sched.h>

#include <utility>

#include "core/base/fence.hpp"

namespace viaduct {

void BiasedLock::lock_slowly(bool may_change_bias) noexcept {
    slow_lock_.lock();
    void* const owner = owner_.load(std::memory_order_relaxed);
    if (owner != nullptr && owner != nobody() && owner != this_thread()) {
        wanted_.store(true);
        Fence::heavy_in_process();  // afterwards the owner sees wanted_, or we see active_
        for (int spins = 0; active_.load(std::memory_order_acquire); ++spins)
            if (spins < 200)
                cpu_relax();
            else
                sched_yield();
    }
    if (may_change_bias) reconsider(owner);
    slow_ = true;
}

/// A thread that takes the lock many times in a row becomes the owner. If other threads take it too often after that,
/// the bias ends for good. A lock never gets a second owner, because active_ as set by the first owner could be
/// mistaken for the second one's.
void BiasedLock::reconsider(void* owner) noexcept {
    if (owner == nullptr) {
        streak_ = std::exchange(last_, this_thread()) == this_thread() ? streak_ + 1 : 1;
        if (streak_ == streak_to_own && Fence::heavy_in_process())
            owner_.store(this_thread(), std::memory_order_relaxed);
    } else if (owner != nobody() && owner != this_thread() && ++intrusions_ > max_intrusions) {
        owner_.store(nobody(), std::memory_order_relaxed);
    }
}

void BiasedLock::unlock_slowly() noexcept {
    slow_ = false;
    wanted_.store(owner_.load(std::memory_order_relaxed) == nobody(), std::memory_order_release);
    slow_lock_.unlock();
}

}  // namespace viaduct
