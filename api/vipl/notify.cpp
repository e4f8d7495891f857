// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/notify.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <optional>
#include <system_error>

#include "core/base/thread.hpp"

namespace viaduct::vipl {

/// The state shared by the thread and its callers.
class Notifier::Mailbox {
public:
    Mailbox() : stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (stop_fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    }
    ~Mailbox() { close(stop_fd_); }
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    void put(Delivery delivery) {
        {
            const std::lock_guard lock(mutex_);
            requests_.push_back(std::move(delivery));
        }
        changed_.notify_one();
    }

    /// Returns the next request, or nothing after stop().
    std::optional<Delivery> take() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stopped_ || !requests_.empty(); });
        if (stopped_) return std::nullopt;
        Delivery delivery = std::move(requests_.front());
        requests_.pop_front();
        return delivery;
    }

    void stop() noexcept {
        {
            const std::lock_guard lock(mutex_);
            stopped_ = true;
        }
        changed_.notify_one();
        eventfd_write(stop_fd_, 1);
    }

    bool stopped() noexcept {
        const std::lock_guard lock(mutex_);
        return stopped_;
    }

    /// Sleeps until the queue signals a completion or stop() is called.
    void sleep(const CompletionQueue& queue) noexcept {
        pollfd sources[] = {{.fd = queue.fd(), .events = POLLIN, .revents = 0},
                            {.fd = stop_fd_, .events = POLLIN, .revents = 0}};
        ::poll(sources, 2, -1);
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Delivery> requests_;
    bool stopped_ = false;
    const int stop_fd_;
};

void Notifier::request(Delivery delivery) {
    const std::lock_guard lock(mutex_);
    if (mailbox_ == nullptr) {
        auto mailbox = std::make_shared<Mailbox>();
        thread_ = start_thread([mailbox, &queue = queue_] { serve(mailbox, queue); });
        mailbox_ = std::move(mailbox);
    }
    mailbox_->put(std::move(delivery));
}

void Notifier::stop() noexcept {
    std::thread thread;
    {
        const std::lock_guard lock(mutex_);
        if (mailbox_ == nullptr) return;
        mailbox_->stop();
        thread.swap(thread_);
    }
    end_thread(thread);
}

void Notifier::serve(const std::shared_ptr<Mailbox>& mailbox, CompletionQueue& queue) {
    // A handler may destroy the queue. After a delivery, only the mailbox is certain to exist.
    while (const auto delivery = mailbox->take()) {
        while (!(*delivery)()) {
            if (mailbox->stopped() || !queue.arm().ok()) return;
            if ((*delivery)()) break;
            mailbox->sleep(queue);
        }
    }
}

}  // namespace viaduct::vipl
