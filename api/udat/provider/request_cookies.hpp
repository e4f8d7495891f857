// SPDX-License-Identifier: BSD-3-Clause
// Cookies of requests, and whether the completion wakes waiters, which the core does not know.
#pragma once

#include <cstdint>
#include <deque>

#include "core/base/spin_lock.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {

struct RequestCookie {
    std::uint64_t value = 0;
    bool quiet = false;  ///< DAT_COMPLETION_UNSIGNALLED_FLAG
};

/// The requests of one queue of an endpoint that may post unsignalled requests. The core gets a number instead of each
/// cookie. Completions arrive in the order of the posts; suppressed ones are skipped.
class RequestCookies {
public:
    /// Replaces the cookie `context` by a number and calls post(), which posts the request. One at a time, so that the
    /// numbers have the order of the posts. Throws std::bad_alloc.
    template <class Post>
    Status post(std::uint64_t& context, bool quiet, Post post) {
        const LockGuard ordered(posting_);
        context = add({.value = context, .quiet = quiet});
        const Status status = post();
        if (!status.ok()) withdraw();
        return status;
    }

    /// The cookie of an open request.
    [[gnu::noinline]] std::uint64_t value_of(std::uint64_t number) const noexcept {
        const LockGuard lock(lock_);
        return number - first_ < open_.size() ? open_[number - first_].value : 0;
    }

    [[gnu::noinline]] RequestCookie take(std::uint64_t number) noexcept {
        const LockGuard lock(lock_);
        RequestCookie cookie;
        for (; first_ <= number && !open_.empty(); ++first_) {
            cookie = open_.front();
            open_.pop_front();
        }
        return cookie;
    }

private:
    [[gnu::noinline]] std::uint64_t add(const RequestCookie& cookie) {
        const LockGuard lock(lock_);
        open_.push_back(cookie);
        return first_ + open_.size() - 1;
    }

    /// Removes the request that was added last.
    [[gnu::noinline]] void withdraw() noexcept {
        const LockGuard lock(lock_);
        open_.pop_back();
    }

    Mutex posting_;
    mutable SpinLock lock_;
    std::deque<RequestCookie> open_ VIADUCT_GUARDED_BY(lock_);
    std::uint64_t first_ VIADUCT_GUARDED_BY(lock_) = 0;  // number of the oldest request
};

}  // namespace viaduct::dat
