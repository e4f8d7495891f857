// SPDX-License-Identifier: BSD-3-Clause
// The numbers that stand for open adapters. Programs see them instead of the providers' handles.
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>

#include "api/udat/registry/registry.hpp"

namespace viaduct::dat {

/// Thread-safe. Numbers count up and are not used again, so that one of a closed adapter is found out.
class IaTable {
public:
    /// Never destroyed.
    static IaTable& instance();

    /// A number for an adapter that is about to open; until it has, nobody finds anything under it.
    DAT_IA_HANDLE reserve(Provider provider);

    void set(DAT_IA_HANDLE number, DAT_IA_HANDLE providers_handle) noexcept;

    /// Ends a number, and what the adapter held on to.
    void erase(DAT_IA_HANDLE number) noexcept;

    /// The provider's handle, or null.
    DAT_IA_HANDLE find(DAT_HANDLE number) const noexcept;

    /// The number of a provider's handle, or null.
    DAT_IA_HANDLE number_of(DAT_IA_HANDLE providers_handle) const noexcept;

    /// A provider's handle of an adapter that is open under that name, or null.
    DAT_IA_HANDLE find_named(std::string_view ia_name) const noexcept;

private:
    struct OpenIa {
        Provider provider;
        DAT_IA_HANDLE providers_handle = DAT_HANDLE_NULL;
    };

    IaTable() = default;

    mutable std::shared_mutex mutex_;  // guards what follows
    std::map<unsigned long, OpenIa> open_;
    unsigned long last_number_ = 0;
};

}  // namespace viaduct::dat
