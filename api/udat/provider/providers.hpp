// SPDX-License-Identifier: BSD-3-Clause
// The entries of the registry that this library serves.
#pragma once

#include <string>

#include "api/udat/provider/api.hpp"

namespace viaduct::dat {

struct NamedProvider {
    std::string ia_name;
    std::string device;
    bool thread_safe;  ///< as the entry says: all of it is, but a registry finds entries again by what they say
    DAT_PROVIDER table;
};

/// The entry of that name, or null. Entries are never destroyed: handles begin with their tables.
const NamedProvider* find_named_provider(const std::string& ia_name);

}  // namespace viaduct::dat
