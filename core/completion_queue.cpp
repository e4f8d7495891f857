// SPDX-License-Identifier: BSD-3-Clause
#include "viaduct/completion_queue.hpp"

#include <algorithm>
#include <thread>

#include "core/base/internals.hpp"
#include "core/base/settings.hpp"
#include "core/base/wait_until.hpp"
#include "core/base/waiting.hpp"
#include "core/limits.hpp"

namespace viaduct {

Channel::Channel(std::shared_ptr<Device> device, std::unique_ptr<backend::Channel> channel) noexcept
    : device_(std::move(device)), channel_(std::move(channel)) {}

Channel::~Channel() = default;

Result<std::shared_ptr<Channel>> Channel::create(std::shared_ptr<Device> device) {
    auto channel = Internals::backend(*device).create_channel();
    if (!channel.ok()) return channel.status();
    return std::shared_ptr<Channel>(new Channel(std::move(device), std::move(*channel)));
}

int Channel::fd() const noexcept { return channel_->fd(); }

Result<std::uint64_t> Channel::take_event() noexcept { return channel_->take_event(); }

Woken Channel::sleep(const Deadline& deadline) {
    const int source = fd();
    return sleep_until_ready({&source, 1}, deadline);
}

backend::CompletionQueue& CompletionQueue::backend() noexcept {
    return static_cast<backend::CompletionQueue&>(*queue_);
}

CompletionQueue::CompletionQueue(std::shared_ptr<Device> device, std::shared_ptr<Channel> channel,
                                 std::unique_ptr<backend::CompletionQueue> queue) noexcept
    : device_(std::move(device)), channel_(std::move(channel)), queue_(queue.release()) {}

CompletionQueue::~CompletionQueue() = default;

Result<std::shared_ptr<CompletionQueue>> CompletionQueue::create(std::shared_ptr<Device> device,
                                                                 const CompletionQueueConfig& config) {
    return create_observed(std::move(device), config, nullptr, nullptr);
}

Result<std::shared_ptr<CompletionQueue>> CompletionQueue::create_observed(std::shared_ptr<Device> device,
                                                                          const CompletionQueueConfig& config,
                                                                          CompletionObserver observer,
                                                                          const CompletionRecord* record) {
    const DeviceAttributes& limits = device->attributes();
    const std::uint32_t capacity = config.capacity == default_depth
                                       ? std::min(limits.default_queue_depth, limits.max_completions)
                                       : config.capacity;
    if (const Status status = check_completions(capacity, limits); !status.ok()) return status;
    std::shared_ptr<Channel> channel = config.channel;
    if (channel == nullptr) {
        auto own = Channel::create(device);
        if (!own.ok()) return own.status();
        channel = std::move(*own);
    }
    auto queue = Internals::backend(*device).create_completion_queue({.capacity = capacity,
                                                                      .context = config.context,
                                                                      .channel = &Internals::backend(*channel),
                                                                      .observer = observer,
                                                                      .record = record});
    if (!queue.ok()) return queue.status();
    return std::shared_ptr<CompletionQueue>(
        new CompletionQueue(std::move(device), std::move(channel), std::move(*queue)));
}

Status CompletionQueue::resize(std::uint32_t capacity) noexcept {
    if (const Status status = check_completions(capacity, device_->attributes()); !status.ok()) return status;
    return backend().resize(capacity);
}

std::size_t CompletionQueue::wait(std::span<Completion> out, const Deadline& deadline) {
    std::size_t taken = 0;
    wait_until(*this, deadline, [&] { return (taken = poll(out)) != 0; });
    return taken;
}

Result<Completion> CompletionQueue::wait(const Deadline& deadline) {
    Completion done;
    if (wait({&done, 1}, deadline) == 0) return Status(Code::TimedOut, "no request completed before the deadline");
    return done;
}

std::chrono::nanoseconds spin_time() noexcept {
    static const std::chrono::microseconds time(
        number_setting(spin_setting).value_or(std::thread::hardware_concurrency() > 1 ? 50 : 0));
    return time;
}

}  // namespace viaduct
