// SPDX-License-Identifier: BSD-3-Clause
// NICs: an open device and everything created on it (guide, section 3.1).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "api/vipl/connection.hpp"
#include "api/vipl/cq.hpp"
#include "api/vipl/error_callback.hpp"
#include "api/vipl/handles.hpp"
#include "api/vipl/name_service.hpp"
#include "api/vipl/region_table.hpp"
#include "api/vipl/revoked_memory.hpp"
#include "api/vipl/vi.hpp"
#include "core/provider.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/device.hpp"

namespace viaduct::vipl {

/// The objects of one kind that a NIC owns. Thread-safe. Objects are destroyed outside the lock because their
/// destructors may wait for threads that need it.
template <class Object>
class Children {
public:
    using Objects = std::unordered_map<Object*, std::unique_ptr<Object>>;

    Object& add(std::unique_ptr<Object> object) {
        const LockGuard lock(mutex_);
        Object* key = object.get();
        return *objects_.emplace(key, std::move(object)).first->second;
    }

    /// Removes the object. Returns null if another thread has already removed it.
    std::unique_ptr<Object> remove(Object& object) noexcept {
        const LockGuard lock(mutex_);
        const auto found = objects_.find(&object);
        if (found == objects_.end()) return nullptr;
        auto owned = std::move(found->second);
        objects_.erase(found);
        return owned;
    }

    /// Removes all objects.
    Objects take() noexcept {
        const LockGuard lock(mutex_);
        return std::exchange(objects_, {});
    }

    std::size_t size() const noexcept {
        const LockGuard lock(mutex_);
        return objects_.size();
    }

    /// Calls `visit` for each object. No object can be removed meanwhile.
    void for_each(auto visit) const {
        const LockGuard lock(mutex_);
        for (const auto& child : objects_) visit(*child.second);
    }

private:
    mutable Mutex mutex_;
    Objects objects_ VIADUCT_GUARDED_BY(mutex_);
};

/// A protection tag, which defines the memory that a VI may use (guide, section 3.4): a protection domain of a NIC.
class Ptag final : public WithHandle<Ptag, 4> {
public:
    Ptag(Nic& nic, std::shared_ptr<ProtectionDomain> domain) : nic_(nic), domain_(std::move(domain)) {}

    Nic& nic() const noexcept { return nic_; }
    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }

private:
    Nic& nic_;
    const std::shared_ptr<ProtectionDomain> domain_;
};

class Nic final : public WithHandle<Nic, 1>, private DeviceObserver {
public:
    static constexpr const char* invalid_handle = no_nic;

    static Result<std::unique_ptr<Nic>> open(const DeviceId& id);

    /// Closes and frees everything created on the NIC, in the required order.
    ~Nic();

    const std::shared_ptr<Device>& device() const noexcept { return device_; }
    const DeviceId& id() const noexcept { return id_; }
    const DeviceAttributes& attributes() const noexcept { return device_->attributes(); }
    VIP_NIC_ATTRIBUTES vipl_attributes() const noexcept;
    std::size_t max_cqs() const noexcept;

    /// create_ptag() creates a tag for the program. The first tag is the default tag, for VIs created without a tag. If
    /// such a VI is created first, default_ptag() creates the tag and the next create_ptag() returns it.
    Result<VIP_PROTECTION_HANDLE> create_ptag();
    Result<VIP_PROTECTION_HANDLE> default_ptag();
    bool destroy_ptag(Ptag& ptag) noexcept;

    /// Returns the tag of a protection domain of this NIC.
    VIP_PROTECTION_HANDLE ptag_of(const ProtectionDomain& domain) const noexcept;

    /// Adds or removes a region. register_region() throws std::bad_alloc. deregister_region() returns false if there is
    /// no such region.
    void register_region(std::unique_ptr<MemoryRegion> region);
    bool deregister_region(VIP_MEM_HANDLE key) noexcept;

    ErrorReporter errors;

private:
    std::shared_ptr<Device> device_;

public:
    Children<Ptag> ptags;
    RegionTable regions;
    RevokedMemory revoked;
    Mutex region_attributes;  ///< held while regions are added or removed, or several attributes read or changed
    Children<Cq> cqs;
    Children<Vi> vis;
    Children<Connection> connections;
    NameServiceSlot name_service;

private:
    explicit Nic(const DeviceId& id);
    Result<VIP_PROTECTION_HANDLE> add_ptag();
    void forget_revoked() noexcept VIADUCT_REQUIRES(region_attributes);
    void on_async_event(const AsyncEvent& event) noexcept override;
    bool contain(const VIP_ERROR_DESCRIPTOR& error) noexcept;

    const DeviceId id_;
    std::string name_;
    Mutex default_ptag_mutex_;
    VIP_PROTECTION_HANDLE default_ptag_ VIADUCT_GUARDED_BY(default_ptag_mutex_) = nullptr;  // null: there is none
    bool default_ptag_is_known_ VIADUCT_GUARDED_BY(default_ptag_mutex_) = false;  // whether the program has received it
};

/// Returns the device with this name: "VINIC", "VINIC<n>" (guide, section 6.5), the device's own name, or
/// a historical name. InvalidParameter: there is no such device.
Result<DeviceId> device_with_name(std::string_view name);

}  // namespace viaduct::vipl
