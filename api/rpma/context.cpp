// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/context.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "api/rpma/address.hpp"
#include "api/rpma/log.hpp"

namespace viaduct::rpma {
namespace {

constexpr std::size_t max_devices = 64;

/// Programs pass contexts on without reading them. This is larger than stock contexts, so that a program that does read
/// one finds zeros.
struct alignas(64) Context {
    std::array<std::byte, 1024> zeros;
};
std::array<Context, max_devices> contexts{};

/// Completions report the same errors as the asynchronous events of devices.
class NoObserver final : public DeviceObserver {
    void on_async_event(const AsyncEvent&) noexcept override {}
};
NoObserver no_observer;

struct OpenDevices {
    std::mutex mutex;  // guards the members below
    std::array<std::weak_ptr<Device>, max_devices> devices;
};

}  // namespace

std::optional<std::uint32_t> device_number(const ibv_context* context) noexcept {
    for (std::uint32_t number = 0; number < contexts.size(); ++number)
        if (static_cast<const void*>(&contexts[number]) == context) return number;
    return std::nullopt;
}

Result<std::shared_ptr<Device>> open_device(std::uint32_t number) {
    if (number >= max_devices) return Status(Code::InvalidParameter, "no such device");
    static auto& open = *new OpenDevices;  // never destroyed: threads may use it while the process exits
    const std::lock_guard lock(open.mutex);
    if (auto device = open.devices[number].lock()) return device;
    auto device = Device::open(number, no_observer);
    if (device.ok()) open.devices[number] = *device;
    return device;
}

}  // namespace viaduct::rpma

using namespace viaduct;
using namespace viaduct::rpma;

namespace {

Result<std::uint32_t> find_local_device(const char* address) {
    auto first = open_device(0);
    if (!first.ok()) return first.status();
    const DeviceAttributes& attributes = (*first)->attributes();
    const auto host = find_local_host(address, attributes);
    if (!host.ok()) return host.status();
    return static_cast<std::uint32_t>(std::ranges::find(attributes.local_hosts, host.value()) -
                                      attributes.local_hosts.begin());
}

Result<std::uint32_t> find_device_towards(const char* address) {
    const auto route = find_route(address);
    if (!route.ok()) return route.status();
    return route.value().device;
}

int get_context(const Result<std::uint32_t>& number, ibv_context** context) {
    if (!number.ok()) return failed(number.status());
    *context = reinterpret_cast<ibv_context*>(&contexts.at(number.value()));
    return 0;
}

}  // namespace

int rpma_utils_get_ibv_context(const char* addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context** ibv_ctx_ptr) {
    const int wanted = type;
    if (addr == nullptr || ibv_ctx_ptr == nullptr) return RPMA_E_INVAL;
    if (wanted != RPMA_UTIL_IBV_CONTEXT_LOCAL && wanted != RPMA_UTIL_IBV_CONTEXT_REMOTE) return RPMA_E_INVAL;
    const auto find = wanted == RPMA_UTIL_IBV_CONTEXT_LOCAL ? find_local_device : find_device_towards;
    return guarded([&] { return get_context(find(addr), ibv_ctx_ptr); });
}

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context* ibv_ctx, int* is_odp_capable) {
    const auto number = device_number(ibv_ctx);
    if (!number || is_odp_capable == nullptr) return RPMA_E_INVAL;
    return guarded([&] {
        const auto device = open_device(*number);
        if (!device.ok()) return failed(device.status());
        *is_odp_capable = device.value()->attributes().capabilities.pages_on_demand;
        return 0;
    });
}
