// SPDX-License-Identifier: BSD-3-Clause
#include "viaduct/device.hpp"

#include "core/base/event_channel.hpp"
#include "core/base/guarded_memory.hpp"
#include "core/base/internals.hpp"
#include "core/limits.hpp"
#include "core/log.hpp"
#include "core/provider.hpp"
#include "core/registry.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/endpoint.hpp"

namespace viaduct {

class Device::KeptEvents final : public DeviceObserver {
public:
    void on_async_event(const AsyncEvent& event) noexcept override { events.push(event); }

    EventChannel<AsyncEvent> events{256};
};

Device::Device(std::unique_ptr<KeptEvents> kept, std::unique_ptr<backend::Device> device,
               std::string_view backend) noexcept
    : kept_(std::move(kept)), device_(std::move(device)), attributes_(device_->attributes()), backend_(backend) {}

Device::~Device() { Registry::instance().remove(*this); }

int Device::fd() noexcept { return kept_ == nullptr ? -1 : kept_->events.fd(); }

Result<AsyncEvent> Device::next_event() noexcept {
    if (kept_ == nullptr) return Status(Code::InvalidState, "the device has an observer, which gets its events");
    return kept_->events.next();
}

Result<AsyncEvent> Device::next_event(const Deadline& deadline) {
    return take_when_readable(*this, deadline, device_->event_poller(), [this] { return next_event(); });
}

DeviceCounters Device::counters() const {
    const LockGuard guard(Registry::instance().lock);
    EndpointCounters open;
    for (const Endpoint* endpoint : Registry::instance().endpoints)
        if (&endpoint->device() == this) open += endpoint->counters();
    return counters_with(open);
}

/// `open`: the sum of the endpoints that exist. The lock of the registry must be held.
DeviceCounters Device::counters_with(const EndpointCounters& open) const noexcept {
    DeviceCounters counters{.endpoints = closed_,
                            .endpoints_created = events_.endpoints.load(std::memory_order_relaxed),
                            .connections = events_.connections.load(std::memory_order_relaxed),
                            .refused_connections = events_.refused.load(std::memory_order_relaxed),
                            .lost_connections = events_.lost.load(std::memory_order_relaxed),
                            .agent_wakeups = device_->agent_wakeups()};
    counters.endpoints += open;
    return counters;
}

Result<std::shared_ptr<Device>> Device::open_default(DeviceObserver* observer) {
    return default_device().and_then([&](const DeviceId& device) { return open_device(device, observer); });
}

Result<std::shared_ptr<Device>> Device::open(std::uint32_t number, DeviceObserver* observer) {
    return selected_provider().and_then([&](auto* provider) { return open_device(*provider, number, observer); });
}

Result<std::shared_ptr<Device>> Device::open_named(std::string_view name, DeviceObserver* observer) {
    return find_device(name).and_then([&](const DeviceId& device) { return open_device(device, observer); });
}

Result<std::shared_ptr<Device>> Device::open_towards(const HostAddress& host, DeviceObserver* observer) {
    return find_route({&host, 1}).and_then([&](const Route& route) { return open_device(route.device, observer); });
}

Result<std::uint32_t> Device::count() {
    return selected_provider().and_then([](auto* provider) { return provider->device_count(); });
}

Result<std::string_view> Device::backend_name() {
    return selected_provider().and_then([](auto* provider) { return Result(provider->name()); });
}

Result<std::uint32_t> Device::find(std::string_view name) {
    return selected_provider().and_then([&](auto* provider) { return provider->find(name); });
}

Result<std::uint32_t> Device::default_number() {
    return default_device().and_then([](const DeviceId& device) { return Result(device.number); });
}

Result<std::uint32_t> Device::route_to(const HostAddress& host) {
    return selected_provider().and_then([&](auto* provider) { return provider->route_to(host); });
}

Result<std::shared_ptr<Device>> open_device(backend::Provider& provider, std::uint32_t index,
                                            DeviceObserver* observer) {
    catch_faults();
    auto kept = observer == nullptr ? std::make_unique<Device::KeptEvents>() : nullptr;
    auto device = provider.open(index, observer == nullptr ? *kept : *observer);
    if (!device.ok()) return device.status();
    log(LogLevel::Info, "opened %s of %.*s", (*device)->attributes().name.c_str(),
        static_cast<int>(provider.name().size()), provider.name().data());
    std::shared_ptr<Device> opened(new Device(std::move(kept), std::move(*device), provider.name()));
    Registry::instance().add(*opened);
    return opened;
}

Result<Owned<ConnectionRequest>> Listener::next_request(const Deadline& deadline) {
    EventPoller idle;
    return take_when_readable(*this, deadline, idle, [this] { return next_request(); });
}

Result<std::unique_ptr<Listener>> Device::listen(const Address& local, Sharing sharing) {
    if (const Status status = check_local_host(local.host, attributes()); !status.ok()) return status;
    auto listener = device_->listen(local, sharing);
    if (!listener.ok()) return listener.status();
    return std::unique_ptr<Listener>(new RegisteredListener(std::move(*listener), *this, local));
}

ProtectionDomain::ProtectionDomain(std::shared_ptr<Device> device,
                                   std::unique_ptr<backend::ProtectionDomain> domain) noexcept
    : device_(std::move(device)), domain_(std::move(domain)) {}

ProtectionDomain::~ProtectionDomain() = default;

Result<std::shared_ptr<ProtectionDomain>> ProtectionDomain::create(std::shared_ptr<Device> device) {
    auto domain = Internals::backend(*device).create_protection_domain();
    if (!domain.ok()) return domain.status();
    return std::shared_ptr<ProtectionDomain>(new ProtectionDomain(std::move(device), std::move(*domain)));
}

MemoryRegion::MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<backend::MemoryRegion> region,
                           void* address, std::uint64_t length, Access access) noexcept
    : domain_(std::move(domain)),
      region_(std::move(region)),
      key_(region_->key()),
      address_(address),
      length_(length),
      access_(access) {
    Internals::users(*domain_).add();
}

