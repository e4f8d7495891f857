// SPDX-License-Identifier: BSD-3-Clause
// The lock of objects that one thread polls: completion queues and event dispatchers.
#pragma once

#include <atomic>

#include "core/base/spin_lock.hpp"
#include "viaduct/detail/export.hpp"

namespace viaduct {

/// A spin lock that is biased towards one thread, its owner. The owner takes it without an atomic read-modify-write,
/// which would wait until the message just written is visible to the other core. Other threads call membarrier(2)
/// instead (docs/adr/0005-biased-locks.md). If several consumers share a queue, the bias ends for good.
class VIADUCT_EXPORT VIADUCT_LOCK BiasedLock {
public:
    void lock() noexcept VIADUCT_ACQUIRE() {
        if (!try_lock_as_owner()) lock_slowly(true);
    }

    void unlock() noexcept VIADUCT_RELEASE() {
        if (slow_) [[unlikely]]
            unlock_slowly();
        else
            active_.store(false, std::memory_order_release);
    }

    /// Takes the lock if the calling thread is its owner and no other thread wants it. Release it with
    /// unlock_as_owner(), which is shorter than unlock().
    [[gnu::always_inline]] bool try_lock_as_owner() noexcept VIADUCT_TRY_ACQUIRE(true) {
        if (owner_.load(std::memory_order_relaxed) != this_thread()) return false;
        active_.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (!wanted_.load(std::memory_order_acquire)) [[likely]]
            return true;
        active_.store(false, std::memory_order_release);
        return false;
    }
    [[gnu::always_inline]] void unlock_as_owner() noexcept VIADUCT_RELEASE() {
        active_.store(false, std::memory_order_release);
    }

    // Clang does not follow virtual functions and callbacks. They do nothing.
    [[gnu::always_inline]] void assume_held() const noexcept VIADUCT_ASSUMES_HELD {}
    /// By the function that is called next.
    [[gnu::always_inline]] void assume_released() const noexcept VIADUCT_RELEASE() {}

    /// Takes the lock through the slow path and does not change the bias. For occasional users, mainly the agent.
    class VIADUCT_GUARD SlowPathGuard {
    public:
        explicit SlowPathGuard(BiasedLock& lock) noexcept VIADUCT_ACQUIRE(lock) : lock_(lock) {
            lock_.lock_slowly(false);
        }
        ~SlowPathGuard() VIADUCT_RELEASE() { lock_.unlock_slowly(); }
        SlowPathGuard(const SlowPathGuard&) = delete;
        SlowPathGuard& operator=(const SlowPathGuard&) = delete;

    private:
        BiasedLock& lock_;
    };

private:
    static constexpr int streak_to_own = 64;
    static constexpr int max_intrusions = 8;

    static void* this_thread() noexcept { return __builtin_thread_pointer(); }
    void* nobody() noexcept { return this; }  // an address that is no thread's
    void lock_slowly(bool may_change_bias) noexcept VIADUCT_ACQUIRE();
    void reconsider(void* owner) noexcept;
    void unlock_slowly() noexcept VIADUCT_RELEASE();

    std::atomic<void*> owner_{nullptr};  // null at first, then a thread, finally nobody() if the bias ended
    std::atomic<bool> active_{false};    // the owner holds the lock through the fast path
    std::atomic<bool> wanted_{false};    // another thread holds it or waits for the owner, or the bias has ended
    bool slow_ = false;                  // held through the slow path; written by the holder
    void* last_ = nullptr;               // while there is no owner: the thread that took it last
    int streak_ = 0;                     // how often that thread took it in a row
    int intrusions_ = 0;                 // how often other consumers took it from the owner
    SpinLock slow_lock_;                 // held throughout the slow path
};

}  // namespace viaduct
