// SPDX-License-Identifier: BSD-3-Clause
// The registry entries that this library implements.
#pragma once

#include <string>

#include "api/udat/provider/table.hpp"

namespace viaduct::dat {

struct NamedProvider {
    std::string ia_name;
    std::string device;
    bool thread_safe;  ///< copied from the entry, because a registry uses it to find the entry again; the provider is
                       ///< always thread-safe
    ProviderTables tables;
};

/// Returns the entry of that name, or null. Entries are never destroyed because handles point to their tables.
const NamedProvider* find_named_provider(const std::string& ia_name);

}  // namespace viaduct::dat
