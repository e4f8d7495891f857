// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "core/base/host_names.hpp"
#include "core/device.hpp"

namespace viaduct::rpma {
namespace {

bool is_any(const HostAddress& address) noexcept {
    return !address.empty() && std::ranges::all_of(address.span(), [](std::uint8_t byte) { return byte == 0; });
}

std::optional<std::uint16_t> port_of_name(const char* name) {
    std::array<char, 1024> strings{};
    servent entry{};
    servent* found = nullptr;
    getservbyname_r(name, "tcp", &entry, strings.data(), strings.size(), &found);
    if (found == nullptr) return std::nullopt;
    return ntohs(static_cast<std::uint16_t>(entry.s_port));
}

std::optional<std::uint16_t> port_of(const char* text) {
    const char* const end = text + std::strlen(text);
    std::uint16_t port = 0;
    const auto [rest, error] = std::from_chars(text, end, port);
    if (error == std::errc() && rest == end) return port;
    return port_of_name(text);
}

Result<Route> first_route(const std::vector<HostAddress>& hosts) {
    Status failure(Code::Unreachable, "invalid address");
    for (const HostAddress& host : hosts) {
        const auto device = Device::route_to(host);
        if (device.ok()) return Route{.host = host, .device = device.value()};
        failure = device.status();
    }
    return failure;
}

}  // namespace

Result<HostAddress> find_local_host(const char* text, const DeviceAttributes& device) {
    const auto addresses = resolve_host(text);
    for (const HostAddress& host : device.local_hosts)
        if (std::ranges::find(addresses, host) != addresses.end()) return host;
    if (std::ranges::any_of(addresses, is_any)) return device.host;
    if (!is_this_host(addresses)) return Status(Code::Unreachable, "the address does not belong to this host");
    const auto route = first_route(addresses);
    if (!route.ok()) return route.status();
    return device.local_hosts.at(route.value().device);
}

Result<Route> find_route(const char* text) { return first_route(resolve_host(text)); }

Result<Bytes<Address::max_service>> find_service(const char* port) {
    const auto number = port_of(port);
    if (!number) return Status(Code::InvalidParameter, "the port is neither a number nor a service name");
    return service_of(*number);
}

}  // namespace viaduct::rpma
