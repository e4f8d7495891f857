// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/device.hpp"

#include "backends/software/endpoint.hpp"
#include "backends/software/listener.hpp"
#include "backends/software/shared_receive_queue.hpp"
#include "backends/support/guarded.hpp"

namespace viaduct::software {
namespace {

constexpr std::uint32_t max_endpoints = 32768;

class MemoryRegion final : public backend::MemoryRegion {
public:
    MemoryRegion(std::shared_ptr<Node> node, std::uint32_t key) noexcept : node_(std::move(node)), key_(key) {}
    ~MemoryRegion() override {
        const Node::Guard guard(*node_);
        node_->regions().remove(key_);
    }

    std::uint32_t key() const noexcept override { return key_; }

    Status modify(const backend::ProtectionDomain& domain, Access access) noexcept override {
        const Node::Guard guard(*node_);
        node_->regions().set_rights(key_, static_cast<const ProtectionDomain&>(domain).id(), access);
        return {};
    }

private:
    const std::shared_ptr<Node> node_;
    const std::uint32_t key_;
};

}  // namespace

DeviceAttributes attributes_of(std::string name, const HostAddress& host) {
    return {
        .name = std::move(name),
        .host = host,
        .local_hosts = {},
        .capabilities = {},  // supports everything
        .max_endpoints = max_endpoints,
        .max_queue_depth = 65535,  // queues grow on demand
        .default_queue_depth = 8192,
        .max_sges = support::max_pieces,
        .max_completion_queues = 2 * max_endpoints + 1024,
        .max_completions = 1 << 20,
        .max_regions = Regions::max,
        .max_region_bytes = std::uint64_t{1} << 47,
        .max_protection_domains = 65536,
        .max_transfer_bytes = 1 << 30,
        .native_mtu_bytes = fragment_bytes,
        .max_private_data_bytes = PrivateData::capacity,
        .max_service_bytes = Address::max_service,
    };
}

MemoryWindow::~MemoryWindow() {
    const Node::Guard guard(*node_);
    node_->regions().remove_window(number_);
}

Device::Device(std::shared_ptr<Node> node, DeviceAttributes attributes, DeviceObserver& observer) noexcept
    : DeviceBase(std::move(attributes), observer), node_(std::move(node)) {}

Device::~Device() = default;

Result<std::unique_ptr<backend::MemoryRegion>> Device::register_memory(const backend::ProtectionDomain& domain,
                                                                       void* address, std::uint64_t length,
                                                                       Access access) noexcept {
    return support::make_as<backend::MemoryRegion>([&]() -> Result<std::unique_ptr<MemoryRegion>> {
        const Node::Guard guard(*node_);
        const auto key =
            node_->regions().add(address, length, static_cast<const ProtectionDomain&>(domain).id(), access);
        if (!key.ok()) return key.status();
        try {
            return std::make_unique<MemoryRegion>(node_, key.value());
        } catch (...) {
            node_->regions().remove(key.value());
            throw;
        }
    });
}

Result<std::unique_ptr<backend::MemoryWindow>> Device::create_memory_window(const backend::ProtectionDomain& domain,
                                                                            WindowScope scope) noexcept {
    return support::make_as<backend::MemoryWindow>([&]() -> Result<std::unique_ptr<MemoryWindow>> {
        const Node::Guard guard(*node_);
        const auto number = node_->regions().add_window(static_cast<const ProtectionDomain&>(domain).id(), scope);
        if (!number.ok()) return number.status();
        try {
            return std::make_unique<MemoryWindow>(node_, number.value());
        } catch (...) {
            node_->regions().remove_window(number.value());
            throw;
        }
    });
}

Result<std::unique_ptr<viaduct::Listener>> Device::listen(const Address& local, Sharing sharing) noexcept {
    return support::guarded([&] { return Listener::create(node_, local, sharing); });
}

}  // namespace viaduct::software

template class viaduct::support::DeviceBase<viaduct::software::Device, viaduct::software::CompletionQueue,
                                            viaduct::software::SharedReceiveQueue, viaduct::software::Endpoint>;
