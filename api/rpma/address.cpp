// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "core/host_names.hpp"

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

}  // namespace

Result<std::uint32_t> find_device(const char* host, const DeviceAttributes& device, Side side) {
    const auto addresses = resolve_host(host);
    for (std::uint32_t number = 0; number < device.local_hosts.size(); ++number)
        if (std::ranges::find(addresses, device.local_hosts[number]) != addresses.end()) return number;
    if (is_this_host(addresses) || (side == Side::Passive && std::ranges::any_of(addresses, is_any)))
        return std::uint32_t{0};
    return Status(Code::Unreachable, "the address is not one of this host");
}

Result<Bytes<Address::max_service>> find_service(const char* port) {
    const auto number = port_of(port);
    if (!number) return Status(Code::InvalidParameter, "the port is neither a number nor the name of a service");
    const std::array<std::uint8_t, 2> bytes{static_cast<std::uint8_t>(*number >> 8),
                                            static_cast<std::uint8_t>(*number & 0xFF)};
    return Bytes<Address::max_service>(bytes);
}

}  // namespace viaduct::rpma
