// SPDX-License-Identifier: BSD-3-Clause
// The registry of providers: available, loaded and registered ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "api/udat/registry/conf.hpp"
#include "core/base/fork.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {

/// The library of a provider, loaded for a registry entry.
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

/// The library of an entry. Other threads wait while one loads or unloads it. That one holds no lock, because the
/// library may open adapters of others, which it must not do in a circle.
struct LoadedLibrary {
    const Entry entry;
    std::unique_ptr<Library> library;
    std::size_t users = 0;    ///< Providers
    std::thread::id changer;  ///< the thread that loads or unloads it; none by default
};

/// A function table that a provider has registered. Its use count tells whether an adapter is open.
struct Registered {
    Offer offer;
    const DAT_PROVIDER* table;
    const LoadedLibrary* library;  ///< whose dat_provider_init() has registered it; null: the program has
};

/// What an open adapter keeps alive. The library is unloaded when its last Provider is destroyed. Empty by default.
class Provider {
public:
    Provider() noexcept = default;
    Provider(LoadedLibrary* library, std::shared_ptr<const Registered> registered) noexcept
        : library_(library), registered_(std::move(registered)) {}
    Provider(Provider&& other) noexcept
        : library_(std::exchange(other.library_, nullptr)), registered_(std::move(other.registered_)) {}
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
    friend class Registry;
    LoadedLibrary* library_ = nullptr;  // null if no library had to be loaded
    std::shared_ptr<const Registered> registered_;
};

/// Thread-safe. Providers are called without a lock.
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

    /// Unloads the library if it has no other user.
    void release(LoadedLibrary& library) noexcept;

private:
    Registry();

    std::vector<Entry> entries_for(const std::string& ia_name) const;
    LoadedLibrary* load(const Entry& entry);
    void changed(LoadedLibrary& library) noexcept VIADUCT_REQUIRES(mutex_);
    std::shared_ptr<const Registered> find(const Offer& wanted, const LoadedLibrary* library) const;
    const char* describe(DAT_RETURN_SUBTYPE lacking, const Offer& wanted, bool known) const;
    DAT_RETURN_SUBTYPE lacking_everywhere(const std::vector<Entry>& entries, const Offer& wanted) const;

    static void renew(void* registry) noexcept;

    const std::vector<Entry> entries_;  // from dat.conf

    mutable ProcessMutex mutex_{renew, this};
    /// Changes of libraries_. A thread that waits for one leaves nothing here that a forked child would inherit.
    std::atomic<std::uint32_t> changes_{0};
    std::list<LoadedLibrary> libraries_ VIADUCT_GUARDED_BY(mutex_);  // guards their members, too
    std::vector<std::shared_ptr<const Registered>> registered_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::dat
