// SPDX-License-Identifier: BSD-3-Clause
// Where finished work is found, by polling or by waiting.
#pragma once

#include <memory>
#include <span>

#include "core/device.hpp"

namespace viaduct {

/// Where armed completion queues leave events; kept alive by them.
class VIADUCT_EXPORT Channel {
public:
    static Result<std::shared_ptr<Channel>> create(std::shared_ptr<Device> device);
    ~Channel();

    /// See backend::Channel.
    int fd() const noexcept { return channel_->fd(); }
    Result<std::uint64_t> take_event() noexcept { return channel_->take_event(); }

    /// Sleeps until an event waits. False: the deadline has passed first, or a signal came.
    bool sleep(const Deadline& deadline) noexcept;
    backend::Channel& backend() noexcept { return *channel_; }

private:
    Channel(std::shared_ptr<Device> device, std::unique_ptr<backend::Channel> channel) noexcept;

    std::shared_ptr<Device> device_;
    std::unique_ptr<backend::Channel> channel_;
};

/// Kept alive by the endpoints that use it.
class VIADUCT_EXPORT CompletionQueue {
public:
    /// `context` comes back in overrun events and in those of the channel. Without a channel the queue gets one of its
    /// own. InvalidParameter: capacity 0 or above the limit of the device.
    static Result<std::shared_ptr<CompletionQueue>> create(std::shared_ptr<Device> device, std::uint32_t capacity,
                                                           std::uint64_t context,
                                                           std::shared_ptr<Channel> channel = nullptr,
                                                           CompletionObserver observer = nullptr);
    ~CompletionQueue();

    /// Takes up to out.size() completions; never blocks.
    std::size_t poll(std::span<Completion> out) noexcept { return queue_->poll(out); }

    /// Waits until at least one completion was taken or the deadline has passed (0): spins a little, then sleeps.
    /// Several threads may wait at once.
    std::size_t wait(std::span<Completion> out, const Deadline& deadline) noexcept;

    /// ready() and arm() are those of backend::CompletionQueue. sleep() sleeps until the queue may have a completion or
    /// the deadline has passed; takes nothing. For callers that keep completions of their own: arm, look again, sleep.
    bool ready() noexcept { return queue_->ready(); }
    Status arm(Arm what = Arm::Any) noexcept { return queue_->arm(what); }
    bool sleep(const Deadline& deadline) noexcept {
        channel_->sleep(deadline);
        return true;  // a signal ends no wait
    }

    /// Busy: more completions wait than would fit. InvalidParameter: as create().
    Status resize(std::uint32_t capacity) noexcept;

    Channel& channel() noexcept { return *channel_; }
    int fd() const noexcept { return channel_->fd(); }
    bool in_use() const noexcept { return users.in_use(); }
    UseCount users;  ///< kept by the core's endpoints
    backend::CompletionQueue& backend() noexcept { return *queue_; }

private:
    CompletionQueue(std::shared_ptr<Device> device, std::shared_ptr<Channel> channel,
                    std::unique_ptr<backend::CompletionQueue> queue) noexcept;

    std::shared_ptr<Device> device_;
    std::shared_ptr<Channel> channel_;
    std::unique_ptr<backend::CompletionQueue> queue_;
};

/// Calls `look` until it returns true or the deadline has passed: a short spin, then arm, look again, sleep. The one
/// place where the library waits for completions. Returns what the last look said. The source is a completion queue or
/// something like it: `Status arm()` and `bool sleep(const Deadline&)`, whose false ends the wait.
template <class Source, class Look>
bool wait_until(Source& source, const Deadline& deadline, Look look);

/// How long waits spin before they sleep: VIADUCT_SPIN_US, by default 50 microseconds (0 on a single core).
VIADUCT_EXPORT std::chrono::nanoseconds spin_time() noexcept;

template <class Source, class Look>
bool wait_until(Source& source, const Deadline& deadline, Look look) {
    if (look()) return true;
    if (deadline.passed()) return false;
    const auto spin_end = std::min(Deadline::Clock::now() + spin_time(), deadline.point());
    while (Deadline::Clock::now() < spin_end)
        for (int i = 0; i < 16; ++i)
            if (look()) return true;
    while (!deadline.passed()) {
        if (!source.arm().ok()) return false;
        if (look()) return true;
        const bool patient = source.sleep(deadline);
        if (look()) return true;
        if (!patient) return false;
    }
    return false;
}

}  // namespace viaduct
