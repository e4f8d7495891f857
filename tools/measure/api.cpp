// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/api.hpp"

#include <cstdlib>
#include <thread>

#include "core/deadline.hpp"
#include "core/device.hpp"
#include "tools/measure/core_api.hpp"
#include "tools/measure/error.hpp"
#include "tools/measure/rpma_api.hpp"
#include "tools/measure/vipl_api.hpp"

namespace viaduct::measure {
namespace {

const backend::Provider* provider_in_force() {
    const char* wanted = std::getenv("VIADUCT_BACKEND");
    return find_provider(wanted == nullptr ? "" : wanted);
}

}  // namespace

std::string_view text_of(ApiKind kind) noexcept {
    switch (kind) {
        case ApiKind::Vipl: return "vipl";
        case ApiKind::Rpma: return "rpma";
        case ApiKind::Core: return "core";
    }
    return "unknown";
}

std::unique_ptr<Api> open_api(ApiKind kind, std::uint32_t device) {
    const backend::Provider* provider = provider_in_force();
    if (provider == nullptr) {
        const char* wanted = std::getenv("VIADUCT_BACKEND");
        throw Error(std::string("no backend '") + (wanted == nullptr ? "" : wanted) + "' in this build");
    }
    if (device >= provider->device_count())
        throw Error("no device " + std::to_string(device) + ": the " + std::string(provider->name()) + " backend has " +
                    std::to_string(provider->device_count()));
    switch (kind) {
        case ApiKind::Vipl: return std::make_unique<ViplApi>(device);
        case ApiKind::Rpma: return std::make_unique<RpmaApi>(device);
        case ApiKind::Core: return std::make_unique<CoreApi>(device);
    }
    throw Error("unknown programming interface");
}

std::string backend_name() {
    const backend::Provider* provider = provider_in_force();
    return provider == nullptr ? "none" : std::string(provider->name());
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
