// SPDX-License-Identifier: BSD-3-Clause
// A lock for the data path of backends.
#pragma once

#include <sched.h>

#include <atomic>

namespace viaduct {

inline void cpu_relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// Held for tens of nanoseconds on the data path, or for the system call that notifies a software device of work.
/// Yields the processor if its holder may have been preempted.
class SpinLock {
public:
    void lock() noexcept {
        if (!try_lock()) [[unlikely]]
            wait();
    }
    bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_acquire); }
    void unlock() noexcept { held_.store(false, std::memory_order_release); }

private:
    [[gnu::noinline]] void wait() noexcept {
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
