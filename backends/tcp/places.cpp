// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "backends/support/interfaces.hpp"
#include "core/base/settings.hpp"

namespace viaduct::tcp {
namespace {

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

std::vector<backend::DeviceSummary> find_places() {
    auto found = support::find_network_addresses();
    keep_wanted(found);
    // IPv4 first, and this host's own addresses last, because devices are for other hosts.
    std::ranges::stable_sort(found, {}, [](const support::NetworkAddress& address) {
        return std::pair(address.host.size(), address.loopback);
    });
    std::vector<backend::DeviceSummary> places;
    for (const support::NetworkAddress& address : found) {
        std::string name = fmt::format("viaduct-{}{}", address.interface, address.host.size() == 4 ? "" : "-v6");
        const auto same = [&](const backend::DeviceSummary& place) { return place.name == name; };
        for (int number = 2; std::ranges::any_of(places, same); ++number)
            name = fmt::format("viaduct-{}{}.{}", address.interface, address.host.size() == 4 ? "" : "-v6", number);
        places.push_back({std::move(name), address.host});
    }
    return places;
}

}  // namespace viaduct::tcp
