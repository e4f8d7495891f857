// SPDX-License-Identifier: BSD-3-Clause
// The log of librpma: thresholds, and a function of the program that receives the messages (rpma_log_set_function(3)).
#pragma once

#include "api/rpma/api.hpp"
#include "core/base/waiting.hpp"
#include "viaduct/status.hpp"

namespace viaduct::rpma {

rpma_log_level log_threshold() noexcept;
rpma_log_function* log_function() noexcept;
const char* file_name_of(const char* path) noexcept;

/// Calls the log function with a printf-style format, which ends with a newline like those of librpma.
template <class... Arguments>
void log(rpma_log_level level, const Call& where, const char* format, Arguments... arguments) noexcept {
    if (level > log_threshold()) return;
    const CancellationHold hold;  // the function belongs to the program
    log_function()(level, file_name_of(where.file), where.line, where.function, format, arguments...);
}

/// Returns the librpma error for a failure of the core, and leaves the reason for the entry point.
[[gnu::cold]] int failed(const Status& status) noexcept;

/// Reports a request that could not be posted.
[[gnu::cold, gnu::noinline]] int not_posted(Code code, const char* where, int sys_errno, const void* handle,
                                            const Call& call) noexcept;

/// The result of posting a request. Passes the parts of the status separately, so that they stay in registers.
[[gnu::always_inline]] inline int result_of_post(const Status& status, const void* handle, const Call& call) noexcept {
    return status.ok() ? 0 : not_posted(status.code(), status.where(), status.sys_errno(), handle, call);
}
[[gnu::cold, gnu::noinline]] int not_posted(const Status& status, const void* handle, const Call& call) noexcept;

}  // namespace viaduct::rpma
