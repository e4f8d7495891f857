// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/provider.hpp"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "backends/verbs/device.hpp"
#include "backends/verbs/interfaces.hpp"
#include "backends/verbs/owners.hpp"

namespace viaduct::verbs {
namespace {

/// How long the way to a host may take to be found.
constexpr int resolution_ms = 2000;

/// The address of this host that the connection manager takes for connections to another.
Result<HostAddress> find_source(const HostAddress& host) noexcept {
    SocketAddress to(host, 0);
    if (!to.valid()) return Status(Code::Unreachable, "no IPv4 or IPv6 address");
    rdma_cm_id* raw = nullptr;
    if (rdma_create_id(nullptr, &raw, nullptr, RDMA_PS_TCP) != 0) return Status::from_errno(errno, "rdma_create_id");
    const IdOwner id(raw);
    if (rdma_resolve_addr(id.get(), nullptr, to.get(), resolution_ms) != 0)
        return Status(Code::Unreachable, "no way to the host", errno);
    return host_of(rdma_get_local_addr(id.get()));
}

}  // namespace

std::uint32_t Provider::device_count() const noexcept try {
    return static_cast<std::uint32_t>(find_interfaces().size());
} catch (const std::exception&) {
    return 1;  // perhaps; who opens it learns what is lacking
}

Result<std::unique_ptr<backend::Device>> Provider::open(std::uint32_t index, DeviceObserver& observer) noexcept try {
    // Where the kernel copies registered pages at a fork by itself, this does nothing.
    if (const int error = ibv_fork_init(); error != 0) return Status::from_errno(error, "ibv_fork_init");
    auto device = Device::open(find_interfaces(), index, observer);
    if (!device.ok()) return device.status();
    return std::unique_ptr<backend::Device>(std::move(*device));
} catch (const std::bad_alloc&) {
    return Status(Code::NoResources, "out of memory");
} catch (const std::system_error& error) {
    return Status::from_errno(error.code().value(), "devices of the system, or a thread");
}

Result<std::uint32_t> Provider::find(std::string_view device) noexcept try {
    const auto interfaces = find_interfaces();
    const auto found = std::ranges::find_if(interfaces, [device](const Interface& interface) {
        return name_of(interface) == device || interface.rdma_device == device;
    });
    if (found == interfaces.end()) return Status(Code::InvalidParameter, "no RDMA device has that name");
    return static_cast<std::uint32_t>(found - interfaces.begin());
} catch (const std::bad_alloc&) {
    return Status(Code::NoResources, "out of memory");
} catch (const std::system_error& error) {
    return Status::from_errno(error.code().value(), "devices of the system");
}

Result<std::uint32_t> Provider::route_to(const HostAddress& host) noexcept try {
    const auto source = find_source(host);
    if (!source.ok()) return source.status();
    const auto interfaces = find_interfaces();
    const auto found = std::ranges::find(interfaces, source.value(), &Interface::host);
    if (found == interfaces.end()) return Status(Code::Unreachable, "the way to the host begins at no RDMA device");
    return static_cast<std::uint32_t>(found - interfaces.begin());
} catch (const std::bad_alloc&) {
    return Status(Code::NoResources, "out of memory");
} catch (const std::system_error& error) {
    return Status::from_errno(error.code().value(), "devices of the system");
}

backend::Provider* verbs_provider() noexcept {
    static Provider provider;
    return &provider;
}

}  // namespace viaduct::verbs
