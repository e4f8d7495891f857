// SPDX-License-Identifier: BSD-3-Clause
// What the core does not know of a bind: which window it is of, its cookie, and who is to hear of it.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "api/udat/provider/api.hpp"
#include "core/base/spin_lock.hpp"

namespace viaduct::dat {

struct Bind {
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    DAT_RMR_COOKIE cookie{};
    bool suppressed = false;  ///< tell of it only where it fails
    bool quiet = false;       ///< DAT_COMPLETION_UNSIGNALLED_FLAG: it is to wake nobody
};

/// The binds whose completions a dispatcher is still to hand out, by the numbers under which they were posted. They may
/// outlive their windows and endpoints.
class Binds {
public:
    /// Throws std::bad_alloc.
    std::uint64_t add(const Bind& bind) {
        const std::lock_guard lock(lock_);
        open_.emplace(next_, bind);
        return next_++;
    }

    Bind remove(std::uint64_t number) noexcept {
        const std::lock_guard lock(lock_);
        const auto node = open_.extract(number);
        return node.empty() ? Bind{} : node.mapped();
    }

private:
    SpinLock lock_;  // guards what follows
    std::unordered_map<std::uint64_t, Bind> open_;
    std::uint64_t next_ = 1;
};

}  // namespace viaduct::dat
