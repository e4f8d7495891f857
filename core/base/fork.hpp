// SPDX-License-Identifier: BSD-3-Clause
// What the library does when the program forks. A child can open devices of its own at once. What it inherits belongs
// to its parent: handles are not valid in the child, nothing that it destroys there has an effect on the parent, and it
// closes the sockets of its parent, so that peers notice the end of that.
#pragma once

#include <atomic>
#include <utility>

#include "viaduct/detail/export.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/detail/owned.hpp"

namespace viaduct {

/// The reason of a call with a handle of the parent.
inline constexpr const char* inherited_handle = "the handle was made by the parent process, before fork(2)";

/// Guards state that the whole process shares. fork(2) waits until it is free; it is free in the child, too. If it is
/// destroyed before the process ends, retire() must be called first.
class VIADUCT_EXPORT VIADUCT_LOCK ProcessMutex {
public:
    /// `renew` is called in each child, to drop from `state` what belongs to the parent. No other thread exists then.
    constexpr explicit ProcessMutex(void (*renew)(void* state) noexcept = nullptr, void* state = nullptr) noexcept
        : renew_(renew), state_(state) {}

    void lock() VIADUCT_ACQUIRE() {
        if (!enlisted_.load(std::memory_order_acquire)) [[unlikely]]
            enlist();
        mutex_.lock();
    }
    bool try_lock() noexcept VIADUCT_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
    void unlock() noexcept VIADUCT_RELEASE() { mutex_.unlock(); }
    void retire() noexcept;
    /// For `renew`: fork(2) holds the lock.
    [[gnu::always_inline]] void assume_held() const noexcept VIADUCT_ASSUMES_HELD {}

private:
    friend struct Forking;
    void enlist() noexcept;

    std::mutex mutex_;
    void (*const renew_)(void*) noexcept;
    void* const state_;
    std::atomic<bool> enlisted_{false};
    ProcessMutex* next_ = nullptr;
};

/// Whether a child is being renewed, by its only thread.
VIADUCT_EXPORT bool is_renewing_child() noexcept;

/// As long as it exists, fork(2) waits, in all threads. Whoever holds one waits for no other lock of this library.
class VIADUCT_EXPORT ForkHold {
public:
    ForkHold() noexcept;
    ~ForkHold();
    ForkHold(const ForkHold&) = delete;
    ForkHold& operator=(const ForkHold&) = delete;
};

/// The same, but any number of threads can have one at a time. For calls of other libraries that take locks of the
/// whole process, which a child would inherit locked. A thread has at most one.
class VIADUCT_EXPORT SharedForkHold {
public:
    SharedForkHold() noexcept;
    ~SharedForkHold();
    SharedForkHold(const SharedForkHold&) = delete;
    SharedForkHold& operator=(const SharedForkHold&) = delete;
};

/// As long as it exists, forked children close a descriptor. Does not own the descriptor, and must be destroyed before
/// that is closed.
class VIADUCT_EXPORT ClosedInChildren {
public:
    ClosedInChildren() noexcept = default;
    /// From the same hold of forks in which the descriptor was opened. Empty: out of memory, or the descriptor is
    /// negative.
    ClosedInChildren(const ForkHold& hold, int fd) noexcept;
    ClosedInChildren(ClosedInChildren&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    ClosedInChildren& operator=(ClosedInChildren&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~ClosedInChildren();

    explicit operator bool() const noexcept { return fd_ >= 0; }

    /// In the same hold the descriptor is to be closed.
    void reset(const ForkHold& hold) noexcept;

private:
    int fd_ = -1;
};

}  // namespace viaduct
