// SPDX-License-Identifier: BSD-3-Clause
// Properties of binds that the core does not know: the window, the cookie, and how the completion is reported.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "api/udat/provider/api.hpp"
#include "core/base/spin_lock.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {

struct Bind {
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    DAT_RMR_COOKIE cookie{};
    bool suppressed = false;  ///< report it only on failure
    bool quiet = false;       ///< DAT_COMPLETION_UNSIGNALLED_FLAG: its event wakes no waiter
};

/// The binds whose completions a dispatcher has not yet returned, by the numbers under which they were posted. They may
/// outlive their windows and endpoints.
class Binds {
public:
    /// Throws std::bad_alloc.
    std::uint64_t add(const Bind& bind) {
        const LockGuard lock(lock_);
        open_.emplace(next_, bind);
        return next_++;
    }

    Bind remove(std::uint64_t number) noexcept {
        const LockGuard lock(lock_);
        const auto node = open_.extract(number);
        return node.empty() ? Bind{} : node.mapped();
    }

private:
    SpinLock lock_;
    std::unordered_map<std::uint64_t, Bind> open_ VIADUCT_GUARDED_BY(lock_);
    std::uint64_t next_ VIADUCT_GUARDED_BY(lock_) = 1;
};

}  // namespace viaduct::dat
