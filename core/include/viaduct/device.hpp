// SPDX-License-Identifier: BSD-3-Clause
// Devices, protection domains, memory regions and memory windows.
//
// In all headers of the core: functions may be called from any thread unless their comment says otherwise; destructors
// and move operations need exclusive access. An object keeps alive the objects that it was created from, except that
// listeners and connection requests are destroyed before their device. A forked child may destroy what it inherits, and
// must not use it otherwise. Besides the codes named in its comment, any function may fail with NoResources or
// SystemError.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "viaduct/attributes.hpp"
#include "viaduct/connection.hpp"
#include "viaduct/counters.hpp"
#include "viaduct/detail/export.hpp"
#include "viaduct/detail/owned.hpp"
#include "viaduct/detail/use_count.hpp"
#include "viaduct/events.hpp"
#include "viaduct/status.hpp"

namespace viaduct {

namespace backend {
class Channel;
class CompletionQueue;
class Device;
class MemoryRegion;
class MemoryWindow;
class ProtectionDomain;
class Provider;
class SharedReceiveQueue;
}  // namespace backend

class Device;

/// A protection domain: endpoints can only use the memory regions of their own domain.
class VIADUCT_EXPORT ProtectionDomain {
public:
    static Result<std::shared_ptr<ProtectionDomain>> create(std::shared_ptr<Device> device);
    ~ProtectionDomain();

    const std::shared_ptr<Device>& device() const noexcept { return device_; }

    /// Whether the domain has regions, windows or endpoints.
    bool in_use() const noexcept { return users_.in_use(); }

private:
    friend struct Internals;

    ProtectionDomain(std::shared_ptr<Device> device, std::unique_ptr<backend::ProtectionDomain> domain) noexcept;
    const backend::ProtectionDomain& backend() const noexcept { return *domain_; }

    std::shared_ptr<Device> device_;
    detail::UseCount users_;
    Owned<backend::ProtectionDomain> domain_;
};

/// Registered memory. The memory itself remains the caller's and must stay mapped as long as the region exists.
/// Work that uses a region after it was destroyed fails with a protection error.
class VIADUCT_EXPORT MemoryRegion {
public:
    /// Registers `length` bytes. Memory that is mapped read-only can be registered and is never written to.
    /// InvalidParameter: length 0, an overflowing range, or memory that is not mapped or cannot be read.
    static Result<std::unique_ptr<MemoryRegion>> create(std::shared_ptr<ProtectionDomain> domain, void* address,
                                                        std::uint64_t length, Access access);
    ~MemoryRegion();

    void* address() const noexcept { return address_; }
    std::uint64_t length() const noexcept { return length_; }
    Access access() const noexcept { return access_; }
    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }

    /// Identifies the region in the requests of this process (Sge::key) and of peers (RemoteAddress::key). Never 0.
    std::uint32_t key() const noexcept { return key_; }

    /// Changes domain and access or, on failure, nothing. The key may change; see Capabilities::keeps_keys. Must not be
    /// called by two threads at the same time.
    Status modify(std::shared_ptr<ProtectionDomain> domain, Access access);

    /// Whether the region contains the whole range.
    bool covers(const void* address, std::uint64_t length) const noexcept {
        const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(address_);
        return offset <= length_ && length <= length_ - offset;
    }

private:
    friend struct Internals;

    MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<backend::MemoryRegion> region, void* address,
                 std::uint64_t length, Access access) noexcept;
    const backend::MemoryRegion& backend() const noexcept { return *region_; }

    std::shared_ptr<ProtectionDomain> domain_;
    Owned<backend::MemoryRegion> region_;
    std::uint32_t key_;
    void* address_;
    std::uint64_t length_;
    Access access_;
};

/// Gives peers access to a part of a region, by a key of its own and with access rights of its own. A new window gives
/// access to nothing; Endpoint::bind() changes that. The caller ensures that the region exists as long as the window is
/// bound to it. Destroying the window invalidates its key, and that of a bind in progress when it completes.
class VIADUCT_EXPORT MemoryWindow {
public:
    /// Unsupported: the device has no windows of this scope.
    static Result<std::unique_ptr<MemoryWindow>> create(std::shared_ptr<ProtectionDomain> domain,
                                                        WindowScope scope = WindowScope::Domain);
    ~MemoryWindow();

    WindowScope scope() const noexcept { return scope_; }
    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }

    /// The key of the last Endpoint::bind(), valid once the bind completes. Never 0, and different from the keys of the
    /// last hundred binds.
    std::uint32_t key() const noexcept;

private:
    friend struct Internals;

    MemoryWindow(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<backend::MemoryWindow> window,
                 WindowScope scope) noexcept;
    backend::MemoryWindow& backend() noexcept { return *window_; }

    std::shared_ptr<ProtectionDomain> domain_;
    Owned<backend::MemoryWindow> window_;
    WindowScope scope_;
};

