// SPDX-License-Identifier: BSD-3-Clause
// The list of backends in this build. No other file names them.
#include <algorithm>
#include <iterator>

#include "backends/check/provider.hpp"
#include "backends/faults/provider.hpp"
#include "backends/loopback/provider.hpp"
#include "backends/tcp/provider.hpp"
#include "backends/verbs/provider.hpp"
#include "core/provider.hpp"

namespace viaduct {

/// In order of preference: RDMA devices where there are any, shared memory for this host,
/// TCP for all others.
std::span<backend::Provider* const> built_in_providers() noexcept {
    static loopback::Provider loopback_provider;
    static backend::Provider* list[] = {verbs::verbs_provider(), &loopback_provider, tcp::tcp_provider()};
    static auto* const end = std::remove(std::begin(list), std::end(list), nullptr);  // not part of this build
    static const std::span<backend::Provider* const> wrapped = [] {
        faults::wrap_if_wanted({std::begin(list), end});
        check::wrap_if_wanted({std::begin(list), end});  // sees what the program does, and what faults do to it
        return std::span(std::begin(list), end);
    }();
    return wrapped;
}

}  // namespace viaduct
