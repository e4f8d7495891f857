// SPDX-License-Identifier: BSD-3-Clause
// The thread that runs the Notify handlers of one queue (guide, section 3.5.12).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/completion_queue.hpp"

namespace viaduct::vipl {

/// Serves requests one after the other, in order. Its thread starts with the first request.
class Notifier {
public:
    /// Takes what a handler waits for from the queue and calls the handler; false: there is nothing yet.
    using Delivery = std::function<bool()>;

    explicit Notifier(CompletionQueue& queue) noexcept : queue_(queue) {}
    ~Notifier() { stop(); }
    Notifier(const Notifier&) = delete;
    Notifier& operator=(const Notifier&) = delete;

    /// Throws std::bad_alloc or std::system_error where there is no room for a request or a thread.
    void request(Delivery delivery);

    /// Drops the requests that have not begun, and waits for a handler that runs, unless it is the caller.
    void stop() noexcept;

private:
    class Mailbox;
    static void serve(const std::shared_ptr<Mailbox>& mailbox, CompletionQueue& queue);

    CompletionQueue& queue_;
    std::mutex mutex_;                  // guards what follows
    std::shared_ptr<Mailbox> mailbox_;  // outlives a thread that stops itself
    std::thread thread_;
};

}  // namespace viaduct::vipl
