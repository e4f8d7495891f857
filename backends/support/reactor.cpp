// SPDX-License-Identifier: BSD-3-Clause
#include "backends/support/reactor.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>

#include "core/base/waiting.hpp"

namespace viaduct::support {
namespace {

constexpr std::uint32_t watched_events = EPOLLIN | EPOLLRDHUP;

/// See Reactor::timeout_ms().
constexpr std::chrono::milliseconds moment{100};

std::uint64_t data_for(int fd, std::uint32_t number) noexcept {
    return std::uint64_t{number} << 32 | static_cast<std::uint32_t>(fd);
}

}  // namespace

Status Reactor::open() noexcept {
    epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return Status::from_errno(errno, "epoll_create1");
    event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event_) return Status::from_errno(errno, "eventfd");
    return add(event_.get(), EPOLLIN | EPOLLET, 0);
}

Status Reactor::add(int fd, std::uint32_t events, std::uint64_t data) noexcept {
    epoll_event event{.events = events, .data = {.u64 = data}};
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? Status() : Status::from_errno(errno, "epoll_ctl");
}

void Reactor::stop() noexcept {
    stops_.store(true);
    if (!thread_.joinable()) return;
    wake();
    end_thread(thread_);
}

void Reactor::wake() noexcept {
    const CancellationHold hold;
    // Fails only if the counter would overflow, and then the descriptor is readable, too.
    eventfd_write(event_.get(), 1);
}

void Reactor::wait(int timeout_ms) noexcept {
    const int count = epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout_ms);
    event_count_ = static_cast<std::size_t>(std::max(count, 0));
    if (timeout_ms != 0) wakeups_.add();
    for (const epoll_event& event : std::span(events_).first(event_count_)) {
        if (event.data.u64 != call_event) continue;
        if (const auto call = call_.load()) call();
    }
}

void Reactor::dispatch() noexcept {
    for (const epoll_event& event : std::span(events_).first(std::exchange(event_count_, 0))) {
        const auto fd = static_cast<int>(static_cast<std::uint32_t>(event.data.u64));
        if (const auto client = find(fd, static_cast<std::uint32_t>(event.data.u64 >> 32))) client->on_readable(fd);
    }
    while (const auto client = take_due()) client->on_deadline();
}

/// Returns null for a descriptor that is not watched any more.
std::shared_ptr<ReactorClient> Reactor::find(int fd, std::uint32_t number) noexcept {
    const LockGuard lock(mutex_);
    const auto found = watches_.find(fd);
    return found != watches_.end() && found->second.number == number ? found->second.client.lock() : nullptr;
}

Status Reactor::watch(int fd, const std::shared_ptr<ReactorClient>& client) {
    const std::uint32_t number = [&] {
        const LockGuard lock(mutex_);
        watches_.insert_or_assign(fd, Watch{next_number_, client});
        return next_number_++;
    }();
    // Without the lock, because this may wake the agent, which takes it.
    const Status status = add(fd, watched_events, data_for(fd, number));
    if (status.ok()) return {};
    const LockGuard lock(mutex_);
    watches_.erase(fd);
    return status;
}

void Reactor::unwatch(int fd) noexcept {
    {
        const LockGuard lock(mutex_);
        if (!watches_.contains(fd)) return;
    }
    // Before it is forgotten, so that the agent is not woken for a descriptor that it does not know.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    const LockGuard lock(mutex_);
    watches_.erase(fd);
}

void Reactor::pause(int fd, bool pauses) noexcept {
    epoll_event event{.events = pauses ? 0 : watched_events, .data = {}};
    {
        const LockGuard lock(mutex_);
        event.data.u64 = data_for(fd, watches_.find(fd)->second.number);
    }
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

Status Reactor::call_for(int fd, void (*on_readable)() noexcept) noexcept {
    void (*none)() noexcept = nullptr;
    if (!call_.compare_exchange_strong(none, on_readable)) return {Code::Busy, "the thread watches another descriptor"};
    const Status status = add(fd, EPOLLIN, call_event);
    if (!status.ok()) call_.store(nullptr);
    return status;
}

void Reactor::stop_calling_for(int fd) noexcept {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    call_.store(nullptr);
}

void Reactor::call_at(const Deadline& deadline, ReactorClient& client) {
    {
        const LockGuard lock(mutex_);
        if (!deadline.infinite()) calls_.emplace(deadline, client.weak_from_this());  // first, because it may throw
        remove_call(client);
        client.due_ = deadline;
        if (!(deadline < wakes_)) return;
        wakes_ = deadline;
    }
    wake();
}

/// Compares owners, which a client still has in its destructor.
void Reactor::remove_call(ReactorClient& client) noexcept {
    const std::weak_ptr<ReactorClient> self = client.weak_from_this();
    const auto [first, last] = calls_.equal_range(std::exchange(client.due_, Deadline::never()));
    const auto found = std::find_if(first, last, [&self](const auto& call) {
        return !call.second.owner_before(self) && !self.owner_before(call.second);
    });
    if (found != last) calls_.erase(found);
}

/// Takes the earliest call, if its time has come. Returns null if there is none.
std::shared_ptr<ReactorClient> Reactor::take_due() noexcept {
    const LockGuard lock(mutex_);
    while (!calls_.empty() && calls_.begin()->first.passed()) {
        auto client = calls_.begin()->second.lock();
        calls_.erase(calls_.begin());
        if (client == nullptr) continue;
        client->due_ = Deadline::never();
        return client;
    }
    return nullptr;
}

int Reactor::timeout_ms() noexcept {
    const LockGuard lock(mutex_);
    const Deadline earliest = calls_.empty() ? Deadline::never() : calls_.begin()->first;
    const bool removed = wakes_ < earliest && !wakes_.passed();
    wakes_ = removed ? std::min(earliest, Deadline::after(moment)) : earliest;
    return wakes_.poll_timeout_ms();
}

}  // namespace viaduct::support
