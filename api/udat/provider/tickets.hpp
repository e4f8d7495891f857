// SPDX-License-Identifier: BSD-3-Clause
// What the core does not know of a request: that its completion is to wake nobody.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "core/base/spin_lock.hpp"

namespace viaduct::dat {

struct Ticket {
    std::uint64_t cookie = 0;
    bool quiet = false;  ///< DAT_COMPLETION_UNSIGNALLED_FLAG
};

/// The requests of one queue of an endpoint that may have such: they go out with numbers in the place of their cookies.
/// Completions come in the order of the posts; requests whose completion was suppressed are passed over.
class Tickets {
public:
    /// Throws std::bad_alloc.
    [[gnu::noinline]] std::uint64_t issue(const Ticket& ticket) {
        const std::lock_guard lock(lock_);
        open_.push_back(ticket);
        return first_ + open_.size() - 1;
    }

    /// The request that was issued last has not been posted.
    [[gnu::noinline]] void withdraw() noexcept {
        const std::lock_guard lock(lock_);
        open_.pop_back();
    }

    [[gnu::noinline]] Ticket redeem(std::uint64_t number) noexcept {
        const std::lock_guard lock(lock_);
        Ticket ticket;
        for (; first_ <= number && !open_.empty(); ++first_) {
            ticket = open_.front();
            open_.pop_front();
        }
        return ticket;
    }

private:
    SpinLock lock_;  // guards what follows
    std::deque<Ticket> open_;
    std::uint64_t first_ = 0;  // number of the oldest
};

}  // namespace viaduct::dat