MemoryRegion::~MemoryRegion() { Internals::users(*domain_).remove(); }

Result<std::unique_ptr<MemoryRegion>> MemoryRegion::create(std::shared_ptr<ProtectionDomain> domain, void* address,
                                                           std::uint64_t length, Access access) {
    if (const Status status = check_range(address, length); !status.ok()) return status;
    auto region =
        Internals::backend(*domain->device()).register_memory(Internals::backend(*domain), address, length, access);
    if (!region.ok()) return region.status();
    return std::unique_ptr<MemoryRegion>(
        new MemoryRegion(std::move(domain), std::move(*region), address, length, access));
}

Status MemoryRegion::modify(std::shared_ptr<ProtectionDomain> domain, Access access) {
    if (const Status status = region_->modify(Internals::backend(*domain), access); !status.ok()) return status;
    Internals::users(*domain).add();
    Internals::users(*domain_).remove();
    domain_ = std::move(domain);
    key_ = region_->key();
    access_ = access;
    return {};
}

MemoryWindow::MemoryWindow(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<backend::MemoryWindow> window,
                           WindowScope scope) noexcept
    : domain_(std::move(domain)), window_(std::move(window)), scope_(scope) {
    Internals::users(*domain_).add();
}

MemoryWindow::~MemoryWindow() {
    window_.reset();
    Internals::users(*domain_).remove();
}

std::uint32_t MemoryWindow::key() const noexcept { return window_->key(); }

Result<std::unique_ptr<MemoryWindow>> MemoryWindow::create(std::shared_ptr<ProtectionDomain> domain,
                                                           WindowScope scope) {
    const Capabilities& able = domain->device()->attributes().capabilities;
    if (const Status status = check_window(scope, able); !status.ok()) return status;
    auto window = Internals::backend(*domain->device()).create_memory_window(Internals::backend(*domain), scope);
    if (!window.ok()) return window.status();
    return std::unique_ptr<MemoryWindow>(new MemoryWindow(std::move(domain), std::move(*window), scope));
}

}  // namespace viaduct
