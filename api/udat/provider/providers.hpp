// SPDX-License-Identifier: BSD-3-Clause
// The registry entries that this library implements.
#pragma once

#include <string>

#include "api/udat/provider/table.hpp"

namespace viaduct::dat {

struct NamedProvider {
    const std::string ia_name;
    const bool thread_safe;  ///< copied from the entry, because a registry uses it to find the entry again; the
                             ///< provider is always thread-safe
    std::string device;      ///< of the entry that was loaded first; does not change while entries are loaded
    std::size_t loaded = 0;  ///< number of entries
    ProviderTables tables;
};

/// Returns the provider of the entries with that name and thread safety, or null if none is loaded. Providers are never
/// destroyed because handles point to their tables.
const NamedProvider* find_named_provider(const std::string& ia_name, bool thread_safe);

}  // namespace viaduct::dat
