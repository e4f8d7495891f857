// SPDX-License-Identifier: BSD-3-Clause
// The public header with exported functions, and the wrapper for the bodies of entry points.
#pragma once

#pragma GCC visibility push(default)
#include "api/rpma/include/librpma.h"
#pragma GCC visibility pop

#include <exception>
#include <new>

#include "api/support/failure.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::rpma {

/// An entry point, as the log names it.
struct Call {
    constexpr Call(const char* from_function = __builtin_FUNCTION(),
                   const char* from_file = __builtin_FILE(),  // NOLINT
                   int from_line = __builtin_LINE()) noexcept
        : function(from_function), file(from_file), line(from_line) {}

    const char* function;
    const char* file;
    int line;
};

// The reasons for a handle that is not valid.
inline constexpr const char* no_conn = "conn is not a connection";
inline constexpr const char* no_req = "req is not a connection request";
inline constexpr const char* no_ep = "ep is not a listening endpoint";
inline constexpr const char* no_cfg = "cfg is not a configuration of connections";
inline constexpr const char* no_context = "ibv_ctx is not a context of this library";
inline constexpr const char* no_cq = "cq is not a completion queue";

/// Reports the failure of a call on a handle, with the reason that was left. Empty queues are not failures.
[[gnu::cold]] void report(const Call& call, const void* handle, int result) noexcept;

/// Returns RPMA_E_INVAL, and leaves the reason for the entry point.
[[gnu::cold]] int invalid(const char* why) noexcept;

/// Reports a call that fails before it does anything. For entry points that are too short for guarded().
[[gnu::cold, gnu::noinline]] int refused(const void* handle, const char* why, const Call& call = {}) noexcept;

/// Runs the body of an entry point that was called with a handle, and reports its failure.
template <class Body>
int guarded(const void* handle, Body&& body, const Call& call = {}) {
    const CancellationHold hold;
    failure::clear();
    int result = RPMA_E_PROVIDER;
    try {
        result = body();
    } catch (const std::bad_alloc&) {
        failure::because("out of memory");
        result = RPMA_E_NOMEM;
    } catch (const std::exception& error) {
        failure::because(error.what());
    }
    if (result != 0) report(call, handle, result);
    return result;
}

}  // namespace viaduct::rpma
