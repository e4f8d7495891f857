// SPDX-License-Identifier: BSD-3-Clause
// The entry point of the verbs backend.
#include <algorithm>
#include <cerrno>

#include "backends/providers.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/interfaces.hpp"
#include "backends/verbs/device.hpp"
#include "backends/verbs/interfaces.hpp"
#include "backends/verbs/local_listeners.hpp"
#include "backends/verbs/owners.hpp"
#include "core/base/socket_address.hpp"

namespace viaduct::verbs {
namespace {

/// Returns the local address that the connection manager uses for connections to a host.
Result<HostAddress> find_source(const HostAddress& host) noexcept {
    SocketAddress to(host, 0);
    if (!to.valid()) return Status(Code::Unreachable, "no IPv4 or IPv6 address");
    const auto channel = create_event_channel();
    if (!channel.ok()) return channel.status();
    rdma_event_channel& events = *channel.value();
    const auto id = create_id(&events);
    if (!id.ok()) return id.status();
    if (completed(events, RDMA_CM_EVENT_ADDR_RESOLVED,
                  rdma_resolve_addr(id.value().get(), nullptr, to.get(), resolution_ms)) != 0)
        return Status(Code::Unreachable, "no route to the host", errno);
    return host_of(rdma_get_local_addr(id.value().get()));
}

/// Returns the number of the first matching device, or `none`.
template <class Predicate>
Result<std::uint32_t> number_of(const std::vector<Interface>& interfaces, Predicate is_meant, const Status& none) {
    const auto found = std::ranges::find_if(interfaces, is_meant);
    if (found == interfaces.end()) return none;
    return static_cast<std::uint32_t>(found - interfaces.begin());
}

Result<std::uint32_t> number_of(const std::vector<Interface>& interfaces, const HostAddress& source) {
    return number_of(interfaces, [&source](const Interface& one) { return one.host == source; },
                     {Code::Unreachable, "the route to the host does not use an RDMA device"});
}

/// The devices are the addresses that find_interfaces() returns at the time of the call.
class Provider final : public backend::Provider {
public:
    std::string_view name() const noexcept override { return "verbs"; }

    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override {
        return support::make_as<backend::Device>([&] { return Device::open(find_interfaces(), index, observer); });
    }

    Result<std::uint32_t> find(std::string_view device) noexcept override {
        return support::guarded([device] {
            return number_of(
                find_interfaces(),
                [device](const Interface& one) { return name_of(one) == device || one.rdma_device == device; },
                {Code::InvalidParameter, "no RDMA device with that name"});
        });
    }

    /// The connection manager takes seconds if the host does not answer. Only hosts to which the system uses the
    /// network interface of an RDMA device are worth that.
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override {
        return support::guarded([&host]() -> Result<std::uint32_t> {
            const auto interfaces = find_interfaces();
            if (interfaces.empty()) return Status(Code::Unreachable, "no RDMA device");
            const auto expected = support::source_for(host);
            if (!expected.ok()) return expected.status();
            const auto number = number_of(interfaces, expected.value());
            if (!number.ok() || expected.value() == host) return number;  // the device of this host's address
            const auto source = find_source(host);
            if (!source.ok()) return source.status();
            return number_of(interfaces, source.value());
        });
    }

    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override {
        return support::guarded([]() -> Result<std::vector<backend::DeviceSummary>> {
            std::vector<backend::DeviceSummary> devices;
            for (const Interface& one : find_interfaces()) devices.push_back({name_of(one), one.host});
            return devices;
        });
    }

    Result<std::vector<backend::ProcessListener>> process_listeners(const Service* service) const noexcept override {
        return support::guarded([service]() -> Result<std::vector<backend::ProcessListener>> {
            if (find_interfaces().empty()) return Status(Code::Unsupported, "no RDMA device");
            return find_listeners(service);
        });
    }
};

}  // namespace

backend::Provider& provider() noexcept {
    static Provider instance;
    return instance;
}

}  // namespace viaduct::verbs
