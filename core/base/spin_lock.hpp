// SPDX-License-Identifier: BSD-3-Clause
// A lock for the data path of backends.
#pragma once

#include <sched.h>

#include <atomic>

#include "viaduct/detail/mutex.hpp"

namespace viaduct {

inline void cpu_relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// Held for tens of nanoseconds on the data path, or for the system call that notifies a software device of work.
/// Yields the processor if its holder may have been preempted.
class VIADUCT_LOCK SpinLock {
public:
    void lock() noexcept VIADUCT_ACQUIRE() {
        if (!try_lock()) [[unlikely]]
            wait();
    }
    bool try_lock() noexcept VIADUCT_TRY_ACQUIRE(true) { return !held_.exchange(true, std::memory_order_acquire); }
    void unlock() noexcept VIADUCT_RELEASE() { held_.store(false, std::memory_order_release); }
    [[gnu::always_inline]] void assume_held() const noexcept VIADUCT_ASSUMES_HELD {}

private:
    [[gnu::noinline]] void wait() noexcept VIADUCT_ACQUIRE() {
        int spins = 0;
        do {
            while (held_.load(std::memory_order_relaxed)) {
                if (++spins < 200)
                    cpu_relax();
                else
                    sched_yield();
            }
        } while (!try_lock());
    }

    std::atomic<bool> held_{false};
};

}  // namespace viaduct
