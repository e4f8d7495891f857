// SPDX-License-Identifier: BSD-3-Clause
// An open network interface and the scopes of memory on it.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "core/backend.hpp"
#include "core/export.hpp"

namespace viaduct {

class Device;

/// Counts the objects that use a parent, so that the parent can tell whether it is busy.
class UseCount {
public:
    void add() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
    void remove() noexcept { users_.fetch_sub(1, std::memory_order_acq_rel); }
    bool in_use() const noexcept { return users_.load(std::memory_order_acquire) != 0; }

private:
    std::atomic<std::uint32_t> users_{0};
};

/// Endpoints use memory regions of their own protection domain only. Kept alive by its regions, windows and endpoints.
class VIADUCT_EXPORT ProtectionDomain {
public:
    static Result<std::shared_ptr<ProtectionDomain>> create(std::shared_ptr<Device> device);
    ~ProtectionDomain();

    const std::shared_ptr<Device>& device() const noexcept { return device_; }
    const backend::ProtectionDomain& backend() const noexcept { return *domain_; }

    /// Whether a region, a window or an endpoint uses the domain.
    bool in_use() const noexcept { return users.in_use(); }
    UseCount users;  ///< kept by the core's regions, windows and endpoints

private:
    ProtectionDomain(std::shared_ptr<Device> device, std::unique_ptr<backend::ProtectionDomain> domain) noexcept;

    std::shared_ptr<Device> device_;
    std::unique_ptr<backend::ProtectionDomain> domain_;
};

/// Registered memory. The memory itself stays the caller's and must stay mapped until the region is gone.
class VIADUCT_EXPORT MemoryRegion {
public:
    /// InvalidParameter: length 0, an overflowing range, or memory that is not mapped.
    static Result<std::unique_ptr<MemoryRegion>> create(std::shared_ptr<ProtectionDomain> domain, void* address,
                                                        std::uint64_t length, Access access);
    ~MemoryRegion();

    void* address() const noexcept { return address_; }
    std::uint64_t length() const noexcept { return length_; }
    Access access() const noexcept { return access_; }
    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }
    std::uint32_t key() const noexcept { return region_->key(); }
    const backend::MemoryRegion& backend() const noexcept { return *region_; }

    /// Changes both or, on failure, nothing. Not to be called by two threads at once.
    Status modify(std::shared_ptr<ProtectionDomain> domain, Access access);

    bool covers(const void* address, std::uint64_t length) const noexcept {
        const auto begin = reinterpret_cast<std::uintptr_t>(address_);
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        return at >= begin && at - begin <= length_ && length <= length_ - (at - begin);
    }

private:
    MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<backend::MemoryRegion> region, void* address,
                 std::uint64_t length, Access access) noexcept;

    std::shared_ptr<ProtectionDomain> domain_;
    std::unique_ptr<backend::MemoryRegion> region_;
    void* address_;
    std::uint64_t length_;
    Access access_;
};

/// A part of a region with a key of its own for peers; Endpoint::bind() tells it which. Who binds it sees to it that
/// the region outlives that.
class VIADUCT_EXPORT MemoryWindow {
public:
    /// Unsupported: the device has no windows of this scope.
    static Result<std::unique_ptr<MemoryWindow>> create(std::shared_ptr<ProtectionDomain> domain,
                                                        WindowScope scope = WindowScope::Domain);
    ~MemoryWindow();

    WindowScope scope() const noexcept { return scope_; }
    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }

    /// See backend::MemoryWindow.
    std::uint32_t key() const noexcept { return window_->key(); }
    backend::MemoryWindow& backend() noexcept { return *window_; }

private:
    MemoryWindow(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<backend::MemoryWindow> window,
                 WindowScope scope) noexcept;

    std::shared_ptr<ProtectionDomain> domain_;
    std::unique_ptr<backend::MemoryWindow> window_;
    WindowScope scope_;
};

/// An open device. Its children keep it alive.
class VIADUCT_EXPORT Device {
public:
    /// Opens device number `index` of the backend in force: VIADUCT_BACKEND, else that of VIADUCT_DEVICE, else the
    /// first one that has a device. InvalidParameter: no such device or backend. The observer outlives the device.
    static Result<std::shared_ptr<Device>> open(std::uint32_t index, DeviceObserver& observer);

    /// Opens a device of a given provider (tests, tools).
    static Result<std::shared_ptr<Device>> open(backend::Provider& provider, std::uint32_t index,
                                                DeviceObserver& observer);

    /// The number of the device with a name, with the backend in force. InvalidParameter: none has it.
    static Result<std::uint32_t> find(std::string_view name);

    /// The number of the device to use where nobody chooses: 0, or that of VIADUCT_DEVICE. InvalidParameter: as find().
    static Result<std::uint32_t> default_number();

    /// The number of the device by which a host is reached, with the backend in force. Unreachable: there is no way.
    static Result<std::uint32_t> route_to(const HostAddress& host);

    ~Device();

    const DeviceAttributes& attributes() const noexcept { return device_->attributes(); }
    backend::Device& backend() noexcept { return *device_; }

    /// Starts to receive requests for a service; see backend::Device::listen. InvalidParameter: the host is not that of
    /// the device.
    Result<std::unique_ptr<backend::Listener>> listen(const Address& local,
                                                      backend::Sharing sharing = backend::Sharing::Shared);

private:
    explicit Device(std::unique_ptr<backend::Device> device) noexcept;

    std::unique_ptr<backend::Device> device_;
};

/// The provider named "loopback" or "verbs"; with an empty name, the first that has a device. InvalidParameter: there
/// is none. NoResources: memory or descriptors lacked to find out.
VIADUCT_EXPORT Result<backend::Provider*> find_provider(std::string_view name) noexcept;

/// The provider in force. InvalidParameter: the settings name none. NoResources as above.
VIADUCT_EXPORT Result<backend::Provider*> provider_in_force() noexcept;

/// The provider that has a device with this name. Fails as find_provider() does.
VIADUCT_EXPORT Result<backend::Provider*> find_provider_of(std::string_view device) noexcept;

}  // namespace viaduct
