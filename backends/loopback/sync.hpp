// SPDX-License-Identifier: BSD-3-Clause
// The lock of a completion queue and the fences between processes.
#pragma once

#include <sched.h>

#include <atomic>

namespace viaduct::loopback {

inline void cpu_relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// Held for tens of nanoseconds on the data path. Gives the processor away when the holder was preempted.
class SpinLock {
public:
    void lock() noexcept {
        for (int spins = 0; held_.exchange(true, std::memory_order_acquire); ++spins) {
            while (held_.load(std::memory_order_relaxed)) {
                if (++spins < 200)
                    cpu_relax();
                else
                    sched_yield();
            }
        }
    }
    bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_acquire); }
    void unlock() noexcept { held_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> held_{false};
};

/// "I write A, then read B; you write B, then read A" needs a full fence on both sides. Where one side is hot and the
/// other rare, membarrier(2) lets the rare side pay for both (docs/adr/0004-asymmetric-fences.md).
class Fence {
public:
    /// Registers the process with the kernel, once. False: this process must use real fences on its hot side.
    static bool available() noexcept;

    /// For the rare side: a full fence here, and in every thread of every registered process.
    static void heavy() noexcept;

    /// For the hot side. `asymmetric`: the other side's heavy() reaches this process.
    static void light(bool asymmetric) noexcept {
        if (asymmetric)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        else
            std::atomic_thread_fence(std::memory_order_seq_cst);
    }
};

}  // namespace viaduct::loopback
