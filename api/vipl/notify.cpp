// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/notify.hpp"

#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "api/support/event_queue.hpp"
#include "core/base/thread.hpp"
#include "core/base/unique_fd.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::vipl {

/// The state shared by the thread and its callers.
struct Notifier::Mailbox {
    Mailbox() : wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (!wake) throw std::system_error(errno, std::generic_category(), "eventfd");
    }

    struct Request {
        Delivery deliver;
        int fd;
    };
    EventQueue<Request> requests;
    std::atomic<std::uint32_t> undelivered{0};
    const UniqueFd wake;
};

void Notifier::request(Delivery delivery, int fd) {
    const LockGuard lock(mutex_);
    if (mailbox_ == nullptr) {
        auto mailbox = std::make_shared<Mailbox>();
        thread_ = start_thread([mailbox, &queue = queue_] { serve(mailbox, queue); });
        mailbox_ = std::move(mailbox);
        in_use_.store(mailbox_.get(), std::memory_order_release);
    }
    ++mailbox_->undelivered;
    mailbox_->requests.push({std::move(delivery), fd});
}

void Notifier::stop() noexcept {
    std::thread thread;
    {
        const LockGuard lock(mutex_);
        if (mailbox_ == nullptr) return;
        mailbox_->requests.close();
        mailbox_->requests.clear();
        eventfd_write(mailbox_->wake.get(), 1);
        thread.swap(thread_);
    }
    end_thread(thread);
}

void Notifier::wake(const Mailbox& mailbox) noexcept {
    if (mailbox.undelivered.load() == 0) return;
    const CancellationHold hold;
    eventfd_write(mailbox.wake.get(), 1);
}

void Notifier::serve(const std::shared_ptr<Mailbox>& mailbox, CompletionQueue& queue) {
    // A handler may destroy the queue. After a delivery, only the mailbox is certain to exist.
    while (const auto request = mailbox->requests.wait(Deadline::never())) {
        while (!request->deliver()) {
            if (mailbox->requests.closed()) return;
            const bool armed = queue.arm().ok();
            if (request->deliver()) break;
            const std::array fds{queue.fd(), request->fd, mailbox->wake.get()};
            (void)sleep_until_ready(fds, armed ? Deadline::never() : Deadline::after(look_again));
            eventfd_t times = 0;
            (void)eventfd_read(mailbox->wake.get(), &times);
        }
        --mailbox->undelivered;
    }
}

}  // namespace viaduct::vipl
