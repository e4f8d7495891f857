// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/host_names.hpp"
#include "core/base/numbers.hpp"
#include "core/explain.hpp"

namespace viaduct::rpma {
namespace {

bool is_any(const HostAddress& address) noexcept {
    return !address.empty() && std::ranges::all_of(address.span(), [](std::uint8_t byte) { return byte == 0; });
}

std::optional<std::uint16_t> port_of(const char* text) {
    if (const auto port = whole_number<std::uint16_t>(text)) return port;
    std::array<char, 1024> strings{};
    servent entry{};
    servent* found = nullptr;
    getservbyname_r(text, "tcp", &entry, strings.data(), strings.size(), &found);
    if (found == nullptr) return std::nullopt;
    return ntohs(static_cast<std::uint16_t>(entry.s_port));
}

/// Unreachable: the text stands for no host.
Result<std::vector<HostAddress>> addresses_of(const char* text) {
    auto addresses = resolve_host(text);
    if (addresses.empty()) return Status(Code::Unreachable, explain("the host \"%s\" is unknown", text));
    return addresses;
}

/// Returns the addresses of this host that the text stands for. Unreachable: there are none.
Result<std::vector<HostAddress>> own_addresses(const char* text, std::vector<HostAddress> addresses) {
    std::erase_if(addresses, [](const HostAddress& address) { return !is_this_host({address}); });
    if (addresses.empty()) return Status(Code::Unreachable, explain("%s is not an address of this host", text));
    return addresses;
}

}  // namespace

Result<DeviceId> find_local_device(const char* text) {
    auto addresses = addresses_of(text);
    if (!addresses.ok()) return addresses.status();
    if (std::ranges::any_of(*addresses, is_any)) return default_device();
    return own_addresses(text, std::move(*addresses)).and_then([](const auto& own) { return find_own_device(own); });
}

Result<HostAddress> find_local_host(const char* text, const DeviceId& id, const DeviceAttributes& attributes) {
    auto addresses = addresses_of(text);
    if (!addresses.ok()) return addresses.status();
    for (const HostAddress& host : attributes.local_hosts)
        if (std::ranges::find(*addresses, host) != addresses->end()) return host;
    if (std::ranges::any_of(*addresses, is_any)) return attributes.host;
    return own_addresses(text, std::move(*addresses))
        .and_then([&](const auto& own) { return find_route(own, *id.provider); })
        .and_then([&](const Route& route) { return Result(attributes.local_hosts.at(route.device.number)); });
}

Result<DeviceId> find_device_towards(const char* text) {
    return addresses_of(text)
        .and_then([](const auto& hosts) { return find_route(hosts); })
        .and_then([](const Route& route) { return Result(route.device); });
}

Result<HostAddress> find_host(const char* text, backend::Provider& provider) {
    return addresses_of(text).and_then([&](const auto& hosts) { return find_reachable(hosts, provider); });
}

Result<Bytes<Address::max_service>> find_service(const char* port) {
    const auto number = port_of(port);
    if (!number)
        return Status(Code::InvalidParameter,
                      explain("the port \"%s\" is neither a number from 0 to 65535 nor the name of a service", port));
    return service_of(*number);
}

}  // namespace viaduct::rpma