/// An open network interface. Devices are numbered from 0 within the backend that the environment selects: the one
/// that VIADUCT_BACKEND names, otherwise the one that has the device VIADUCT_DEVICE, otherwise the first one that has a
/// device. If the variables name something that does not exist, the static functions fail with InvalidParameter.
class VIADUCT_EXPORT Device {
public:
    /// Opens the device VIADUCT_DEVICE, otherwise device 0. InvalidParameter: there is none.
    ///
    /// Here and below, the observer gets the asynchronous events and must outlive the device. Null: next_event().
    static Result<std::shared_ptr<Device>> open_default(DeviceObserver* observer = nullptr);

    /// Opens a device. InvalidParameter: no such device.
    static Result<std::shared_ptr<Device>> open(std::uint32_t number, DeviceObserver* observer = nullptr);

    /// Opens the device with this name. Unless one of the variables is set, it may be a device of any backend.
    /// InvalidParameter: no such device.
    static Result<std::shared_ptr<Device>> open_named(std::string_view name, DeviceObserver* observer = nullptr);

    /// Opens the device through which a host is reached. Unless one of the variables is set, it may be a device of any
    /// backend: an RDMA device if possible, otherwise a loopback device for the addresses of this host, otherwise one
    /// that uses TCP. Unreachable: there is none.
    static Result<std::shared_ptr<Device>> open_towards(const HostAddress& host, DeviceObserver* observer = nullptr);

    /// The number of devices; 0 if the machine has none.
    static Result<std::uint32_t> count();

    /// The name of the selected backend: "loopback", "verbs" or "tcp".
    static Result<std::string_view> backend_name();

    /// The number of the device of the selected backend with this name. InvalidParameter: no such device.
    static Result<std::uint32_t> find(std::string_view name);

    /// The number of the device to use by default: that of VIADUCT_DEVICE, or 0. InvalidParameter: as find().
    static Result<std::uint32_t> default_number();

    /// The number of the device of the selected backend through which a host is reached. Unreachable: there is none.
    static Result<std::uint32_t> route_to(const HostAddress& host);

    ~Device();

    const DeviceAttributes& attributes() const noexcept { return attributes_; }

    /// The backend, as backend_name() returns it.
    std::string_view backend_of() const noexcept { return backend_; }

    /// For poll(2) and epoll(7): readable while there are asynchronous events. Owned by the device. -1: the descriptor
    /// could not be created, or the device has an observer.
    int fd() noexcept;

    /// Takes the oldest asynchronous event. The first 256 are kept until they are taken. WouldBlock: there is none.
    /// InvalidState: the device has an observer, which gets them.
    Result<AsyncEvent> next_event() noexcept;

    /// Waits for it. TimedOut: the deadline has passed.
    Result<AsyncEvent> next_event(const Deadline& deadline);

    /// Values since the device was opened. Costs nothing while they are not read.
    DeviceCounters counters() const;

    /// Starts to receive connection requests for a service. InvalidParameter: the host is not that of the device.
    /// Busy: `sharing` is Exclusive and the service has a listener, or it is Shared and another process has a listener
    /// with which this device cannot share the service (see Capabilities::shares_services).
    Result<std::unique_ptr<Listener>> listen(const Address& local, Sharing sharing = Sharing::Shared);

private:
    friend struct Internals;
    friend class Endpoint;
    friend class Registry;
    friend VIADUCT_EXPORT Result<std::shared_ptr<Device>> open_device(backend::Provider&, std::uint32_t,
                                                                      DeviceObserver*);

    /// What observes the backend's part of the device if the program does not.
    class KeptEvents;

    Device(std::unique_ptr<KeptEvents> kept, std::unique_ptr<backend::Device> device,
           std::string_view backend) noexcept;
    backend::Device& backend() noexcept { return *device_; }
    DeviceCounters counters_with(const EndpointCounters& open) const noexcept;

    /// Written without a lock, and rarely.
    struct Events {
        std::atomic<std::uint64_t> endpoints{0};
        std::atomic<std::uint64_t> connections{0};
        std::atomic<std::uint64_t> refused{0};
        std::atomic<std::uint64_t> lost{0};
    };

    const std::unique_ptr<KeptEvents> kept_;  // null: there is an observer
    Owned<backend::Device> device_;
    const DeviceAttributes& attributes_;
    const std::string_view backend_;
    std::atomic<const char*> api_{"core"};  // that uses the device, for diagnostics: static text
    Events events_;
    EndpointCounters closed_;  // the sum of the endpoints that are destroyed; guarded by the lock of the registry
};

}  // namespace viaduct
