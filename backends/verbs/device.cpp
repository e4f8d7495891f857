// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/device.hpp"

#include <algorithm>

#include "backends/support/guarded.hpp"
#include "backends/verbs/channel.hpp"
#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/endpoint.hpp"
#include "backends/verbs/listener.hpp"
#include "backends/verbs/pieces.hpp"
#include "backends/verbs/shared_receive_queue.hpp"

namespace viaduct::verbs {
namespace {

/// Some devices that implement queues in software announce more than fits into memory.
constexpr std::uint32_t max_depth = 16384;
/// The minimum depth of a work queue according to the VI Architecture guide (appendix A).
constexpr std::uint32_t default_depth = 1024;
/// The maximum service length that fits into a request with its other contents; see handshake.hpp.
constexpr std::uint32_t max_service = 32;

std::uint32_t count(int limit) noexcept { return static_cast<std::uint32_t>(std::max(limit, 0)); }

std::uint32_t max_sges(const ibv_device_attr& limits) noexcept {
    const std::uint32_t reads = limits.max_sge_rd > 0 ? count(limits.max_sge_rd) : count(limits.max_sge);
    const std::uint32_t shared = limits.max_srq > 0 ? count(limits.max_srq_sge) : count(limits.max_sge);
    return std::min({count(limits.max_sge), reads, shared, max_pieces});
}

DeviceAttributes attributes_of(const Nic& nic, const std::vector<Interface>& interfaces, std::uint32_t index) {
    const ibv_device_attr& limits = nic.limits();
    DeviceAttributes attributes;
    attributes.name = name_of(interfaces[index]);
    attributes.host = interfaces[index].host;
    for (const Interface& interface : interfaces) attributes.local_hosts.push_back(interface.host);
    attributes.capabilities = {.unreliable = nic.has_unreliable(),
                               .atomic_write = false,
                               .atomics = limits.atomic_cap != IBV_ATOMIC_NONE,
                               .shared_receive_queues = limits.max_srq > 0,
                               .resizes_shared_receives = (limits.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0,
                               .shares_services = false,
                               .own_user_only = false,
                               .tells_loss = false,
                               .tells_target = false,
                               .survives_bad_receives = false,
                               .unreliable_waits = false,
                               .pages_on_demand = nic.pages_on_demand(),
                               .keeps_keys = false,
                               .flush_by_write = false,
                               .bounds_flushes = false,
                               .memory_windows = nic.has_windows(IBV_MW_TYPE_1),
                               .invalidates = nic.has_windows(IBV_MW_TYPE_2),
                               .bounds_windows = !nic.is_software(),
                               .bounds_completions = false};
    attributes.max_endpoints = std::min(count(limits.max_qp), count(limits.max_cq) / 3);
    attributes.max_queue_depth = std::min(count(limits.max_qp_wr), max_depth);
    attributes.default_queue_depth = std::min(attributes.max_queue_depth, default_depth);
    attributes.max_sges = max_sges(limits);
    attributes.max_completion_queues = count(limits.max_cq);
    attributes.max_completions = count(limits.max_cqe);
    attributes.max_regions = count(limits.max_mr);
    attributes.max_region_bytes = limits.max_mr_size;
    attributes.max_protection_domains = count(limits.max_pd);
    attributes.max_transfer_bytes = nic.port().max_msg_sz;
    attributes.native_mtu_bytes = 128u << nic.port().active_mtu;
    attributes.max_private_data_bytes = request_capacity;
    attributes.max_service_bytes = max_service;
    return attributes;
}

}  // namespace

Result<std::unique_ptr<Device>> Device::open(const std::vector<Interface>& interfaces, std::uint32_t index,
                                             DeviceObserver& observer) {
    if (index >= interfaces.size()) return Status(Code::InvalidParameter, "no such RDMA device");
    auto nic = Nic::open(interfaces[index]);
    if (!nic.ok()) return nic.status();
    DeviceAttributes attributes = attributes_of(**nic, interfaces, index);
    return std::unique_ptr<Device>(new Device(std::move(*nic), observer, std::move(attributes)));
}

Result<std::unique_ptr<backend::ProtectionDomain>> Device::create_protection_domain() noexcept {
    return support::make_as<backend::ProtectionDomain>([&] { return ProtectionDomain::create(nic_); });
}

Result<std::unique_ptr<backend::MemoryRegion>> Device::register_memory(const backend::ProtectionDomain& domain,
                                                                       void* address, std::uint64_t length,
                                                                       Access access) noexcept {
    return support::make_as<backend::MemoryRegion>([&] {
        return MemoryRegion::create(nic_, static_cast<const ProtectionDomain&>(domain), address, length, access);
    });
}

Result<std::unique_ptr<backend::MemoryWindow>> Device::create_memory_window(const backend::ProtectionDomain& domain,
                                                                            WindowScope scope) noexcept {
    return support::make_as<backend::MemoryWindow>(
        [&] { return MemoryWindow::create(nic_, static_cast<const ProtectionDomain&>(domain), scope); });
}

Result<std::unique_ptr<backend::Channel>> Device::create_channel() noexcept {
    return support::make_as<backend::Channel>(
        [&] { return Channel::create(std::shared_ptr<ibv_context>(nic_, nic_->context())); });
}

Result<std::unique_ptr<backend::CompletionQueue>> Device::create_completion_queue(
    const backend::CompletionQueueInit& init) noexcept {
    return support::make_as<backend::CompletionQueue>([&] { return CompletionQueue::create(*this, init); });
}

Result<std::unique_ptr<backend::SharedReceiveQueue>> Device::create_shared_receive_queue(
    const backend::ProtectionDomain& domain, std::uint32_t depth, std::uint64_t context) noexcept {
    return support::make_as<backend::SharedReceiveQueue>([&] {
        return SharedReceiveQueue::create(*this, static_cast<const ProtectionDomain&>(domain), depth, context);
    });
}

Result<std::unique_ptr<backend::Endpoint>> Device::create_endpoint(const backend::EndpointInit& init) noexcept {
    return support::make_as<backend::Endpoint>([&] { return Endpoint::create(*this, init); });
}

Result<std::unique_ptr<viaduct::Listener>> Device::listen(const Address& local, Sharing sharing) noexcept {
    return support::make_as<viaduct::Listener>([&] { return Listener::create(nic_, local, sharing); });
}

}  // namespace viaduct::verbs
