// SPDX-License-Identifier: BSD-3-Clause
// The list of backends in this build: the one place that names them.
#include "backends/loopback/provider.hpp"
#include "backends/verbs/provider.hpp"
#include "core/device.hpp"

namespace viaduct {

backend::Provider* find_provider(std::string_view name) noexcept {
    static loopback::Provider loopback_provider;
    // RDMA devices come first: machines without them have none of that kind.
    backend::Provider* const providers[] = {verbs::verbs_provider(), &loopback_provider};
    for (backend::Provider* provider : providers) {
        if (provider == nullptr) continue;  // not in this build
        if (name.empty() ? provider->device_count() != 0 : provider->name() == name) return provider;
    }
    return nullptr;
}

}  // namespace viaduct
