// SPDX-License-Identifier: BSD-3-Clause
// The lock of whatever one thread polls: completion queues, event dispatchers.
#pragma once

#include <atomic>

#include "core/base/spin_lock.hpp"
#include "core/export.hpp"

namespace viaduct {

/// Leans towards the thread that uses the queue: that one takes it without an atomic read-modify-write, which would
/// wait until the message just written has reached the other core. Whoever else wants it pays for both with
/// membarrier(2) (docs/adr/0005-biased-locks.md). Where consumers share a queue it becomes an ordinary lock for good.
class VIADUCT_EXPORT BiasedLock {
public:
    void lock() noexcept {
        if (owner_.load(std::memory_order_relaxed) == this_thread()) {
            active_.store(true, std::memory_order_relaxed);
            std::atomic_signal_fence(std::memory_order_seq_cst);
            // The owner is asked for again: it may have been deposed since, and then nobody minds active_.
            if (!wanted_.load(std::memory_order_acquire) && owner_.load(std::memory_order_relaxed) == this_thread())
                return;
            active_.store(false, std::memory_order_release);
        }
        lock_slowly(true);
    }

    void unlock() noexcept {
        if (slow_)
            unlock_slowly();
        else
            active_.store(false, std::memory_order_release);
    }

    /// For those who come now and then, the agent above all: takes the lock and leaves it leaning as it was.
    class Aside {
    public:
        explicit Aside(BiasedLock& lock) noexcept : lock_(lock) { lock_.lock_slowly(false); }
        ~Aside() { lock_.unlock_slowly(); }
        Aside(const Aside&) = delete;
        Aside& operator=(const Aside&) = delete;

    private:
        BiasedLock& lock_;
    };

private:
    static constexpr int streak_to_own = 64;
    static constexpr int max_intrusions = 8;

    static void* this_thread() noexcept { return __builtin_thread_pointer(); }
    void* nobody() noexcept { return this; }  // an address that no thread has
    void lock_slowly(bool lean) noexcept;
    void reconsider(void* owner) noexcept;
    void unlock_slowly() noexcept;

    std::atomic<void*> owner_{nullptr};  // null at first, then a thread, then perhaps nobody()
    std::atomic<bool> active_{false};    // the owner holds the lock the fast way
    std::atomic<bool> wanted_{false};    // somebody else holds it or waits for the owner
    bool slow_ = false;                  // how it is held; written by the holder
    void* last_ = nullptr;               // while there is no owner: who took it last, and how often in a row
    int streak_ = 0;
    int intrusions_ = 0;  // of other consumers, once there is an owner
    SpinLock slow_lock_;  // among those who do not come the fast way
};

}  // namespace viaduct
