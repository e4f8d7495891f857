// SPDX-License-Identifier: BSD-3-Clause
// Properties of binds that the core does not know: the window, the cookie, how the completion is reported, and which
// regions have to stay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "api/udat/provider/lmr.hpp"
#include "core/base/spin_lock.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {

class Ep;

/// The regions that peers may reach through a window, which are in use: that of the last bind that has succeeded, and
/// those of the binds whose completions nobody has taken yet, of which each may fail. Two binds of different endpoints
/// are executed in an unknown order, unless one was known to have succeeded when the other was posted: the regions of
/// both are in use until a later one succeeds. Thread-safe.
class ExposedRegions {
public:
    /// A bind by an endpoint, to a region or to none (null). Returns its number. Throws std::bad_alloc.
    std::uint64_t add(const Ep& ep, Lmr* region) {
        const LockGuard lock(lock_);
        regions_.push_back({.bind = last_ + 1, .ep = &ep, .region = Use<Lmr>(region)});
        return ++last_;
    }

    /// The bind has completed. If it failed, the window is bound as before.
    void settle(std::uint64_t bind, bool succeeded) noexcept {
        const LockGuard lock(lock_);
        const auto settled = std::ranges::find(regions_, bind, &Exposed::bind);
        if (settled == regions_.end()) return;  // the window was freed
        if (!succeeded) {
            regions_.erase(settled);
            return;
        }
        settled->known_at = last_;
        const Ep* const ep = settled->ep;
        std::erase_if(regions_, [&](const Exposed& each) {
            const bool is_earlier = each.known_at < bind || (each.ep == ep && each.bind < bind);
            return each.known_at != unknown && is_earlier;
        });
    }

    /// Nobody will learn whether the bind has succeeded, but it is not executed any more.
    void abandon(std::uint64_t bind) noexcept {
        const LockGuard lock(lock_);
        const auto abandoned = std::ranges::find(regions_, bind, &Exposed::bind);
        if (abandoned != regions_.end()) abandoned->known_at = last_;
    }

    void clear() noexcept {
        const LockGuard lock(lock_);
        regions_.clear();
    }

private:
    static constexpr std::uint64_t unknown = 0;
    struct Exposed {
        std::uint64_t bind;
        const Ep* ep;  // not accessed. If an endpoint has had the same address, its binds were earlier
        Use<Lmr> region;
        std::uint64_t known_at = unknown;  // the last bind that was posted before this one was known to be over
    };

    SpinLock lock_;
    std::vector<Exposed> regions_ VIADUCT_GUARDED_BY(lock_);
    std::uint64_t last_ VIADUCT_GUARDED_BY(lock_) = 0;
};

struct Bind {
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    DAT_RMR_COOKIE cookie{};
    bool suppressed = false;                    ///< report it only on failure
    bool quiet = false;                         ///< DAT_COMPLETION_UNSIGNALLED_FLAG: its event wakes no waiter
    std::shared_ptr<ExposedRegions> regions{};  ///< of the window
    std::uint64_t number = 0;                   ///< in regions
};

/// The binds of a request queue whose completions nobody has taken yet, by the numbers under which they were posted.
/// They may outlive their windows and endpoints.
class Binds {
public:
    ~Binds() {
        for (const auto& [number, bind] : open_) bind.regions->abandon(bind.number);
    }

    /// Throws std::bad_alloc.
    std::uint64_t add(Bind bind) {
        const LockGuard lock(lock_);
        open_.emplace(next_, std::move(bind));
        return next_++;
    }

    /// The bind has completed, or was not posted.
    Bind remove(std::uint64_t number, bool succeeded) noexcept {
        Bind bind = take(number);
        if (bind.regions != nullptr) bind.regions->settle(bind.number, succeeded);
        return bind;
    }
    Bind remove(const Completion& completion) noexcept {
        return remove(completion.context, completion.code == CompletionCode::Success);
    }

    /// Whether there are binds that no event reports if they succeed.
    bool any_suppressed() const noexcept {
        const LockGuard lock(lock_);
        return std::ranges::any_of(open_, [](const auto& each) { return each.second.suppressed; });
    }

private:
    Bind take(std::uint64_t number) noexcept {
        const LockGuard lock(lock_);
        auto node = open_.extract(number);
        return node.empty() ? Bind{} : std::move(node.mapped());
    }

    mutable SpinLock lock_;
    std::unordered_map<std::uint64_t, Bind> open_ VIADUCT_GUARDED_BY(lock_);
    std::uint64_t next_ VIADUCT_GUARDED_BY(lock_) = 1;
};

}  // namespace viaduct::dat
