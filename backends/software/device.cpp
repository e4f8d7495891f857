// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/device.hpp"

#include "backends/software/endpoint.hpp"
#include "backends/software/listener.hpp"
#include "backends/support/guarded.hpp"

namespace viaduct::software {
namespace {

constexpr std::uint32_t max_endpoints = 32768;

}  // namespace

DeviceAttributes attributes_of(std::string name, const HostAddress& host) {
    auto attributes = support::software_attributes(std::move(name), host, max_endpoints);
    attributes.max_regions = Regions::max;
    attributes.native_mtu_bytes = fragment_bytes;
    return attributes;
}

Device::Device(std::shared_ptr<Node> node, DeviceAttributes attributes, DeviceObserver& observer) noexcept
    : DeviceBase(std::move(attributes), observer), node_(std::move(node)) {}

Device::~Device() = default;

Result<std::unique_ptr<viaduct::Listener>> Device::listen(const Address& local, Sharing sharing) noexcept {
    return support::guarded([&] { return Listener::create(node_, local, sharing); });
}

}  // namespace viaduct::software

template class viaduct::support::DeviceBase<viaduct::software::Device, viaduct::software::CompletionQueue,
                                            viaduct::software::SharedReceiveQueue, viaduct::software::Endpoint>;
