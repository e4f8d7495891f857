// SPDX-License-Identifier: BSD-3-Clause
// The list of backends in this build. No other file names them.
#include "backends/loopback/provider.hpp"
#include "backends/ofi/provider.hpp"
#include "backends/verbs/provider.hpp"
#include "core/provider.hpp"

namespace viaduct {
namespace {

/// Returns the first backend for which `predicate`, which returns a Result<bool>, is true. An error ends the search.
template <class Predicate>
Result<backend::Provider*> find_if(Predicate predicate) noexcept {
    static loopback::Provider loopback_provider;
    // RDMA devices come first; machines without RDMA devices have none of them.
    backend::Provider* const providers[] = {verbs::verbs_provider(), &loopback_provider, ofi::ofi_provider()};
    for (backend::Provider* provider : providers) {
        if (provider == nullptr) continue;  // not part of this build
        const Result<bool> fits = predicate(*provider);
        if (!fits.ok()) return fits.status();
        if (fits.value()) return provider;
    }
    return Status(Code::InvalidParameter, "no suitable backend");
}

}  // namespace

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

}  // namespace viaduct
