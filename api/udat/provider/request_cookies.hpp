// SPDX-License-Identifier: BSD-3-Clause
// Cookies of requests, and whether the completion wakes waiters, which the core does not know.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "core/base/spin_lock.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {

struct RequestCookie {
    std::uint64_t value = 0;
    bool quiet = false;       ///< DAT_COMPLETION_UNSIGNALLED_FLAG
    bool suppressed = false;  ///< DAT_COMPLETION_SUPPRESS_FLAG
};

/// The requests of one queue of an endpoint that may post unsignalled requests. The core gets a number instead of each
/// cookie. Completions arrive in the order of the posts; suppressed ones are skipped.
class RequestCookies {
public:
    /// The following requests belong to another connection, on which at most `depth` are outstanding. Those of the
    /// previous one that may have been flushed are kept until a later request completes.
    void begin(std::uint32_t depth) noexcept {
        const LockGuard lock(lock_);
        forget_successes();
        for (Open& each : open_) each.cookie.suppressed = false;
        most_ = std::uint64_t{depth} + 1;
    }

    /// Replaces the cookie `context` by a number and calls post(), which posts the request. One at a time, so that the
    /// numbers have the order of the posts. Throws std::bad_alloc.
    Status post(std::uint64_t& context, RequestCookie cookie, auto post) {
        const LockGuard ordered(posting_);
        cookie.value = context;
        context = add(cookie);
        const Status status = post();
        if (!status.ok()) withdraw();
        return status;
    }

    /// The cookie of an open request.
    [[gnu::noinline]] std::uint64_t value_of(std::uint64_t number) const noexcept {
        const LockGuard lock(lock_);
        const auto found = std::ranges::lower_bound(open_, number, {}, &Open::number);
        return found != open_.end() && found->number == number ? found->cookie.value : 0;
    }

    [[gnu::noinline]] RequestCookie take(std::uint64_t number) noexcept {
        const LockGuard lock(lock_);
        RequestCookie cookie;
        for (; !open_.empty() && open_.front().number <= number; open_.pop_front())
            if (open_.front().number == number) cookie = open_.front().cookie;
        return cookie;
    }

private:
    struct Open {
        std::uint64_t number;
        RequestCookie cookie;
    };

    [[gnu::noinline]] std::uint64_t add(const RequestCookie& cookie) {
        const LockGuard lock(lock_);
        if (open_.size() > 4 * most_) forget_successes();
        open_.push_back({next_, cookie});
        return next_++;
    }

    /// Suppressed requests do not complete if they succeed, which all but the last `most_` requests of this connection
    /// have.
    void forget_successes() noexcept VIADUCT_REQUIRES(lock_) {
        std::erase_if(open_, [this](const Open& each) VIADUCT_REQUIRES(lock_) {
            return each.cookie.suppressed && next_ - each.number > most_;
        });
    }

    /// Removes the request that was added last.
    [[gnu::noinline]] void withdraw() noexcept {
        const LockGuard lock(lock_);
        open_.pop_back();
        --next_;
    }

    Mutex posting_;
    mutable SpinLock lock_;
    std::deque<Open> open_ VIADUCT_GUARDED_BY(lock_);
    std::uint64_t next_ VIADUCT_GUARDED_BY(lock_) = 0;
    std::uint64_t most_ VIADUCT_GUARDED_BY(lock_) = 1;  // requests that may complete; one may just have been polled
};

}  // namespace viaduct::dat
