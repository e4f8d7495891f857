// SPDX-License-Identifier: BSD-3-Clause
// The list of backends in this build: the one place that names them.
#include "backends/loopback/provider.hpp"
#include "backends/verbs/provider.hpp"
#include "core/device.hpp"

namespace viaduct {
namespace {

template <class Predicate>
backend::Provider* find_if(Predicate predicate) noexcept {
    static loopback::Provider loopback_provider;
    // RDMA devices come first: machines without them have none of that kind.
    backend::Provider* const providers[] = {verbs::verbs_provider(), &loopback_provider};
    for (backend::Provider* provider : providers)
        if (provider != nullptr && predicate(*provider)) return provider;  // null: not in this build
    return nullptr;
}

}  // namespace

backend::Provider* find_provider(std::string_view name) noexcept {
    return find_if([name](backend::Provider& provider) {
        return name.empty() ? provider.device_count() != 0 : provider.name() == name;
    });
}

backend::Provider* find_provider_of(std::string_view device) noexcept {
    return find_if([device](backend::Provider& provider) { return provider.find(device).ok(); });
}

}  // namespace viaduct
