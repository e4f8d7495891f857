// SPDX-License-Identifier: BSD-3-Clause
// The registry of providers: which there are to load, which are loaded, and which have registered.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "api/udat/registry/library.hpp"

namespace viaduct::dat {

/// A table of functions that a provider has registered. Its use count says whether an adapter is open.
struct Registered {
    Offer offer;
    const DAT_PROVIDER* table;
};

/// What an open adapter holds on to.
struct Provider {
    std::shared_ptr<const Registered> registered;
    std::shared_ptr<Library> library;  ///< null where nobody had to be loaded
};

/// Thread-safe. Providers are called without a lock that the calls below take, except by one another.
class Registry {
public:
    /// Made at the first use, and never destroyed: adapters may be open while the process exits.
    static Registry& instance();

    DAT_RETURN add(const DAT_PROVIDER* table, const DAT_PROVIDER_INFO& info);
    DAT_RETURN remove(const DAT_PROVIDER_INFO& info);

    /// All there are to load.
    std::vector<Offer> offers() const;

    /// Finds the provider that serves best what is wanted, and loads it if it must. DAT_PROVIDER_NOT_FOUND, with what
    /// is lacking: none does.
    DAT_RETURN open(const Offer& wanted, Provider& provider);

    /// Unloads what nobody uses any more.
    void close(Provider provider);

private:
    Registry();

    std::vector<Entry> entries_for(const std::string& ia_name) const;
    std::shared_ptr<Library> load(const Entry& entry);
    std::shared_ptr<const Registered> find(const Offer& wanted) const;
    DAT_RETURN_SUBTYPE lacking_everywhere(const std::vector<Entry>& entries, const Offer& wanted) const;

    const std::vector<Entry> entries_;  // of dat.conf

    std::recursive_mutex
        loading_;  // held while libraries are loaded and unloaded: one that is may open another adapter
    std::vector<std::weak_ptr<Library>> loaded_;

    mutable std::mutex mutex_;  // guards what follows
    std::vector<std::shared_ptr<const Registered>> registered_;
};

}  // namespace viaduct::dat
