// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/channel.hpp"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "backends/verbs/completion_queue.hpp"
#include "core/log.hpp"

namespace viaduct::verbs {
namespace {

constexpr Status lost(Code::Unreachable, device_removed);

bool watch(int epoll, int fd) noexcept {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    return fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<Channel>> Channel::create(std::shared_ptr<ibv_context> device) {
    std::unique_ptr<Channel> channel(new Channel(std::move(device)));
    channel->hardware_.reset(ibv_create_comp_channel(channel->device_.get()));
    if (channel->hardware_ == nullptr) return Status::from_errno(errno, "ibv_create_comp_channel");
    const int fd = channel->hardware_->fd;
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) return Status::from_errno(errno, "fcntl");
    return channel;
}

int Channel::fd() const noexcept {
    const LockGuard lock(mutex_);
    if (watched_) return watched_.get();
    UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
    if (epoll && (lost_ || watch(epoll.get(), hardware_->fd)) && watch(epoll.get(), readable_.fd()))
        watched_ = std::move(epoll);
    return watched_.get();
}

void Channel::detach(const CompletionQueue& queue) noexcept {
    const LockGuard lock(mutex_);
    collect();
    std::erase(events_, &queue);
    show();
    --queues_;
}

/// Collects the events of the hardware in order. Events of queues that are no longer armed are dropped. A driver that
/// lets a device be removed while it is open ends them with an error, and then the descriptor of the hardware is ready
/// for ever.
void Channel::collect() noexcept {
    if (lost_) return;
    ibv_cq* source = nullptr;
    void* context = nullptr;
    while (ibv_get_cq_event(hardware_.get(), &source, &context) == 0) {
        auto& queue = *static_cast<CompletionQueue*>(context);
        if (queue.disarm()) push(queue);
        ibv_ack_cq_events(source, 1);  // until then, the queue is not destroyed
    }
    if (errno != EIO) return;
    lost_ = loss_due_ = true;
    show();
    if (watched_) epoll_ctl(watched_.get(), EPOLL_CTL_DEL, hardware_->fd, nullptr);
    log(LogLevel::Info, "verbs: a channel gets no more events: %s", device_removed);
}

void Channel::push(CompletionQueue& queue) noexcept {
    if (std::ranges::find(events_, &queue) == events_.end()) events_.push_back(&queue);  // attach() made room
    readable_.set(true);
}

Status Channel::take_back(const CompletionQueue& queue) noexcept {
    const LockGuard lock(mutex_);
    collect();
    std::erase(events_, &queue);
    show();
    return lost_ ? lost : Status();
}

Result<std::uint64_t> Channel::take_event() noexcept {
    const LockGuard lock(mutex_);
    if (events_.empty()) collect();
    if (events_.empty()) {
        loss_due_ = false;
        show();
        return lost_ ? lost : Status(Code::WouldBlock, "no event is pending");
    }
    const std::uint64_t context = events_.front()->context();
    events_.erase(events_.begin());
    show();
    return context;
}

}  // namespace viaduct::verbs
