// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "backends/support/counted.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/interfaces.hpp"
#include "backends/tcp/endpoint.hpp"
#include "backends/tcp/listener.hpp"
#include "backends/tcp/shared_receive_queue.hpp"
#include "core/base/settings.hpp"

namespace viaduct::tcp {
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

DeviceAttributes make_attributes(const std::vector<Place>& places, std::uint32_t index) {
    DeviceAttributes attributes{
        .name = places[index].name,
        .host = places[index].host,
        .local_hosts = {},
        .capabilities = {},  // supports everything else
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
    attributes.capabilities.shares_services = false;
    attributes.capabilities.own_user_only = false;
    for (const Place& place : places) attributes.local_hosts.push_back(place.host);
    return attributes;
}

constexpr const char* interfaces_variable = "VIADUCT_TCP_INTERFACES";

/// The names in VIADUCT_TCP_INTERFACES, a list separated by commas.
std::vector<std::string_view> wanted_interfaces() {
    std::vector<std::string_view> names;
    for (std::string_view rest = setting(interfaces_variable); !rest.empty();) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        names.push_back(rest.substr(0, comma));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return names;
}

/// Removes the addresses of the interfaces that are not wanted, and reports names of no interface.
void keep_wanted(std::vector<support::NetworkAddress>& found) {
    const auto wanted = wanted_interfaces();
    if (wanted.empty()) return;
    std::vector<std::string_view> known;
    for (const support::NetworkAddress& address : found)
        if (std::ranges::find(known, address.interface) == known.end()) known.push_back(address.interface);
    const auto is_known = [&](std::string_view name) { return std::ranges::find(known, name) != known.end(); };
    if (!std::ranges::all_of(wanted, is_known))
        warn_of_setting(interfaces_variable, fmt::format("interfaces with addresses: {}", fmt::join(known, ", ")));
    std::erase_if(found, [&](const support::NetworkAddress& address) {
        return std::ranges::find(wanted, address.interface) == wanted.end();
    });
}

}  // namespace

std::vector<Place> find_places() {
    auto found = support::find_network_addresses();
    keep_wanted(found);
    // IPv4 first, and this host's own addresses last, because devices are for other hosts.
    std::ranges::stable_sort(found, {}, [](const support::NetworkAddress& address) {
        return std::pair(address.host.size(), address.loopback);
    });
    std::vector<Place> places;
    for (const support::NetworkAddress& address : found) {
        std::string name = fmt::format("viaduct-{}{}", address.interface, address.host.size() == 4 ? "" : "-v6");
        const auto same = [&](const Place& place) { return place.name == name; };
        for (int number = 2; std::ranges::any_of(places, same); ++number)
            name = fmt::format("viaduct-{}{}.{}", address.interface, address.host.size() == 4 ? "" : "-v6", number);
        places.push_back({std::move(name), address.host});
    }
    return places;
}

MemoryWindow::~MemoryWindow() {
    const Node::Guard guard(*node_);
    node_->regions().remove_window(number_);
}

Result<std::unique_ptr<Device>> Device::open(std::uint32_t index, DeviceObserver& observer) {
    const auto places = find_places();
    if (index >= places.size()) return Status(Code::InvalidParameter, "no such network interface");
    auto node = Node::open(places[index].host);
    if (!node.ok()) return node.status();
    return std::unique_ptr<Device>(new Device(std::move(*node), make_attributes(places, index), observer));
}

Result<std::unique_ptr<backend::ProtectionDomain>> Device::create_protection_domain() noexcept {
    return support::make_as<backend::ProtectionDomain>([this] {
        const Node::Guard guard(*node_);
        return support::make_counted<ProtectionDomain>(domains_, attributes_.max_protection_domains,
                                                       "too many protection domains", domains_, node_->new_domain());
    });
}

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
        const std::uint32_t number =
            node_->regions().add_window(static_cast<const ProtectionDomain&>(domain).id(), scope);
        try {
            return std::make_unique<MemoryWindow>(node_, number);
        } catch (...) {
            node_->regions().remove_window(number);
            throw;
        }
    });
}

Result<std::unique_ptr<backend::Channel>> Device::create_channel() noexcept {
    return support::make_as<backend::Channel>(
        []() -> Result<std::unique_ptr<Channel>> { return std::make_unique<Channel>(); });
}

Result<std::unique_ptr<backend::CompletionQueue>> Device::create_completion_queue(
    const backend::CompletionQueueInit& init) noexcept {
    return support::make_as<backend::CompletionQueue>([&] {
        return support::make_counted<CompletionQueue>(completion_queues_, attributes_.max_completion_queues,
                                                      "too many completion queues", *this, init);
    });
}

Result<std::unique_ptr<backend::SharedReceiveQueue>> Device::create_shared_receive_queue(
    const backend::ProtectionDomain&, std::uint32_t depth, std::uint64_t context) noexcept {
    return support::make_as<backend::SharedReceiveQueue>([&]() -> Result<std::unique_ptr<SharedReceiveQueue>> {
        return std::make_unique<SharedReceiveQueue>(*this, depth, context);
    });
}

Result<std::unique_ptr<backend::Endpoint>> Device::create_endpoint(const backend::EndpointInit& init) noexcept {
    return support::make_as<backend::Endpoint>([&] {
        return support::make_counted<Endpoint>(endpoints_, attributes_.max_endpoints, "too many endpoints", *this,
                                               init);
    });
}

Result<std::unique_ptr<viaduct::Listener>> Device::listen(const Address& local, Sharing sharing) noexcept {
    return support::guarded([&] { return Listener::create(node_, local, sharing); });
}

Status Device::watch(int fd, void (*on_readable)() noexcept) noexcept {
    const Node::Guard guard(*node_);
    return node_->agent().call_for(fd, on_readable);
}

void Device::unwatch(int fd) noexcept {
    const Node::Guard guard(*node_);
    node_->agent().stop_calling_for(fd);
}

std::uint64_t Device::agent_wakeups() const noexcept { return node_->agent().wakeups(); }

}  // namespace viaduct::tcp
