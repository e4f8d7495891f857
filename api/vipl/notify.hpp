// SPDX-License-Identifier: BSD-3-Clause
// The thread that runs the Notify handlers of one queue (guide, section 3.5.12).
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "viaduct/completion_queue.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::vipl {

/// Serves requests in order, one at a time. Its thread starts with the first request.
class Notifier {
public:
    /// Takes what a handler waits for from the queue and calls the handler. Returns false if there is nothing yet.
    using Delivery = std::function<bool()>;

    explicit Notifier(CompletionQueue& queue) noexcept : queue_(queue) {}
    ~Notifier() { stop(); }

    /// `fd`: that of the queue, or another one that is readable while there is something to take of which the queue
    /// does not know; -1 if it could not be created. Throws std::bad_alloc or std::system_error if the request cannot
    /// be stored or the thread cannot be started.
    void request(Delivery delivery, int fd);

    /// The program has taken something from the queue itself, which may be empty now.
    void has_taken() const noexcept {
        if (const Mailbox* const mailbox = in_use_.load(std::memory_order_acquire)) [[unlikely]]
            wake(*mailbox);
    }

    /// Discards the requests that have not started and waits for a running handler, unless the handler itself is the
    /// caller.
    void stop() noexcept;

private:
    struct Mailbox;
    [[gnu::cold]] static void wake(const Mailbox& mailbox) noexcept;
    static void serve(const std::shared_ptr<Mailbox>& mailbox, CompletionQueue& queue);

    CompletionQueue& queue_;
    Mutex mutex_;
    std::shared_ptr<Mailbox> mailbox_ VIADUCT_GUARDED_BY(mutex_);  // outlives a thread that calls stop() on itself
    std::atomic<const Mailbox*> in_use_{nullptr};                  // that one
    std::thread thread_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::vipl
