// SPDX-License-Identifier: BSD-3-Clause
// Finds the region of a context: dat_rmr_bind() takes the region's handle in 2.0, but only its context in 1.2.
#pragma once

#include <map>

#include "core/base/fork.hpp"
#include "releases.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat1 {

/// The regions of all open adapters. Contexts are unique per adapter. Thread-safe.
class Regions {
public:
    /// May throw std::bad_alloc.
    void add(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr);

    /// Returns DAT_HANDLE_NULL if there is no such region.
    DAT_LMR_HANDLE find(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context);

    /// Frees a region by calling `free` and removes it from the table on success. Its context may be reused
    /// immediately.
    DAT_RETURN remove(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, auto&& free) {
        const LockGuard lock(mutex_);
        const DAT_RETURN result = free();
        if (result == DAT_SUCCESS) regions_.erase({ia, context});
        return result;
    }

    /// Removes the remaining regions of an adapter that was closed.
    void forget(DAT_IA_HANDLE ia);

private:
    ProcessMutex mutex_;
    std::map<std::pair<DAT_IA_HANDLE, DAT_LMR_CONTEXT>, DAT_LMR_HANDLE> regions_ VIADUCT_GUARDED_BY(mutex_);
};

/// Never destroyed, because programs may free regions while they exit.
Regions& regions();

}  // namespace viaduct::dat1
