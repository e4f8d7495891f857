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

/// What an open adapter holds on to: the last one that goes has the library unloaded. Empty by default.
class Provider {
public:
    Provider() noexcept = default;
    Provider(std::shared_ptr<Library> library, std::shared_ptr<const Registered> registered) noexcept
        : library_(std::move(library)), registered_(std::move(registered)) {}
    Provider(Provider&&) noexcept = default;
    Provider& operator=(Provider&& other) noexcept {
        std::swap(library_, other.library_);
        std::swap(registered_, other.registered_);
        return *this;
    }
    ~Provider();

    explicit operator bool() const noexcept { return registered_ != nullptr; }
    const DAT_PROVIDER& table() const noexcept { return *registered_->table; }
    const std::string& ia_name() const noexcept { return registered_->offer.ia_name; }

private:
    std::shared_ptr<Library> library_;  // null where nobody had to be loaded
    std::shared_ptr<const Registered> registered_;
};

/// Thread-safe. Providers are called without a lock, but for one while they are loaded and unloaded.
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
