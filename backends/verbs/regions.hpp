// SPDX-License-Identifier: BSD-3-Clause
// Protection domains and memory regions, and a table to look up regions by key.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "backends/verbs/owners.hpp"
#include "core/backend.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {

class Nic;
class ProtectionDomain;

/// Returns the access flags for peers in the hardware's format.
int remote_flags_of(Access access) noexcept;

/// The regions of a network card that this process has registered. Thread-safe: one lock, shared by readers. The data
/// path uses the table only if keys cannot be passed to the hardware unchanged.
class RegionTable {
public:
    struct Entry {
        const ProtectionDomain* domain = nullptr;
        std::uint64_t begin = 0;
        std::uint64_t length = 0;
        std::uint32_t local_key = 0;
        bool writable = false;  ///< the owner may write through the card
        bool sealed = false;    ///< not writable by the owner, although the hardware allows it because remote writes
                                ///< require that
    };

    /// Reports whether every key can be passed to the hardware unchanged for every use.
    bool plain() const noexcept { return odd_.load(std::memory_order_relaxed) == 0; }

    /// Returns the key for a local SGE. If the access is not allowed, returns a key that the hardware refuses.
    std::uint32_t local_key(std::uint32_t key, bool to_write) const noexcept;

    /// Reports whether the hardware would accept the SGE, or the range for a window.
    bool may_use(const Sge& piece, bool to_write, const ProtectionDomain& domain) const noexcept {
        return may_use(piece.key, piece.address, piece.length, to_write, domain);
    }
    bool may_use(std::uint32_t key, const void* address, std::uint64_t length, bool to_write,
                 const ProtectionDomain& domain) const noexcept;

    /// Returns the region with this key in this domain, or nothing.
    std::optional<Entry> find(std::uint32_t key, const ProtectionDomain& domain) const noexcept;

    /// Changes whenever the regions change.
    std::uint32_t version() const noexcept { return version_.load(std::memory_order_acquire); }

    void insert(std::uint32_t key, const Entry& entry);
    void erase(std::uint32_t key) noexcept;

    /// Changes a region of the table, and its key.
    void replace(std::uint32_t old_key, std::uint32_t key, const Entry& entry) noexcept;

private:
    static bool is_odd(std::uint32_t key, const Entry& entry) noexcept {
        return entry.sealed || entry.local_key != key;
    }

    mutable SharedMutex mutex_;
    std::unordered_map<std::uint32_t, Entry> entries_ VIADUCT_GUARDED_BY(mutex_);
    std::atomic<std::uint32_t> odd_{0};  // number of regions whose key or access differs from that in the hardware
    std::atomic<std::uint32_t> version_{0};
};

/// Caches the region of the previous lookup for the data path, for one domain and one version of the table. Not
/// thread-safe.
class LastRegion {
public:
    /// Reports whether the owner may read the SGE and it belongs to a region of this domain.
    bool may_read(const Sge& piece, const RegionTable& regions, const ProtectionDomain& domain) noexcept {
        if (contains(piece)) return true;
        key_ = piece.key;
        region_ = regions.find(piece.key, domain).value_or(RegionTable::Entry{});
        return contains(piece);
    }

    /// As may_read(), without a lookup.
    bool contains(const Sge& piece) const noexcept {
        std::uint64_t end = reinterpret_cast<std::uintptr_t>(piece.address) - region_.begin;
        return piece.key == key_ && !__builtin_add_overflow(end, piece.length, &end) && end <= region_.length;
    }

private:
    std::uint32_t key_ = 0;
    RegionTable::Entry region_;  // of length 0 if there is none
};

/// Thread-safe, because it is immutable.
class ProtectionDomain final : public backend::ProtectionDomain {
public:
    static Result<std::unique_ptr<ProtectionDomain>> create(std::shared_ptr<Nic> nic);

    ibv_pd* get() const noexcept { return domain_.get(); }

    /// The buffer for the reads of flushes. Its contents are not used.
    ibv_sge scratch(std::uint32_t length) const noexcept {
        return {
            .addr = reinterpret_cast<std::uintptr_t>(scratch_.get()), .length = length, .lkey = scratch_region_->lkey};
    }
    static constexpr std::uint32_t scratch_bytes = 8;

private:
    explicit ProtectionDomain(std::shared_ptr<Nic> nic) noexcept : nic_(std::move(nic)) {}

    std::shared_ptr<Nic> nic_;
    DomainOwner domain_;
    struct Unmap {
        void operator()(std::uint64_t* scratch) const noexcept { ::munmap(scratch, scratch_bytes); }
    };
    std::unique_ptr<std::uint64_t, Unmap> scratch_;  // on a page of its own: see create()
    RegionOwner scratch_region_;
};

/// modify() and key() must not be called at the same time.
class MemoryRegion final : public backend::MemoryRegion {
public:
    static Result<std::unique_ptr<MemoryRegion>> create(std::shared_ptr<Nic> nic, const ProtectionDomain& domain,
                                                        void* address, std::uint64_t length, Access access);
    ~MemoryRegion() override;

    std::uint32_t key() const noexcept override { return key_of(*region_); }
    ibv_mr* get() const noexcept { return region_.get(); }

    /// Registers the memory again, which also changes the key. A change in place may leave an invalid region if it
    /// fails, and does not find out whether pages have become writable that were registered without that right.
    Status modify(const backend::ProtectionDomain& domain, Access access) noexcept override;

private:
    MemoryRegion(std::shared_ptr<Nic> nic, RegionOwner region) noexcept
        : nic_(std::move(nic)), region_(std::move(region)) {}

    static std::uint32_t key_of(const ibv_mr& region) noexcept { return region.rkey != 0 ? region.rkey : region.lkey; }
    RegionTable::Entry describe(const ProtectionDomain& domain, Access access, int flags) const noexcept;

    std::shared_ptr<Nic> nic_;
    RegionOwner region_;
};

}  // namespace viaduct::verbs
