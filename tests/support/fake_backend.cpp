// SPDX-License-Identifier: BSD-3-Clause
// The fake backend's provider, devices and memory.
#include "tests/support/fake_backend.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "tests/support/fake_endpoint.hpp"
#include "tests/support/mappings.hpp"

namespace viaduct::testing {

FakeProvider::FakeProvider() : world_(std::make_shared<fake::World>()) {}

FakeProvider::~FakeProvider() = default;

Result<std::uint32_t> FakeProvider::device_count() const noexcept { return std::uint32_t{fake::World::device_count}; }

Result<std::unique_ptr<backend::Device>> FakeProvider::open(std::uint32_t index, DeviceObserver& observer) noexcept {
    if (index >= fake::World::device_count) return Status(Code::InvalidParameter, "no such fake device");
    return std::unique_ptr<backend::Device>(std::make_unique<fake::Device>(world_, index, capabilities, observer));
}

Result<std::uint32_t> FakeProvider::find(std::string_view device) noexcept {
    for (std::uint32_t index = 0; index < fake::World::device_count; ++index)
        if (device == "fake" + std::to_string(index)) return index;
    return Status(Code::InvalidParameter, "no fake device has that name");
}

Result<std::uint32_t> FakeProvider::route_to(const HostAddress& host) noexcept {
    for (std::uint32_t index = 0; index < fake::World::device_count; ++index)
        if (fake::World::host(index) == host) return index;
    return Status(Code::Unreachable, "no fake device has that address");
}

Result<std::vector<backend::DeviceSummary>> FakeProvider::devices() const noexcept {
    std::vector<backend::DeviceSummary> devices;
    for (std::uint32_t index = 0; index < fake::World::device_count; ++index)
        devices.push_back({"fake" + std::to_string(index), fake::World::host(index)});
    return devices;
}

void FakeProvider::check_deadlines() noexcept {
    const std::lock_guard lock(world_->mutex);
    world_->expire();
}

std::size_t FakeProvider::live_objects() const noexcept { return world_->live_objects; }

namespace fake {
namespace {

DeviceAttributes attributes_of(std::uint32_t index, const Capabilities& capabilities) {
    DeviceAttributes attributes;
    attributes.capabilities = capabilities;
    attributes.name = "fake" + std::to_string(index);
    attributes.host = World::host(index);
    for (std::uint32_t i = 0; i < World::device_count; ++i) attributes.local_hosts.push_back(World::host(i));
    attributes.max_endpoints = 65536;
    attributes.max_queue_depth = 1024;
    attributes.default_queue_depth = 1024;
    attributes.max_sges = 256;
    attributes.max_completion_queues = 65536;
    attributes.max_completions = 65536;
    attributes.max_regions = 65536;
    attributes.max_region_bytes = std::uint64_t{1} << 40;
    attributes.max_protection_domains = 65536;
    attributes.max_transfer_bytes = 16u << 20;
    attributes.native_mtu_bytes = 65536;
    attributes.max_private_data_bytes = PrivateData::capacity;
    attributes.max_service_bytes = Address::max_service;
    return attributes;
}

}  // namespace

Bytes<Address::max_host> World::host(std::uint32_t index) noexcept {
    // Reserved for documentation, so not an address of this host.
    const std::array<std::uint8_t, 4> bytes{198, 51, 100, static_cast<std::uint8_t>(index + 1)};
    return Bytes<Address::max_host>(bytes);
}

bool World::knows(const Bytes<Address::max_host>& host) noexcept {
    for (std::uint32_t index = 0; index < device_count; ++index)
        if (World::host(index) == host) return true;
    return false;
}

Device::Device(std::shared_ptr<World> world, std::uint32_t index, const Capabilities& capabilities,
               DeviceObserver& observer)
    : CountedObject(std::move(world)), attributes_(attributes_of(index, capabilities)), observer_(observer) {}

Result<std::unique_ptr<backend::ProtectionDomain>> Device::create_protection_domain() noexcept {
    return std::unique_ptr<backend::ProtectionDomain>(std::make_unique<Domain>(shared_world()));
}

Result<std::unique_ptr<backend::MemoryRegion>> Device::register_memory(const backend::ProtectionDomain& domain,
                                                                       void* address, std::uint64_t length,
                                                                       Access access) noexcept {
    const Mapping mapping = find_mapping(address, length);
    if (!mapping.complete) return Status(Code::InvalidParameter, "memory that is not mapped");
    return std::unique_ptr<backend::MemoryRegion>(
        std::make_unique<Region>(shared_world(), *this, domain, address, length, access, mapping.writable));
}

Result<std::unique_ptr<backend::MemoryWindow>> Device::create_memory_window(const backend::ProtectionDomain& domain,
                                                                            WindowScope scope) noexcept {
    return std::unique_ptr<backend::MemoryWindow>(std::make_unique<Window>(shared_world(), domain, scope));
}

Result<std::unique_ptr<backend::Channel>> Device::create_channel() noexcept {
    return std::unique_ptr<backend::Channel>(std::make_unique<Channel>(shared_world()));
}

Result<std::unique_ptr<backend::CompletionQueue>> Device::create_completion_queue(
    const backend::CompletionQueueInit& init) noexcept {
    return std::unique_ptr<backend::CompletionQueue>(std::make_unique<CompletionQueue>(shared_world(), *this, init));
}

Result<std::unique_ptr<backend::SharedReceiveQueue>> Device::create_shared_receive_queue(
    const backend::ProtectionDomain& domain, std::uint32_t depth, std::uint64_t context) noexcept {
    return std::unique_ptr<backend::SharedReceiveQueue>(
        std::make_unique<SharedReceiveQueue>(shared_world(), *this, domain, depth, context));
}

Result<std::unique_ptr<backend::Endpoint>> Device::create_endpoint(const backend::EndpointInit& init) noexcept {
    return std::unique_ptr<backend::Endpoint>(std::make_unique<Endpoint>(shared_world(), *this, init));
}

Result<std::unique_ptr<viaduct::Listener>> Device::listen(const Address& local, Sharing sharing) noexcept {
    auto listener = std::make_unique<Listener>(shared_world(), local);
    if (listener->fd() < 0) return Status(Code::NoResources, "eventfd");
    const std::lock_guard lock(world().mutex);
    if (sharing == Sharing::Exclusive && world().next_listener(local) != nullptr)
        return Status(Code::Busy, "the service has a listener");
    world().begin_listening(*listener);
    return std::unique_ptr<viaduct::Listener>(std::move(listener));
}

Region::Region(std::shared_ptr<World> world, const Device& device, const backend::ProtectionDomain& domain,
               void* address, std::uint64_t length, Access access, bool writable)
    : CountedObject(std::move(world)),
      device_(device),
      domain_(&domain),
      begin_(reinterpret_cast<std::uintptr_t>(address)),
      length_(length),
      access_(access),
      writable_(writable) {
    const std::lock_guard lock(this->world().mutex);
    key_ = this->world().next_key++;
    this->world().regions.emplace(key_, this);
}

Region::~Region() {
    const std::lock_guard lock(world().mutex);
    world().regions.erase(key_);
    std::erase_if(world().views, [this](const auto& item) { return item.second.region == this; });
}

Status Region::modify(const backend::ProtectionDomain& domain, Access access) noexcept {
    const std::lock_guard lock(world().mutex);
    domain_ = &domain;
    access_ = access;
    return {};
}

Window::Window(std::shared_ptr<World> world, const backend::ProtectionDomain& domain, WindowScope scope)
    : CountedObject(std::move(world)), state_(std::make_shared<WindowState>(domain, scope)) {
    const std::lock_guard lock(this->world().mutex);
    state_->key = this->world().next_key++;
}

Window::~Window() {
    const std::lock_guard lock(world().mutex);
    world().views.erase(state_->in_force);
    state_->gone = true;
}

}  // namespace fake
}  // namespace viaduct::testing
