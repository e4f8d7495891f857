// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/api.hpp"

#include <thread>

#include "tools/measure/core_api.hpp"
#include "tools/measure/dat_api.hpp"
#include "tools/measure/error.hpp"
#include "tools/measure/rpma_api.hpp"
#include "tools/measure/vipl_api.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/device.hpp"

namespace viaduct::measure {
namespace {

/// The device that stands for a number.
std::uint32_t choose(std::uint32_t device) {
    const auto counted = Device::count();
    if (!counted.ok()) throw Error(counted.status().where());
    const std::uint32_t count = counted.value();
    if (count == 0) throw Error("the " + backend_name() + " backend found no device");
    if (device >= count)
        throw Error("no device " + std::to_string(device) + ": the " + backend_name() + " backend has " +
                    std::to_string(count));
    if (device != 0) return device;
    const auto chosen = Device::default_number();
    if (!chosen.ok()) throw Error("VIADUCT_DEVICE: " + std::string(chosen.status().where()));
    return chosen.value();
}

}  // namespace

std::unique_ptr<Api> open_api(ApiKind kind, std::uint32_t device) {
    const std::uint32_t chosen = choose(device);
    switch (kind) {
        case ApiKind::Vipl: return std::make_unique<ViplApi>(chosen);
        case ApiKind::Rpma: return std::make_unique<RpmaApi>(chosen);
        case ApiKind::Dat: return std::make_unique<DatApi>(chosen);
        case ApiKind::Core: return std::make_unique<CoreApi>(chosen);
    }
    throw Error("unknown programming interface");
}

std::string backend_name() {
    const auto name = Device::backend_name();
    return name.ok() ? std::string(name.value()) : "none";
}

void connect_patiently(Link& link, const Address& remote, Timeout timeout, Timeout patience) {
    const auto deadline = Deadline::after(patience);
    for (int attempt = 0;; ++attempt) {
        try {
            return link.connect(remote, timeout);
        } catch (const NoListener&) {
            if (deadline.passed()) throw;
        }
        // A server between two waits is back within microseconds; one that is starting takes longer.
        constexpr int quick_attempts = 50;
        if (attempt < quick_attempts)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace viaduct::measure
