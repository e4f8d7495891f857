// SPDX-License-Identifier: BSD-3-Clause
// The registry of providers: available, loaded and registered ones.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "api/udat/registry/library.hpp"

namespace viaduct::dat {

/// A function table that a provider has registered. Its use count tells whether an adapter is open.
struct Registered {
    Offer offer;
    const DAT_PROVIDER* table;
};

/// What an open adapter keeps alive. The library is unloaded when its last Provider is destroyed. Empty by default.
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
    std::shared_ptr<Library> library_;  // null if no library had to be loaded
    std::shared_ptr<const Registered> registered_;
};

/// Thread-safe. Providers are called without a lock, except when they are loaded and unloaded.
class Registry {
public:
    /// Created on first use and never destroyed, because adapters may be open while the process exits.
    static Registry& instance();

    DAT_RETURN add(const DAT_PROVIDER* table, const DAT_PROVIDER_INFO& info);
    DAT_RETURN remove(const DAT_PROVIDER_INFO& info);

    /// Returns all available providers.
    std::vector<Offer> offers() const;

    /// Finds the provider that best matches the requirements and loads it if necessary. DAT_PROVIDER_NOT_FOUND, with
    /// the mismatch: there is no such provider.
    DAT_RETURN open(const Offer& wanted, Provider& provider);

private:
    Registry();

    std::vector<Entry> entries_for(const std::string& ia_name) const;
    std::shared_ptr<Library> load(const Entry& entry);
    std::shared_ptr<const Registered> find(const Offer& wanted) const;
    const char* describe(DAT_RETURN_SUBTYPE lacking, const Offer& wanted, bool known) const;
    DAT_RETURN_SUBTYPE lacking_everywhere(const std::vector<Entry>& entries, const Offer& wanted) const;

    const std::vector<Entry> entries_;  // from dat.conf

    std::vector<std::weak_ptr<Library>> loaded_;

    mutable std::mutex mutex_;  // guards the members below
    std::vector<std::shared_ptr<const Registered>> registered_;
};

}  // namespace viaduct::dat
