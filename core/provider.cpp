// SPDX-License-Identifier: BSD-3-Clause
#include "core/provider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <string>

#include "core/base/address_text.hpp"
#include "core/base/settings.hpp"
#include "core/explain.hpp"
#include "core/log.hpp"

namespace viaduct {
namespace {

std::span<backend::Provider* const> replacement;

/// Returns the first provider for which `predicate`, which returns a Result<bool>, is true. An error ends the search.
Result<backend::Provider*> find_if(auto predicate) noexcept {
    for (backend::Provider* provider : providers()) {
        const Result<bool> fits = predicate(*provider);
        if (!fits.ok()) return fits.status();
        if (fits.value()) return provider;
    }
    return Status(Code::InvalidParameter, "no suitable backend");
}

/// The value of VIADUCT_BACKEND. The backend tcp has replaced ofi.
std::string_view wanted_backend() noexcept {
    const std::string_view name = setting("VIADUCT_BACKEND");
    if (name != "ofi") return name;
    static std::atomic<bool> noticed = false;
    if (!noticed.exchange(true)) log(LogLevel::Warning, "VIADUCT_BACKEND=ofi means tcp now");
    return "tcp";
}

/// Returns the selected provider if the environment selects one, otherwise null: all may be used.
Result<backend::Provider*> only_provider() noexcept {
    if (setting("VIADUCT_BACKEND").empty() && setting("VIADUCT_DEVICE").empty()) return nullptr;
    return selected_provider();
}

/// Returns the first success of `search` with the providers that may be used. Lack of resources ends the search, so
/// that it does not change which device is found. Otherwise the failure names what was looked for, and has the reasons
/// of all providers.
template <class Found, class Search>
Result<Found> search_providers(Search search, Code otherwise, const char* what, const Reason& wanted) noexcept {
    const auto only = only_provider();
    if (!only.ok()) return only.status();
    Status failure(otherwise, "");
    std::array<char, 256> reasons{};  // not text of explain(), which the providers overwrite
    std::size_t used = 0;
    for (backend::Provider* provider : providers()) {
        if (only.value() != nullptr && only.value() != provider) continue;
        const Result<Found> found = search(*provider);
        if (found.ok() || found.status().code() == Code::NoResources) return found;
        failure = found.status();
        const std::string_view name = provider->name();
        const int added =
            std::snprintf(reasons.data() + used, reasons.size() - used, "%s%.*s: %s", used == 0 ? "" : "; ",
                          static_cast<int>(name.size()), name.data(), failure.where());
        used = std::min(used + static_cast<std::size_t>(std::max(added, 0)), reasons.size() - 1);
    }
    return Status(failure.code(),
                  explain("%s %s: %s%s", what, wanted.c_str(), used == 0 ? "no backend" : reasons.data(),
                          only.value() != nullptr ? " (VIADUCT_BACKEND or VIADUCT_DEVICE excludes others)" : ""),
                  failure.sys_errno());
}

Reason text_of(std::span<const HostAddress> hosts) noexcept {
    return hosts.empty() ? "a host without an address" : text_of(hosts.front()).c_str();
}

void warn_of_backend() noexcept try {
    std::vector<std::string_view> names;
    for (const backend::Provider* provider : providers()) names.push_back(provider->name());
    warn_of_setting("VIADUCT_BACKEND", fmt::format("{}", fmt::join(names, ", ")));
} catch (const std::bad_alloc&) {
    warn_of_setting("VIADUCT_BACKEND", "the name of a backend");
}

/// Lists the devices of the backend that VIADUCT_BACKEND names, otherwise those of all backends.
void warn_of_device() noexcept try {
    const std::string_view only = wanted_backend();
    std::vector<std::string> names;
    for (const backend::Provider* provider : providers()) {
        const auto devices = provider->devices();
        if (!devices.ok() || (!only.empty() && provider->name() != only)) continue;
        for (const backend::DeviceSummary& device : devices.value()) names.push_back(device.name);
    }
    warn_of_setting("VIADUCT_DEVICE", fmt::format("{}", fmt::join(names, ", ")));
} catch (const std::bad_alloc&) {
    warn_of_setting("VIADUCT_DEVICE", "the name of a device");
}

/// The first result of `reach` that is not an error. Lack of resources ends the search.
template <class Found, class Reach>
Result<Found> first_reached(std::span<const HostAddress> hosts, Reach reach) noexcept {
    Status failure(Code::Unreachable, "invalid address");
    for (const HostAddress& host : hosts) {
        const Result<Found> found = reach(host);
        if (found.ok()) return found;
        failure = found.status();
        if (failure.code() == Code::NoResources) break;
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
        return provider.device_count().and_then([](std::uint32_t count) { return Result(count != 0); });
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
    const std::string_view backend = wanted_backend();
    const std::string_view device = setting("VIADUCT_DEVICE");
    const bool by_device = backend.empty() && !device.empty();
    const auto provider = by_device ? find_provider_of(device) : find_provider(backend);
    if (provider.status().code() != Code::InvalidParameter) return provider;
    if (by_device)
        warn_of_device();
    else if (!backend.empty())
        warn_of_backend();
    const std::string_view wanted = by_device ? device : backend;
    return Status(Code::InvalidParameter, explain(by_device ? "VIADUCT_DEVICE=%.*s: no such device on this machine"
                                                            : "VIADUCT_BACKEND=%.*s: no such backend in this build",
                                                  static_cast<int>(wanted.size()), wanted.data()));
}

Result<DeviceId> default_device() noexcept {
    const std::string_view device = setting("VIADUCT_DEVICE");
    if (!device.empty()) {
        const auto found = find_device(device);
        if (found.status().code() != Code::InvalidParameter) return found;
        const Reason why = found.status().where();
        warn_of_device();  // may format other texts
        return Status(Code::InvalidParameter, explain("%s", why.c_str()));
    }
    return selected_provider().and_then([](auto* provider) { return Result(DeviceId{provider, 0}); });
}

Result<DeviceId> find_device(std::string_view name) noexcept {
    const auto search = [name](backend::Provider& provider) {
        return provider.find(name).and_then([&](auto number) { return Result(DeviceId{&provider, number}); });
    };
    const Reason wanted(explain("%.*s", static_cast<int>(name.size()), name.data()));
    return search_providers<DeviceId>(search, Code::InvalidParameter, "no device", wanted);
}

Result<DeviceId> find_own_device(std::span<const HostAddress> hosts) noexcept {
    const auto search = [hosts](backend::Provider& provider) -> Result<DeviceId> {
        const auto devices = provider.devices();
        if (devices.status().code() == Code::NoResources) return devices.status();
        for (std::uint32_t i = 0; devices.ok() && i < devices.value().size(); ++i)
            if (std::ranges::find(hosts, devices.value()[i].host) != hosts.end()) return DeviceId{&provider, i};
        return find_route(hosts, provider).and_then([](const Route& route) { return Result(route.device); });
    };
    return search_providers<DeviceId>(search, Code::Unreachable, "no device for", text_of(hosts));
}

Result<Route> find_route(std::span<const HostAddress> hosts) noexcept {
    const auto search = [hosts](backend::Provider& provider) { return find_route(hosts, provider); };
    return search_providers<Route>(search, Code::Unreachable, "no backend reaches", text_of(hosts));
}

Result<Route> find_route(std::span<const HostAddress> hosts, backend::Provider& provider) noexcept {
    return first_reached<Route>(hosts, [&provider](const HostAddress& host) {
        return provider.route_to(host).and_then([&](auto number) { return Result(Route{{&provider, number}, host}); });
    });
}

Result<HostAddress> find_reachable(std::span<const HostAddress> hosts, backend::Provider& provider) noexcept {
    return first_reached<HostAddress>(hosts, [&provider](const HostAddress& host) {
        const Status status = provider.reaches(host);
        return status.ok() ? Result<HostAddress>(host) : Result<HostAddress>(status);
    });
}

}  // namespace viaduct
