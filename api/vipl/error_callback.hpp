// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous errors on their way to the program's handler (guide, section 3.8).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "api/vipl/api.hpp"
#include "core/base/event_queue.hpp"

namespace viaduct::vipl {

/// Calls the handler from a thread of its own, which starts with the first error, one error at a time.
class ErrorReporter {
public:
    using Handler = void (*)(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error);
    using Containment = std::function<void(const VIP_ERROR_DESCRIPTOR&)>;

    /// `contain` runs on the same thread before the handler: it may do what observers may not.
    explicit ErrorReporter(Containment contain);
    ~ErrorReporter() { stop(); }
    ErrorReporter(const ErrorReporter&) = delete;
    ErrorReporter& operator=(const ErrorReporter&) = delete;

    /// A null handler stands for the default, which logs.
    void set_handler(Handler handler, VIP_PVOID context) noexcept;

    /// May be called with any locks held, and by observers.
    void report(const VIP_ERROR_DESCRIPTOR& error) noexcept;

    /// Drops the errors that were not yet told, and waits for a handler that runs, unless it is the caller.
    void stop() noexcept;

private:
    struct Shared;
    static void serve(const std::shared_ptr<Shared>& shared);

    const std::shared_ptr<Shared> shared_;  // outlives a thread that stops itself
    std::mutex mutex_;                      // guards thread_
    std::thread thread_;
};

}  // namespace viaduct::vipl
