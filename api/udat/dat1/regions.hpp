// SPDX-License-Identifier: BSD-3-Clause
// Which region a context names: dat_rmr_bind() of 2.0 wants the region's handle, that of 1.2 has its context only.
#pragma once

#include <map>
#include <mutex>

#include "releases.hpp"

namespace viaduct::dat1 {

/// The regions of all open adapters, each of which has contexts of its own. Thread-safe.
class Regions {
public:
    /// May throw std::bad_alloc.
    void add(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr);

    /// DAT_HANDLE_NULL if there is none.
    DAT_LMR_HANDLE find(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context);

    /// Frees a region by calling `free`, and forgets it if that succeeds. Its context may at once name another one.
    template <class Free>
    DAT_RETURN remove(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, Free&& free) {
        const std::lock_guard lock(mutex_);
        const DAT_RETURN result = free();
        if (result == DAT_SUCCESS) regions_.erase({ia, context});
        return result;
    }

    /// What an adapter that is closed has left.
    void forget(DAT_IA_HANDLE ia);

private:
    std::mutex mutex_;
    std::map<std::pair<DAT_IA_HANDLE, DAT_LMR_CONTEXT>, DAT_LMR_HANDLE> regions_;
};

/// Never destroyed: programs free regions while they exit.
Regions& regions();

}  // namespace viaduct::dat1
