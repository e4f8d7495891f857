// SPDX-License-Identifier: BSD-3-Clause
// Delivers asynchronous errors to the program's handler (guide, section 3.8).
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "api/support/event_queue.hpp"
#include "api/vipl/api.hpp"

namespace viaduct::vipl {

/// Not for programs: a VI in the Error state may have descriptors to flush, because its peer was unreachable.
inline constexpr auto unreachable_error = static_cast<VIP_ERROR_CODE>(VIP_ERROR_CATASTROPHIC + 1);

/// Calls the error handler, for one error at a time, on a separate thread. The thread exists from the beginning, so
/// that no error is lost when threads are scarce.
class ErrorReporter {
public:
    using Handler = void (*)(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error);
    using Containment = std::function<bool(const VIP_ERROR_DESCRIPTOR&)>;

    /// `contain` runs on the same thread before the handler, which is called if it returns true. It may do what
    /// observers must not do. Throws std::bad_alloc or std::system_error.
    explicit ErrorReporter(Containment contain);
    ~ErrorReporter() { stop(); }

    /// Null restores the default handler, which logs the error.
    void set_handler(Handler handler, VIP_PVOID context) noexcept;

    /// May be called with locks held and from observers.
    void report(const VIP_ERROR_DESCRIPTOR& error) noexcept;

    /// Discards the errors not yet reported and waits for a running handler, unless the handler itself is the caller.
    void stop() noexcept;

private:
    struct Shared;
    static void serve(const std::shared_ptr<Shared>& shared);

    const std::shared_ptr<Shared> shared_;  // outlives a thread that calls stop() on itself
    std::thread thread_;
};

}  // namespace viaduct::vipl
