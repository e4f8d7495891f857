// SPDX-License-Identifier: BSD-3-Clause
// The public header with exported functions, and the frames of entry points.
#pragma once

#pragma GCC visibility push(default)
#include "api/rpma/include/librpma.h"
#pragma GCC visibility pop

#include "api/support/entry.hpp"

namespace viaduct::rpma {

// The reasons for a handle that is not valid.
inline constexpr const char* no_conn = "conn is not a connection";
inline constexpr const char* no_req = "req is not a connection request";
inline constexpr const char* no_ep = "ep is not a listening endpoint";
inline constexpr const char* no_cfg = "cfg is not a configuration of connections";
inline constexpr const char* no_context = "ibv_ctx is not a context of this library";
inline constexpr const char* no_cq = "cq is not a completion queue";

using failure::failed;

/// For EntryPoint. Empty queues are not failures.
struct Api {
    using Result = int;
    static constexpr Result success = 0;
    static constexpr Result invalid_argument = RPMA_E_INVAL;
    static constexpr Result out_of_memory = RPMA_E_NOMEM;
    static constexpr Result internal_error = RPMA_E_PROVIDER;
    static constexpr OnSignal on_signal = OnSignal::EndUnlessRestarting;
    static constexpr bool found(Result result) noexcept { return result == success; }
    [[gnu::cold]] static void report(const Call& call, const void* handle, Result result) noexcept;
};
using Entry = EntryPoint<Api>;

}  // namespace viaduct::rpma
