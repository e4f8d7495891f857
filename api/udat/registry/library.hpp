// SPDX-License-Identifier: BSD-3-Clause
// The library of a provider, loaded for an entry of the registry.
#pragma once

#include <memory>
#include <mutex>

#include "api/udat/registry/conf.hpp"

namespace viaduct::dat {

class Library {
public:
    /// Held while libraries are loaded and unloaded. One that is may open an adapter of another.
    static inline std::recursive_mutex loading;

    /// Loads the library and tells it of the entry (dat_provider_init). Null where that fails; the log says why.
    static std::shared_ptr<Library> load(const Entry& entry);

    /// Tells it that it goes (dat_provider_fini), and unloads it.
    ~Library();

    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    const Entry& entry() const noexcept { return entry_; }

private:
    Library(const Entry& entry, void* library);

    const Entry entry_;
    const DAT_PROVIDER_INFO info_;  // providers may keep its address
    void* const library_;
};

}  // namespace viaduct::dat
