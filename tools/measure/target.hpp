// SPDX-License-Identifier: BSD-3-Clause
// What users type: HOST[:SERVICE] and sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/provider.hpp"
#include "tools/measure/api.hpp"

namespace viaduct::measure {

inline constexpr std::string_view default_service = "7471";

/// A number up to 65535 is a two-byte big-endian discriminator (the port or qualifier of the other interfaces); other
/// text stands for its bytes. Throws Error where the text is empty, too long, a number out of range, or contains a
/// colon or a blank, which is a mistake more often than a name.
Service parse_service(std::string_view text);

struct Target {
    std::string host;
    std::string service;
    bool has_service = false;  ///< false: it is the default one

    std::string text() const { return (host.find(':') == host.npos ? host : "[" + host + "]") + ":" + service; }
};

/// Splits HOST[:SERVICE], where IPv6 addresses are in brackets. Throws Error.
Target parse_target(std::string_view text);

/// What a server listens on: SERVICE, ADDRESS or HOST:SERVICE, where an address is numeric or "localhost". The host is
/// empty where only a service is given. Throws Error, also where the text can only be a mistyped address.
Target parse_listen_target(std::string_view text);

/// The address of a host, by name or in dotted form. What leads to the loopback interface means `local_host`, the
/// device in use. Devices of the loopback backend are all named within 127.0.0.0/8: for them an address of that network
/// stays as it is typed, and any other name or address of this host means `local_host`. Throws Error.
Host resolve_host(const std::string& host, const Host& local_host);

/// The device that the tools use for a host with these addresses, unless they are told another one, and the host as
/// seen from it: the default device for this host, otherwise the one of find_route(). Errors as find_route(). Throws
/// Error.
Result<Route> find_way(const std::string& host, const std::vector<Host>& addresses);

/// The whole address of a target, as seen from a device.
Address resolve(const Target& target, const DeviceInfo& device);

std::string text_of(const Host& host);

/// A number of bytes with an optional K, M or G (powers of 1024). Throws Error.
std::uint64_t parse_size(std::string_view text);

/// Sizes such as "8,64,4K,1M" or "8..1M" (doubling), each at least 1. Throws Error.
std::vector<std::uint32_t> parse_sizes(std::string_view text);

}  // namespace viaduct::measure
