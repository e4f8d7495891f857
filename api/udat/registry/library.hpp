// SPDX-License-Identifier: BSD-3-Clause
// The library of a provider, loaded for a registry entry.
#pragma once

#include <memory>

#include "api/udat/registry/conf.hpp"

namespace viaduct::dat {

class Library {
public:
    /// Loads the library and calls its dat_provider_init() with the entry. On failure returns null and logs the reason.
    static std::unique_ptr<Library> load(const Entry& entry);

    /// Calls dat_provider_fini() and unloads the library.
    ~Library();

    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

private:
    Library(const Entry& entry, void* library);

    const Entry entry_;
    const DAT_PROVIDER_INFO info_;  // providers may keep its address
    void* const library_;
};

}  // namespace viaduct::dat
