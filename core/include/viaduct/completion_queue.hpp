// SPDX-License-Identifier: BSD-3-Clause
// Completion queues, and the channels through which they wake threads.
#pragma once

#include <memory>
#include <span>

#include "viaduct/deadline.hpp"
#include "viaduct/detail/data_path.hpp"
#include "viaduct/device.hpp"

namespace viaduct {

using CompletionObserver = bool (*)(const Completion& completion) noexcept;  // see core/backend.hpp
struct CompletionRecord;

/// Wakes threads that wait for completions: an armed completion queue that gets a completion puts an event here.
class VIADUCT_EXPORT Channel {
public:
    static Result<std::shared_ptr<Channel>> create(std::shared_ptr<Device> device);
    ~Channel();

    /// For poll(2) and epoll(7): readable while events wait. Owned by the channel. Programs may change O_NONBLOCK.
    /// -1: the descriptor could not be created.
    int fd() const noexcept;

    /// Takes the oldest event: the context of its completion queue. Never blocks. WouldBlock: there is none.
    /// Unreachable: there is none, and the device is gone.
    Result<std::uint64_t> take_event() noexcept;

    /// Waits until there is an event, the deadline has passed or a signal was delivered; takes nothing. Closed: only
    /// for calls of a front-end, whose object was destroyed.
    Woken sleep(const Deadline& deadline);

private:
    friend struct Internals;

    Channel(std::shared_ptr<Device> device, std::unique_ptr<backend::Channel> channel) noexcept;
    backend::Channel& backend() noexcept { return *channel_; }

    std::shared_ptr<Device> device_;
    Owned<backend::Channel> channel_;
};

struct CompletionQueueConfig {
    std::uint32_t capacity = default_depth;  ///< how many completions it holds
    std::uint64_t context = 0;               ///< returned in overrun events and in the events of the channel
    std::shared_ptr<Channel> channel{};      ///< null: one of its own
};

/// Holds the completions of one or more endpoints. Polling also drives the progress of their work.
class VIADUCT_EXPORT CompletionQueue {
public:
    /// InvalidParameter: capacity 0 or above the maximum of the device.
    static Result<std::shared_ptr<CompletionQueue>> create(std::shared_ptr<Device> device,
                                                           const CompletionQueueConfig& config = {});
    ~CompletionQueue();

    /// Takes up to out.size() completions, in order. Never blocks.
    std::size_t poll(std::span<Completion> out) noexcept { return queue_->poll(out); }

    /// Takes one completion. Returns false if there is none; `out` is then unspecified. Never blocks.
    bool poll(Completion& out) noexcept { return queue_->poll_one(out); }

    /// Waits until there is at least one completion, and takes up to out.size(); returns 0 if the deadline passes.
    /// Polls for a short time (VIADUCT_SPIN_US), then sleeps. Several threads may wait at the same time.
    std::size_t wait(std::span<Completion> out, const Deadline& deadline);

    /// Waits for one completion. TimedOut: the deadline has passed.
    Result<Completion> wait(const Deadline& deadline);

    /// Whether there is a completion. Drives progress, but takes nothing.
    bool ready() noexcept { return queue_->ready(); }

    /// Requests one event on the channel for the next completion. Completions that are already in the queue cause none,
    /// but a poll() or ready() that finds more than it takes does. Therefore arm the queue, check it again, and only
    /// then sleep. With Arm::Solicited, only receives of solicited messages and failures cause the event; a queue that
    /// is armed for Any stays so.
    Status arm(Arm what = Arm::Any) noexcept { return queue_->arm(what); }

    /// Waits until the queue may have a completion, the deadline has passed or a signal was delivered; takes nothing.
    /// Call arm() before. False: as Woken::Closed of Channel::sleep().
    bool sleep(const Deadline& deadline) { return channel_->sleep(deadline) != Woken::Closed; }

    /// Changes the capacity. Busy: the queue holds more completions. InvalidParameter: as create().
    Status resize(std::uint32_t capacity) noexcept;

    Channel& channel() noexcept { return *channel_; }

    /// The descriptor of the channel; see Channel::fd().
    int fd() const noexcept { return channel_->fd(); }

    /// Whether the queue has endpoints.
    bool in_use() const noexcept { return users_.in_use(); }

private:
    friend struct Internals;

    /// For what front-ends need to know of completions before they are polled; may be null.
    static Result<std::shared_ptr<CompletionQueue>> create_observed(std::shared_ptr<Device> device,
                                                                    const CompletionQueueConfig& config,
                                                                    CompletionObserver observer,
                                                                    const CompletionRecord* record);

    CompletionQueue(std::shared_ptr<Device> device, std::shared_ptr<Channel> channel,
                    std::unique_ptr<backend::CompletionQueue> queue) noexcept;
    backend::CompletionQueue& backend() noexcept;

    std::shared_ptr<Device> device_;
    std::shared_ptr<Channel> channel_;
    detail::UseCount users_;
    Owned<detail::PollInterface> queue_;
};

}  // namespace viaduct
