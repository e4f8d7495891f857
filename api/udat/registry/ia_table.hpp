// SPDX-License-Identifier: BSD-3-Clause
// The numbers of open adapters, which programs use instead of the providers' handles.
#pragma once

#include <map>

#include "api/udat/registry/registry.hpp"
#include "core/base/fork.hpp"

namespace viaduct::dat {

/// Thread-safe. Numbers increase and are never reused, so that the number of a closed adapter is detected.
class IaTable {
public:
    /// Never destroyed.
    static IaTable& instance();

    /// Reserves a number for an adapter that is about to be opened. Until it is open, lookups of the number fail.
    DAT_IA_HANDLE reserve(Provider provider);

    void set(DAT_IA_HANDLE number, DAT_IA_HANDLE providers_handle) noexcept;

    /// Removes a number and releases the adapter's provider.
    void erase(DAT_IA_HANDLE number) noexcept;

    /// Returns the provider's handle, or null.
    DAT_IA_HANDLE find(DAT_HANDLE number) const noexcept;

    /// Returns the number for a provider's handle, or null.
    DAT_IA_HANDLE number_of(DAT_IA_HANDLE providers_handle) const noexcept;

    /// Returns the provider's handle of an open adapter of that name, or null.
    DAT_IA_HANDLE find_named(std::string_view ia_name) const noexcept;

private:
    struct OpenIa {
        Provider provider;
        DAT_IA_HANDLE providers_handle = DAT_HANDLE_NULL;
    };

    IaTable() = default;

    /// In a forked child: forgets the adapters of the parent.
    static void forget_all(void* table) noexcept;

    mutable ProcessMutex mutex_{forget_all, this};
    std::map<unsigned long, OpenIa> open_ VIADUCT_GUARDED_BY(mutex_);
    unsigned long last_number_ VIADUCT_GUARDED_BY(mutex_) = 0;
};

}  // namespace viaduct::dat
