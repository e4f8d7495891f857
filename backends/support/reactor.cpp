// SPDX-License-Identifier: BSD-3-Clause
#include "backends/support/reactor.hpp"

#include <sys/epoll.h>

#include <cerrno>

namespace viaduct::support {

Status Reactor::watch(int epoll, int fd, const std::shared_ptr<ReactorClient>& client) {
    const std::uint64_t number = [&] {
        const std::lock_guard lock(mutex_);
        numbers_[fd] = next_number_;  // first, because it does no harm if the next line runs out of memory
        watches_.emplace(next_number_, Watch{fd, client});
        return next_number_++;
    }();
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = number}};
    // Without the lock, because this may wake the agent, which takes it.
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return {};
    const Status status = Status::from_errno(errno, "epoll_ctl");
    forget(fd);
    return status;
}

void Reactor::unwatch(int epoll, int fd) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (!numbers_.contains(fd)) return;
    }
    // Before it is forgotten, so that the agent is not woken for a descriptor that it does not know.
    epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);
    forget(fd);
}

void Reactor::forget(int fd) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = numbers_.find(fd);
    if (found == numbers_.end()) return;
    watches_.erase(found->second);
    numbers_.erase(found);
}

void Reactor::dispatch(std::uint64_t number) noexcept {
    if (number == no_descriptor) return;
    std::shared_ptr<ReactorClient> client;
    int fd = -1;
    {
        const std::lock_guard lock(mutex_);
        const auto found = watches_.find(number);
        if (found == watches_.end()) return;  // unwatched after epoll_wait reported it
        client = found->second.client.lock();
        fd = found->second.fd;
    }
    if (client != nullptr) client->on_readable(fd);
}

bool Reactor::call_at(const Deadline& deadline, const std::shared_ptr<ReactorClient>& client) {
    const std::lock_guard lock(mutex_);
    return deadlines_.add(deadline, client);
}

void Reactor::cancel_call(const Deadline& deadline, const std::weak_ptr<ReactorClient>& client) noexcept {
    const std::lock_guard lock(mutex_);
    deadlines_.remove(deadline, client);
}

void Reactor::run_deadlines() noexcept {
    const auto next = [this] {
        const std::lock_guard lock(mutex_);
        return deadlines_.take_due();
    };
    while (const auto due = next())
        if (const auto client = due->lock()) client->on_deadline();
}

int Reactor::timeout_ms() noexcept {
    const std::lock_guard lock(mutex_);
    return deadlines_.timeout_ms();
}

}  // namespace viaduct::support
