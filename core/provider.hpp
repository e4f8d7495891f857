// SPDX-License-Identifier: BSD-3-Clause
// The backends of this build, and which of them is used. For front-ends, tools and tests.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/backend.hpp"
#include "viaduct/detail/export.hpp"
#include "viaduct/device.hpp"

namespace viaduct {

/// A device, whether open or not.
struct DeviceId {
    backend::Provider* provider = nullptr;
    std::uint32_t number = 0;

    friend bool operator==(const DeviceId&, const DeviceId&) noexcept = default;
};

/// A way to a host: one of its addresses, and the device that reaches it.
struct Route {
    DeviceId device;
    HostAddress host;
};

/// The backends in order of preference.
VIADUCT_EXPORT std::span<backend::Provider* const> providers() noexcept;

/// Those of this build; in backends/providers.cpp.
std::span<backend::Provider* const> built_in_providers() noexcept;

/// Replaces the backends, for tests; an empty list restores those of the build. The list must exist as long as it is
/// used. No other thread may use the core during the call.
VIADUCT_EXPORT void use_providers(std::span<backend::Provider* const> list) noexcept;

/// The provider with this name; if the name is empty, the first one that has a device. InvalidParameter: there is none.
/// NoResources: the devices could not be counted.
VIADUCT_EXPORT Result<backend::Provider*> find_provider(std::string_view name) noexcept;

/// The provider that has a device with this name. Errors as find_provider().
VIADUCT_EXPORT Result<backend::Provider*> find_provider_of(std::string_view device) noexcept;

/// The provider of devices that are selected by number: the one that VIADUCT_BACKEND names, otherwise the one of
/// VIADUCT_DEVICE, otherwise the first one that has a device. InvalidParameter: the variables name none. NoResources:
/// as find_provider().
VIADUCT_EXPORT Result<backend::Provider*> selected_provider() noexcept;

/// The device of VIADUCT_DEVICE, or device 0 of the selected provider. Errors as selected_provider().
VIADUCT_EXPORT Result<DeviceId> default_device() noexcept;

/// The device with this name. If one of the variables is set, only the selected provider is searched, otherwise all
/// are, in order of preference. InvalidParameter: there is none. NoResources: it is not known whether there is one.
VIADUCT_EXPORT Result<DeviceId> find_device(std::string_view name) noexcept;

/// The route to a host with these addresses, which may be this host. The backends are those of find_device(); the first
/// one that reaches any of the addresses is used. Unreachable: there is no route. NoResources: it is not known whether
/// there is one.
VIADUCT_EXPORT Result<Route> find_route(std::span<const HostAddress> hosts) noexcept;

/// As above, but only through devices of this provider.
VIADUCT_EXPORT Result<Route> find_route(std::span<const HostAddress> hosts, backend::Provider& provider) noexcept;

/// The first of the hosts that the provider reaches, for a device that is open. Errors as find_route().
VIADUCT_EXPORT Result<HostAddress> find_reachable(std::span<const HostAddress> hosts,
                                                  backend::Provider& provider) noexcept;

/// The device of an address of this host: of the first backend that has a device with one of these addresses or,
/// otherwise, reaches one of them. Errors as find_route().
VIADUCT_EXPORT Result<DeviceId> find_own_device(std::span<const HostAddress> hosts) noexcept;

/// Opens a device of the given provider. Errors and ownership as Device::open().
VIADUCT_EXPORT Result<std::shared_ptr<Device>> open_device(backend::Provider& provider, std::uint32_t index,
                                                           DeviceObserver* observer = nullptr);
inline Result<std::shared_ptr<Device>> open_device(const DeviceId& id, DeviceObserver* observer = nullptr) {
    return open_device(*id.provider, id.number, observer);
}

}  // namespace viaduct
