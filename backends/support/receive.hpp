// SPDX-License-Identifier: BSD-3-Clause
// Receives in queues that are software.
#pragma once

#include <cstdint>

#include "backends/support/pieces.hpp"
#include "backends/support/sge_list.hpp"
#include "viaduct/work.hpp"

namespace viaduct::support {

/// A posted receive.
struct Receive {
    std::uint64_t context = 0;
    CompletionCode fault = CompletionCode::Success;
    SgeList sges;

    std::uint64_t room() const noexcept { return total_length(sges.span()); }

    /// Throws std::bad_alloc.
    [[gnu::always_inline]] void assign(const ReceiveRequest& request) {
        sges.assign(request.sges);
        context = request.context;
        fault = request.fault;
    }

    /// The same for a request of one SGE.
    [[gnu::always_inline]] void assign_single(const ReceiveRequest& request, const Sge& sge) noexcept {
        sges.assign_single(sge);
        context = request.context;
        fault = request.fault;
    }
};

}  // namespace viaduct::support
