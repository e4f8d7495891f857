// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/notify.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include "api/support/event_queue.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/thread.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::vipl {

/// The state shared by the thread and its callers.
struct Notifier::Mailbox {
    Mailbox() : stop_fd(stop.fd()) {
        if (stop_fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    }

    struct Request {
        Delivery deliver;
        int fd;
    };
    EventQueue<Request> requests;
    ReadableFlag stop;
    const int stop_fd;
};

void Notifier::request(Delivery delivery, int fd) {
    const LockGuard lock(mutex_);
    if (mailbox_ == nullptr) {
        auto mailbox = std::make_shared<Mailbox>();
        thread_ = start_thread([mailbox, &queue = queue_] { serve(mailbox, queue); });
        mailbox_ = std::move(mailbox);
    }
    mailbox_->requests.push({std::move(delivery), fd});
}

void Notifier::stop() noexcept {
    std::thread thread;
    {
        const LockGuard lock(mutex_);
        if (mailbox_ == nullptr) return;
        mailbox_->requests.close();
        mailbox_->requests.clear();
        mailbox_->stop.set(true);
        thread.swap(thread_);
    }
    end_thread(thread);
}

void Notifier::serve(const std::shared_ptr<Mailbox>& mailbox, CompletionQueue& queue) {
    // A handler may destroy the queue. After a delivery, only the mailbox is certain to exist.
    while (const auto request = mailbox->requests.wait(Deadline::never())) {
        while (!request->deliver()) {
            if (mailbox->requests.closed()) return;
            const bool armed = queue.arm().ok();
            if (request->deliver()) break;
            const std::array fds{queue.fd(), request->fd, mailbox->stop_fd};
            (void)sleep_until_ready(fds, armed ? Deadline::never() : Deadline::after(look_again));
        }
    }
}

}  // namespace viaduct::vipl
