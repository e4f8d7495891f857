// SPDX-License-Identifier: BSD-3-Clause
// The backend for ordinary networks: sockets and TLS.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "backends/providers.hpp"
#include "backends/software/device.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/interfaces.hpp"
#include "backends/tcp/probe.hpp"
#include "backends/tcp/transport.hpp"
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

/// The addresses of this host at which devices can be opened, in order of device numbers. Throws std::bad_alloc and
/// std::system_error.
std::vector<backend::DeviceSummary> find_places() {
    auto found = support::find_network_addresses();
    keep_wanted(found);
    // IPv4 first, and this host's own addresses last, because devices are for other hosts.
    std::ranges::stable_sort(found, {}, [](const support::NetworkAddress& address) {
        return std::pair(address.host.size(), address.loopback);
    });
    const auto name_of = [](const support::NetworkAddress& address) {
        return fmt::format("viaduct-{}{}", address.interface, address.host.size() == 4 ? "" : "-v6");
    };
    std::vector<backend::DeviceSummary> places;
    const auto choose = [&places](backend::DeviceSummary& place, std::string name) {
        const auto same = [&](const backend::DeviceSummary& other) { return other.name == name; };
        if (std::ranges::none_of(places, same)) place.name = std::move(name);
    };
    // Those of first addresses before the numbered ones: eth0.2 may be an interface.
    for (const support::NetworkAddress& address : found) {
        places.push_back({"", address.host});
        choose(places.back(), name_of(address));
    }
    for (std::size_t i = 0; i < places.size(); ++i)
        for (int number = 2; places[i].name.empty(); ++number)
            choose(places[i], fmt::format("{}.{}", name_of(found[i]), number));
    return places;
}

class Provider final : public backend::Provider {
public:
    std::string_view name() const noexcept override { return "tcp"; }

    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override {
        return support::make_as<backend::Device>([&]() -> Result<std::unique_ptr<software::Device>> {
            const auto places = find_places();
            if (index >= places.size()) return Status(Code::InvalidParameter, "no such network interface");
            const HostAddress& host = places[index].host;
            auto node = nodes_.open(host, [&host] { return Transport::create(host); });
            if (!node.ok()) return node.status();
            DeviceAttributes attributes = software::attributes_of(places[index].name, host);
            attributes.capabilities.shares_services = false;
            attributes.capabilities.own_user_only = false;
            for (const backend::DeviceSummary& place : places) attributes.local_hosts.push_back(place.host);
            return std::make_unique<software::Device>(std::move(*node), std::move(attributes), observer);
        });
    }

    Result<std::uint32_t> find(std::string_view device) noexcept override {
        return find_if([device](const backend::DeviceSummary& place) { return place.name == device; },
                       {Code::InvalidParameter, "no network interface with that name"});
    }

    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override {
        const auto source = support::source_for(host);
        if (!source.ok()) return source.status();
        const bool all = wanted_interfaces().empty();
        return find_if([&source](const backend::DeviceSummary& place) { return place.host == source.value(); },
                       {Code::Unreachable, all ? "no network interface with the route"
                                               : "VIADUCT_TCP_INTERFACES excludes the interface of the route"});
    }

    Status reaches(const HostAddress& host) noexcept override { return support::source_for(host).status(); }

    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override {
        return support::guarded([]() -> Result<std::vector<backend::DeviceSummary>> { return find_places(); });
    }

    Result<std::vector<backend::ListenerSummary>> listeners(const char* tables,
                                                            const Service* service) const noexcept override {
        return support::guarded([&]() -> Result<std::vector<backend::ListenerSummary>> {
            std::vector<backend::ListenerSummary> found;
            for (const char* table : {"/tcp", "/tcp6"}) add_listeners(std::string(tables) + table, service, found);
            return found;
        });
    }

    Status probe(std::uint32_t index, const Address& listener, const Deadline& deadline) noexcept override {
        return support::guarded([&]() -> Status {
            const auto places = find_places();
            if (index >= places.size()) return {Code::InvalidParameter, "no such network interface"};
            return tcp::probe(places[index].host, listener, deadline);
        });
    }

private:
    template <class Predicate>
    static Result<std::uint32_t> find_if(Predicate predicate, const Status& otherwise) noexcept {
        return support::guarded([&]() -> Result<std::uint32_t> {
            const auto places = find_places();
            for (std::uint32_t index = 0; index < places.size(); ++index)
                if (predicate(places[index])) return index;
            return otherwise;
        });
    }

    software::Nodes nodes_;
};

}  // namespace

backend::Provider& provider() noexcept {
    static Provider instance;
    return instance;
}

}  // namespace viaduct::tcp
