// SPDX-License-Identifier: BSD-3-Clause
// The log of librpma: thresholds, and a function of the program that receives the messages (rpma_log_set_function(3)).
#pragma once

#include "api/rpma/api.hpp"
#include "core/status.hpp"

namespace viaduct::rpma {

/// A printf-style format, which ends with a newline like those of librpma, and the source location that uses it.
struct Message {
    Message(const char* text, const char* from_file = __builtin_FILE(), int from_line = __builtin_LINE(),  // NOLINT
            const char* from_function = __builtin_FUNCTION()) noexcept
        : format(text), file(from_file), function(from_function), line(from_line) {}

    const char* format;
    const char* file;
    const char* function;
    int line;
};

rpma_log_level log_threshold() noexcept;
rpma_log_function* log_function() noexcept;
const char* file_name_of(const char* path) noexcept;

template <class... Arguments>
void log(rpma_log_level level, const Message& message, Arguments... arguments) noexcept {
    if (level > log_threshold()) return;
    log_function()(level, file_name_of(message.file), message.line, message.function, message.format, arguments...);
}

/// Logs why a call to the core failed and returns the librpma error.
int failed(const Status& status, const Message& message = "%s: %s%s%s\n") noexcept;

/// As failed(), for a request that could not be posted.
[[gnu::cold, gnu::noinline]] int not_posted(Code code, const char* where, int sys_errno) noexcept;

/// The result of posting a request. Passes the parts of the status separately, so that they stay in registers.
[[gnu::always_inline]] inline int result_of_post(const Status& status) noexcept {
    return status.ok() ? 0 : not_posted(status.code(), status.where(), status.sys_errno());
}

}  // namespace viaduct::rpma
