// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/sync.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace viaduct::loopback {
namespace {

long membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

bool Fence::available() noexcept {
    static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
    return registered;
}

void Fence::heavy() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (available()) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Fence::heavy_in_process() noexcept {
    static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    return registered && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

void LeaningLock::lock_slowly(bool lean) noexcept {
    slow_lock_.lock();
    void* const owner = owner_.load(std::memory_order_relaxed);
    if (owner != nullptr && owner != nobody() && owner != this_thread()) {
        wanted_.store(true);
        Fence::heavy_in_process();  // from here on the owner sees the want, or we see that it is inside
        for (int spins = 0; active_.load(std::memory_order_acquire); ++spins)
            if (spins < 200)
                cpu_relax();
            else
                sched_yield();
    }
    if (lean && owner != nobody() && owner != this_thread()) {
        const bool can_lean = owners_++ < max_owners && Fence::heavy_in_process();
        owner_.store(can_lean ? this_thread() : nobody(), std::memory_order_relaxed);
    }
    slow_ = true;
}

void LeaningLock::unlock_slowly() noexcept {
    slow_ = false;
    wanted_.store(false, std::memory_order_release);
    slow_lock_.unlock();
}

}  // namespace viaduct::loopback
