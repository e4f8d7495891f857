// SPDX-License-Identifier: BSD-3-Clause
// Mutexes, guards and condition variables whose use clang checks (-Wthread-safety), which it cannot with those of the
// standard library.
#pragma once

#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "viaduct/deadline.hpp"

#if defined(__clang__)
#define VIADUCT_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define VIADUCT_THREAD_SAFETY(attribute)
#endif

// Of a class: its objects are locks, or guards that hold a lock from their construction to their destruction.
#define VIADUCT_LOCK VIADUCT_THREAD_SAFETY(capability("mutex"))
#define VIADUCT_GUARD VIADUCT_THREAD_SAFETY(scoped_lockable)
// Of a member: it is used only with this lock held.
#define VIADUCT_GUARDED_BY(lock) VIADUCT_THREAD_SAFETY(guarded_by(lock))
// Of a function: what it does with locks, or needs.
#define VIADUCT_ACQUIRE(...) VIADUCT_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define VIADUCT_ACQUIRE_SHARED(...) VIADUCT_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define VIADUCT_TRY_ACQUIRE(...) VIADUCT_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define VIADUCT_TRY_ACQUIRE_SHARED(...) VIADUCT_THREAD_SAFETY(try_acquire_shared_capability(__VA_ARGS__))
#define VIADUCT_RELEASE(...) VIADUCT_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define VIADUCT_RELEASE_SHARED(...) VIADUCT_THREAD_SAFETY(release_shared_capability(__VA_ARGS__))
#define VIADUCT_REQUIRES(...) VIADUCT_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define VIADUCT_REQUIRES_SHARED(...) VIADUCT_THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
// Of the function assume_held() of a lock, which does nothing: clang cannot see that the lock is held, as a comment
// explains.
#define VIADUCT_ASSUMES_HELD VIADUCT_THREAD_SAFETY(assert_capability(this))
#define VIADUCT_RETURNS_LOCK(lock) VIADUCT_THREAD_SAFETY(lock_returned(lock))
// Of a function whose body clang cannot follow; a comment says why it is correct.
#define VIADUCT_UNCHECKED VIADUCT_THREAD_SAFETY(no_thread_safety_analysis)

namespace viaduct {

class VIADUCT_LOCK Mutex {
public:
    void lock() VIADUCT_ACQUIRE() { mutex_.lock(); }
    bool try_lock() noexcept VIADUCT_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
    void unlock() noexcept VIADUCT_RELEASE() { mutex_.unlock(); }
    [[gnu::always_inline]] void assume_held() const noexcept VIADUCT_ASSUMES_HELD {}

private:
    friend class ConditionVariable;
    std::mutex mutex_;
};

class VIADUCT_LOCK SharedMutex {
public:
    void lock() VIADUCT_ACQUIRE() { mutex_.lock(); }
    void unlock() noexcept VIADUCT_RELEASE() { mutex_.unlock(); }
    void lock_shared() VIADUCT_ACQUIRE_SHARED() { mutex_.lock_shared(); }
    bool try_lock_shared() noexcept VIADUCT_TRY_ACQUIRE_SHARED(true) { return mutex_.try_lock_shared(); }
    void unlock_shared() noexcept VIADUCT_RELEASE_SHARED() { mutex_.unlock_shared(); }

private:
    std::shared_mutex mutex_;
};

/// Holds a lock of any kind.
template <class Lock>
class [[nodiscard]] VIADUCT_GUARD LockGuard {
public:
    explicit LockGuard(Lock& lock) VIADUCT_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
    /// The lock is held already.
    LockGuard(Lock& lock, std::adopt_lock_t) noexcept VIADUCT_REQUIRES(lock) : lock_(lock) {}
    ~LockGuard() VIADUCT_RELEASE() { lock_.unlock(); }
    LockGuard(const LockGuard&) = delete;
    LockGuard& operator=(const LockGuard&) = delete;

private:
    Lock& lock_;
};

/// The same, and may release the lock in between.
template <class Lock>
class [[nodiscard]] VIADUCT_GUARD UniqueLock {
public:
    explicit UniqueLock(Lock& lock) VIADUCT_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
    ~UniqueLock() VIADUCT_RELEASE() {
        if (held_) lock_.unlock();
    }
    UniqueLock(const UniqueLock&) = delete;
    UniqueLock& operator=(const UniqueLock&) = delete;

    void lock() VIADUCT_ACQUIRE() {
        lock_.lock();
        held_ = true;
    }
    void unlock() VIADUCT_RELEASE() {
        held_ = false;
        lock_.unlock();
    }

private:
    Lock& lock_;
    bool held_ = true;
};

/// Holds a lock that others may hold at the same time.
class [[nodiscard]] VIADUCT_GUARD SharedLock {
public:
    explicit SharedLock(SharedMutex& lock) VIADUCT_ACQUIRE_SHARED(lock) : lock_(lock) { lock_.lock_shared(); }
    SharedLock(SharedMutex& lock, std::adopt_lock_t) noexcept VIADUCT_REQUIRES_SHARED(lock) : lock_(lock) {}
    ~SharedLock() VIADUCT_RELEASE() { lock_.unlock_shared(); }
    SharedLock(const SharedLock&) = delete;
    SharedLock& operator=(const SharedLock&) = delete;

private:
    SharedMutex& lock_;
};

/// Waits until `ready()` returns true, which is called with the mutex held. Threads may be cancelled meanwhile.
class ConditionVariable {
public:
    void wait(Mutex& mutex, auto ready) VIADUCT_REQUIRES(mutex) {
        Adopted adopted(mutex.mutex_);
        condition_.wait(adopted.lock, ready);
    }

    /// Ends at the deadline, too.
    void wait(Mutex& mutex, const Deadline& deadline, auto ready) VIADUCT_REQUIRES(mutex) {
        if (deadline.infinite()) return wait(mutex, ready);
        Adopted adopted(mutex.mutex_);
        condition_.wait_until(adopted.lock, deadline.point(), ready);
    }

    void notify_one() noexcept { condition_.notify_one(); }
    void notify_all() noexcept { condition_.notify_all(); }

private:
    /// Leaves the mutex to the caller's guard, however the wait ends.
    struct Adopted {
        explicit Adopted(std::mutex& mutex) noexcept : lock(mutex, std::adopt_lock) {}
        ~Adopted() { lock.release(); }
        std::unique_lock<std::mutex> lock;
    };

    std::condition_variable condition_;
};

}  // namespace viaduct
