// SPDX-License-Identifier: BSD-3-Clause
// How an entry point of an API says why it fails. The code that detects a failure leaves the reason; the frame that the
// entry points of the API share reports it, once. All state belongs to the calling thread.
#pragma once

#include <initializer_list>

#include "core/explain.hpp"
#include "core/log.hpp"
#include "viaduct/detail/export.hpp"

namespace viaduct::failure {

/// Forgets the reason that an earlier call left. Without effect in a call of an entry point that has a Silence, which
/// may have left a reason already.
VIADUCT_EXPORT void clear() noexcept;

/// Leaves the reason of the failure that the entry point is about to return.
VIADUCT_EXPORT void because(const Reason& reason) noexcept;

/// Whether a reason was left since clear().
VIADUCT_EXPORT bool has_reason() noexcept;

/// The same; returns the result of the entry point.
template <class Result>
[[gnu::cold, gnu::noinline]] Result failed(Result result, const Reason& reason) noexcept {
    because(reason);
    return result;
}

/// What an entry point demands of its arguments.
struct Requirement {
    bool met;
    const char* otherwise;
};

/// Whether all are met. Leaves the reason of the first one that is not.
VIADUCT_EXPORT bool require(std::initializer_list<Requirement> requirements) noexcept;

/// The result of an entry point. `object` is the handle that it was called with, or null.
struct Result {
    const char* call;
    const void* object;
    long code;
    const char* name;  ///< of the code, in the API's own terms
};

/// Logs a failure with the reason that was left, and keeps it for last(). A call that leaves no reason is logged
/// without one.
VIADUCT_EXPORT void report(LogLevel level, const Result& result) noexcept;

/// Makes last() empty: for a failure that is returned without a report.
VIADUCT_EXPORT void forget() noexcept;

/// While it exists, this thread reports nothing: for an entry point that calls others, and reports their failures as
/// its own afterwards.
class Silence {
public:
    VIADUCT_EXPORT Silence() noexcept;
    VIADUCT_EXPORT ~Silence();
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;
};

/// The reason of the failure that this thread reported last; empty if it reported another code. Valid until the thread
/// reports the next one.
VIADUCT_EXPORT const char* last(long code) noexcept;

}  // namespace viaduct::failure
