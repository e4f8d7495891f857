// SPDX-License-Identifier: BSD-3-Clause
#include "core/provider.hpp"

#include <algorithm>
#include <cstdlib>

namespace viaduct {
namespace {

std::span<backend::Provider* const> replacement;

/// The value of an environment variable; empty if it is not set.
std::string_view setting(const char* name) noexcept {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// Returns the first provider for which `predicate`, which returns a Result<bool>, is true. An error ends the search.
template <class Predicate>
Result<backend::Provider*> find_if(Predicate predicate) noexcept {
    for (backend::Provider* provider : providers()) {
        const Result<bool> fits = predicate(*provider);
        if (!fits.ok()) return fits.status();
        if (fits.value()) return provider;
    }
    return Status(Code::InvalidParameter, "no suitable backend");
}

/// Returns the selected provider if the environment selects one, otherwise null: all may be used.
Result<backend::Provider*> only_provider() noexcept {
    if (setting("VIADUCT_BACKEND").empty() && setting("VIADUCT_DEVICE").empty()) return nullptr;
    return selected_provider();
}

/// Returns the first success of `search` with the providers that may be used. Lack of resources ends the search, so
/// that it does not change which device is found.
template <class Found, class Search>
Result<Found> search_providers(Search search, Status failure) noexcept {
    const auto only = only_provider();
    if (!only.ok()) return only.status();
    for (backend::Provider* provider : providers()) {
        if (only.value() != nullptr && only.value() != provider) continue;
        const Result<Found> found = search(*provider);
        if (found.ok() || found.status().code() == Code::NoResources) return found;
        failure = found.status();
    }
    return failure;
}

}  // namespace

std::span<backend::Provider* const> providers() noexcept {
    return replacement.empty() ? built_in_providers() : replacement;
}

void use_providers(std::span<backend::Provider* const> list) noexcept { replacement = list; }

Result<backend::Provider*> find_provider(std::string_view name) noexcept {
    return find_if([name](backend::Provider& provider) -> Result<bool> {
        if (!name.empty()) return provider.name() == name;
        const auto count = provider.device_count();
        if (!count.ok()) return count.status();
        return count.value() != 0;
    });
}

Result<backend::Provider*> find_provider_of(std::string_view device) noexcept {
    return find_if([device](backend::Provider& provider) -> Result<bool> {
        const Status found = provider.find(device).status();
        if (found.code() == Code::NoResources) return found;
        return found.ok();
    });
}

Result<backend::Provider*> selected_provider() noexcept {
    const std::string_view backend = setting("VIADUCT_BACKEND");
    const std::string_view device = setting("VIADUCT_DEVICE");
    const bool by_device = backend.empty() && !device.empty();
    const auto provider = by_device ? find_provider_of(device) : find_provider(backend);
    if (provider.status().code() != Code::InvalidParameter) return provider;
    return Status(Code::InvalidParameter, by_device ? "VIADUCT_DEVICE: no such device on this machine"
                                                    : "VIADUCT_BACKEND: no such backend in this build");
}

Result<DeviceId> default_device() noexcept {
    const std::string_view device = setting("VIADUCT_DEVICE");
    if (!device.empty()) return find_device(device);
    const auto provider = selected_provider();
    if (!provider.ok()) return provider.status();
    return DeviceId{provider.value(), 0};
}

Result<DeviceId> find_device(std::string_view name) noexcept {
    const auto search = [name](backend::Provider& provider) -> Result<DeviceId> {
        const auto number = provider.find(name);
        if (!number.ok()) return number.status();
        return DeviceId{&provider, number.value()};
    };
    return search_providers<DeviceId>(search, {Code::InvalidParameter, "no device with that name"});
}

Result<DeviceId> find_own_device(std::span<const HostAddress> hosts) noexcept {
    const auto search = [hosts](backend::Provider& provider) -> Result<DeviceId> {
        const auto devices = provider.devices();
        if (devices.status().code() == Code::NoResources) return devices.status();
        for (std::uint32_t i = 0; devices.ok() && i < devices.value().size(); ++i)
            if (std::ranges::find(hosts, devices.value()[i].host) != hosts.end()) return DeviceId{&provider, i};
        const auto route = find_route(hosts, provider);
        if (!route.ok()) return route.status();
        return route.value().device;
    };
    return search_providers<DeviceId>(search, {Code::Unreachable, "no backend"});
}

Result<Route> find_route(std::span<const HostAddress> hosts) noexcept {
    const auto search = [hosts](backend::Provider& provider) { return find_route(hosts, provider); };
    return search_providers<Route>(search, {Code::Unreachable, "no backend"});
}

Result<Route> find_route(std::span<const HostAddress> hosts, backend::Provider& provider) noexcept {
    Status failure(Code::Unreachable, "invalid address");
    for (const HostAddress& host : hosts) {
        const auto number = provider.route_to(host);
        if (number.ok()) return Route{{&provider, number.value()}, host};
        failure = number.status();
        if (failure.code() == Code::NoResources) break;
    }
    return failure;
}

}  // namespace viaduct
