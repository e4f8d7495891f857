// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/context.hpp"

#include <algorithm>
#include <array>

#include "api/rpma/address.hpp"
#include "api/rpma/log.hpp"
#include "core/base/fork.hpp"
#include "core/base/internals.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::rpma {
namespace {

constexpr std::size_t max_devices = 64;

/// Programs pass contexts on without reading them. This is larger than stock contexts, so that a program that does read
/// one finds zeros.
struct alignas(64) Context {
    std::array<std::byte, 1024> zeros;
};
std::array<Context, max_devices> contexts{};

/// The devices that contexts refer to. A context keeps its device until the process ends.
struct Table {
    struct Entry {
        DeviceId id;
        std::weak_ptr<Device> device;
    };

    /// Returns the place of a device, or the number of contexts if there is no room.
    std::size_t place_of(const DeviceId& id) VIADUCT_REQUIRES(mutex) {
        const auto end = entries.begin() + static_cast<std::ptrdiff_t>(used);
        const auto place =
            static_cast<std::size_t>(std::ranges::find(entries.begin(), end, id, &Entry::id) - entries.begin());
        if (place == used && used < entries.size()) entries[used++].id = id;
        return place;
    }

    /// In a forked child: forgets the devices of the parent.
    static void forget_all(void* table) noexcept {
        auto& own = *static_cast<Table*>(table);
        own.mutex.assume_held();
        for (Entry& entry : own.entries) entry.device.reset();
    }

    ProcessMutex mutex{forget_all, this};
    std::array<Entry, max_devices> entries VIADUCT_GUARDED_BY(mutex);
    std::size_t used VIADUCT_GUARDED_BY(mutex) = 0;
};

Table& table() {
    static auto& table = *new Table;  // never destroyed: threads may use it while the process exits
    return table;
}

Result<ibv_context*> context_of(const DeviceId& id) {
    const LockGuard lock(table().mutex);
    const std::size_t place = table().place_of(id);
    if (place == max_devices) return Status(Code::NoResources, "too many devices");
    return reinterpret_cast<ibv_context*>(&contexts[place]);
}

int get_context(const Result<DeviceId>& device, ibv_context** context) {
    if (!device.ok()) return failed(device.status());
    const auto found = context_of(device.value());
    if (!found.ok()) return failed(found.status());
    *context = found.value();
    return 0;
}

}  // namespace

std::optional<DeviceId> device_of(const ibv_context* context) noexcept {
    for (std::size_t place = 0; place < contexts.size(); ++place) {
        if (static_cast<const void*>(&contexts[place]) != context) continue;
        const LockGuard lock(table().mutex);
        if (place < table().used) return table().entries[place].id;
    }
    return std::nullopt;
}

Result<std::shared_ptr<Device>> open_device(const DeviceId& id) {
    const LockGuard lock(table().mutex);
    const std::size_t place = table().place_of(id);
    if (place == max_devices) return Status(Code::NoResources, "too many devices");
    auto& open = table().entries[place].device;
    if (auto device = open.lock()) return device;
    auto device = viaduct::open_device(id);  // completions report the same errors as its asynchronous events
    if (!device.ok()) return device;
    Internals::set_api(**device, "librpma");
    open = *device;
    return device;
}

}  // namespace viaduct::rpma

using namespace viaduct;
using namespace viaduct::rpma;

int rpma_utils_get_ibv_context(const char* addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context** ibv_ctx_ptr) {
    return Entry::run(nullptr, [&] {
        const int wanted = type;
        const bool local = wanted == RPMA_UTIL_IBV_CONTEXT_LOCAL;
        if (!failure::require({{addr != nullptr, "addr is NULL"},
                               {ibv_ctx_ptr != nullptr, "ibv_ctx_ptr is NULL"},
                               {local || wanted == RPMA_UTIL_IBV_CONTEXT_REMOTE, "type is unknown"}}))
            return RPMA_E_INVAL;
        return get_context(local ? find_local_device(addr) : find_device_towards(addr), ibv_ctx_ptr);
    });
}

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context* ibv_ctx, int* is_odp_capable) {
    return Entry::run(ibv_ctx, [&] {
        const auto id = device_of(ibv_ctx);
        if (!failure::require({{id.has_value(), no_context}, {is_odp_capable != nullptr, "is_odp_capable is NULL"}}))
            return RPMA_E_INVAL;
        const auto device = rpma::open_device(*id);
        if (!device.ok()) return failed(device.status());
        *is_odp_capable = device.value()->attributes().capabilities.pages_on_demand;
        return 0;
    });
}
