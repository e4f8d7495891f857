// SPDX-License-Identifier: BSD-3-Clause
// The list of backends in this build.
#include "backends/providers.hpp"

#include "backends/faults/provider.hpp"
#include "core/provider.hpp"

namespace viaduct {

/// In order of preference: RDMA devices where there are any, shared memory for this host,
/// TCP for all others.
std::span<backend::Provider* const> built_in_providers() noexcept {
    static backend::Provider* list[] = {
#if VIADUCT_VERBS
        &verbs::provider(),
#endif
        &loopback::provider(),
#if VIADUCT_TCP
        &tcp::provider(),
#endif
    };
    static const std::span<backend::Provider* const> wrapped = [] {
        faults::wrap_if_wanted(list);
        check::wrap_if_wanted(list);  // sees what the program does, and what faults do to it
        return std::span(list);
    }();
    return wrapped;
}

}  // namespace viaduct
