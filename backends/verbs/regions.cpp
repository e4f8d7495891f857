// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/regions.hpp"

#include <cerrno>
#include <utility>

#include "backends/support/guarded.hpp"
#include "backends/support/memory_map.hpp"
#include "backends/verbs/nic.hpp"
#include "core/base/reserved_memory.hpp"

namespace viaduct::verbs {
namespace {

/// Never the key of a region of this process: InfiniBand devices that use 0 reserve it.
constexpr std::uint32_t refused_key = 0;

/// The hardware allows remote writes and atomics only for regions with local write access.
int flags_of(Access access, const Nic& nic) noexcept {
    int flags = nic.has_windows(IBV_MW_TYPE_1) || nic.has_windows(IBV_MW_TYPE_2) ? IBV_ACCESS_MW_BIND : 0;
    if (access.local_write || access.lets_peers_write()) flags |= IBV_ACCESS_LOCAL_WRITE;
    if (access.remote_read) flags |= nic.flush_flags();  // with which the stock librpma 1.3 flushes
    return flags | remote_flags_of(access);
}

/// Registers memory. If write access is not possible because the pages are read-only, registers it without. Such memory
/// cannot have windows, because the kernel requires write access for them.
Result<RegionOwner> register_pages(ibv_pd* domain, void* address, std::uint64_t length, int& flags) {
    RegionOwner region(ibv_reg_mr(domain, address, length, flags));
    // Only persistent memory can be flushed to persistence.
    if (region == nullptr && errno == EINVAL && (flags & access_flush_persistent) != 0) {
        flags &= ~access_flush_persistent;
        region.reset(ibv_reg_mr(domain, address, length, flags));
    }
    // Files on persistent memory cannot be pinned. Devices with on-demand paging accept them, but without windows.
    if (region == nullptr && errno == EOPNOTSUPP)
        region.reset(ibv_reg_mr(domain, address, length, (flags & ~IBV_ACCESS_MW_BIND) | IBV_ACCESS_ON_DEMAND));
    if (region != nullptr) return region;
    const int error = errno;
    // Without write access, the kernel also registers inaccessible pages.
    const Status mapped = support::inspect_memory(address, length).status();
    if (mapped.code() == Code::InvalidParameter) return Status(mapped.code(), mapped.where(), error);
    if (error != EFAULT) return Status::from_errno(error, "ibv_reg_mr");
    flags &= IBV_ACCESS_REMOTE_READ;
    region.reset(ibv_reg_mr(domain, address, length, flags));
    if (region == nullptr) return Status::from_errno(errno, "ibv_reg_mr");
    return region;
}

}  // namespace

int remote_flags_of(Access access) noexcept {
    return (access.remote_write ? IBV_ACCESS_REMOTE_WRITE : 0) | (access.remote_read ? IBV_ACCESS_REMOTE_READ : 0) |
           (access.remote_atomic ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

std::uint32_t RegionTable::local_key(std::uint32_t key, bool to_write) const noexcept {
    const SharedLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return key;  // the hardware will refuse it
    const Entry& entry = found->second;
    return to_write && entry.sealed ? refused_key : entry.local_key;
}

std::optional<RegionTable::Entry> RegionTable::find(std::uint32_t key, const ProtectionDomain& domain) const noexcept {
    const SharedLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.domain != &domain) return std::nullopt;
    return found->second;
}

bool RegionTable::may_use(std::uint32_t key, const void* address, std::uint64_t length, bool to_write,
                          const ProtectionDomain& domain) const noexcept {
    const auto entry = find(key, domain);
    if (!entry) return false;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    return (!to_write || entry->writable) && begin >= entry->begin && begin - entry->begin <= entry->length &&
           length <= entry->length - (begin - entry->begin);
}

void RegionTable::insert(std::uint32_t key, const Entry& entry) {
    const LockGuard lock(mutex_);
    entries_[key] = entry;
    if (is_odd(key, entry)) odd_.fetch_add(1);
    version_.fetch_add(1);  // last, so that the new version implies the change
}

/// The table keeps its size, so there is room.
void RegionTable::replace(std::uint32_t old_key, std::uint32_t key, const Entry& entry) noexcept {
    const LockGuard lock(mutex_);
    auto node = entries_.extract(old_key);
    if (node.empty()) return;
    if (is_odd(key, entry)) odd_.fetch_add(1);
    if (is_odd(old_key, node.mapped())) odd_.fetch_sub(1);
    node.key() = key;
    node.mapped() = entry;
    entries_.insert(std::move(node));
    version_.fetch_add(1);
}

void RegionTable::erase(std::uint32_t key) noexcept {
    const LockGuard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    if (is_odd(key, found->second)) odd_.fetch_sub(1);
    entries_.erase(found);
    version_.fetch_add(1);
}

Result<std::unique_ptr<ProtectionDomain>> ProtectionDomain::create(std::shared_ptr<Nic> nic) {
    std::unique_ptr<ProtectionDomain> domain(new ProtectionDomain(std::move(nic)));
    domain->domain_.reset(ibv_alloc_pd(domain->nic_->context()));
    if (domain->domain_ == nullptr) return Status::from_errno(errno, "ibv_alloc_pd");
    // After ibv_fork_init(), a child may not inherit registered pages; it needs those of the heap.
    domain->scratch_.reset(static_cast<std::uint64_t*>(reserve_memory(scratch_bytes)));
    domain->scratch_region_.reset(
        ibv_reg_mr(domain->domain_.get(), domain->scratch_.get(), scratch_bytes, IBV_ACCESS_LOCAL_WRITE));
    if (domain->scratch_region_ == nullptr) return Status::from_errno(errno, "ibv_reg_mr");
    return domain;
}

Result<std::unique_ptr<MemoryRegion>> MemoryRegion::create(std::shared_ptr<Nic> nic, const ProtectionDomain& domain,
                                                           void* address, std::uint64_t length, Access access) {
    int flags = flags_of(access, *nic);
    auto region = register_pages(domain.get(), address, length, flags);
    if (!region.ok()) return region.status();
    std::unique_ptr<MemoryRegion> made(new MemoryRegion(std::move(nic), std::move(*region)));
    made->nic_->regions().insert(made->key(), made->describe(domain, access, flags));
    return made;
}

MemoryRegion::~MemoryRegion() {
    nic_->windows().remove_released(*region_);
    nic_->regions().erase(key());
}

RegionTable::Entry MemoryRegion::describe(const ProtectionDomain& domain, Access access, int flags) const noexcept {
    const bool hardware_writes = (flags & IBV_ACCESS_LOCAL_WRITE) != 0;
    return {.domain = &domain,
            .begin = reinterpret_cast<std::uintptr_t>(region_->addr),
            .length = region_->length,
            .local_key = region_->lkey,
            .writable = hardware_writes && access.local_write,
            .sealed = hardware_writes && !access.local_write};
}

Status MemoryRegion::modify(const backend::ProtectionDomain& domain, Access access) noexcept {
    return support::guarded([&]() -> Status {
        const auto& wanted = static_cast<const ProtectionDomain&>(domain);
        const std::uint32_t old_key = key();
        int flags = flags_of(access, *nic_);
        auto fresh = register_pages(wanted.get(), region_->addr, region_->length, flags);
        if (!fresh.ok()) return fresh.status();
        // Until the table has forgotten its key, which another region can have afterwards.
        const RegionOwner old = std::exchange(region_, std::move(*fresh));
        nic_->regions().replace(old_key, key(), describe(wanted, access, flags));
        return {};
    });
}

}  // namespace viaduct::verbs
