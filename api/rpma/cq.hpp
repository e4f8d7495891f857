// SPDX-License-Identifier: BSD-3-Clause
// Completion queues and the channels that tell of their news.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>

#include "api/rpma/handles.hpp"
#include "api/rpma/translate.hpp"
#include "core/completion_queue.hpp"

namespace viaduct::rpma {

/// Tells of the news of one queue, or of both queues of a connection. Queues are armed all the time once the program
/// has asked for the descriptor, and not before: polling a queue that nobody watches costs nothing extra.
class CompletionChannel {
public:
    explicit CompletionChannel(std::shared_ptr<Channel> channel) noexcept : channel_(std::move(channel)) {}

    const std::shared_ptr<Channel>& channel() const noexcept { return channel_; }

    /// For the making of the queues, which keep the channel: before anyone waits.
    void add(Cq& queue) noexcept { queues_[count_++] = &queue; }

    /// The descriptor, which is watched from now on; -1 where none can be had.
    int watch() noexcept;

    /// Waits for news and tells of which queue: RPMA_E_NO_COMPLETION where the program wants no waiting, or at a
    /// signal.
    int wait(Cq*& queue) noexcept;

private:
    friend class AnyQueue;
    int wait_unwatched(Cq*& queue) noexcept;
    int take_event(Cq*& queue) noexcept;
    Cq* ready_queue() noexcept;
    std::span<Cq* const> queues() const noexcept { return {queues_.data(), count_}; }

    const std::shared_ptr<Channel> channel_;
    std::array<Cq*, 2> queues_{};
    std::size_t count_ = 0;
    std::atomic<bool> watched_{false};
    std::atomic<std::size_t> turn_{0};  // which queue is looked at first, so that a busy one hides no other
};

class Cq {
public:
    /// A queue with a channel of its own, or one that joins the channel of another.
    static Result<std::unique_ptr<Cq>> create(const std::shared_ptr<Device>& device, std::uint32_t capacity,
                                              std::shared_ptr<CompletionChannel> shared_channel = nullptr);

    const std::shared_ptr<CompletionQueue>& queue() const noexcept { return queue_; }
    CompletionChannel& channel() const noexcept { return *channel_; }
    bool shares_channel() const noexcept { return shares_channel_; }
    rpma_cq* handle() const noexcept { return static_cast<rpma_cq*>(registration_.handle()); }

    /// For a queue of one connection, whose flushed work is shown once that flag says that its end has been told.
    void follow(const std::atomic<bool>& end_told) noexcept { end_told_ = &end_told; }

    /// Takes a completion; false: there is none.
    bool take(ibv_wc& wc) noexcept {
        Completion completion;
        if (queue_->poll({&completion, 1}) == 0) return false;
        show(completion, wc);
        return true;
    }

    /// Takes several; returns how many.
    std::size_t take(std::span<ibv_wc> out) noexcept;

private:
    Cq(std::shared_ptr<CompletionChannel> channel, bool shares_channel)
        : channel_(std::move(channel)), shares_channel_(shares_channel), registration_(this) {}

    void show(const Completion& completion, ibv_wc& wc) const noexcept {
        if (completion.code == CompletionCode::Flushed) [[unlikely]]
            await_end();
        write_wc(completion, wc);
    }
    void await_end() const noexcept;

    const std::shared_ptr<CompletionChannel> channel_;
    std::shared_ptr<CompletionQueue> queue_;
    const bool shares_channel_;
    const std::atomic<bool>* end_told_ = nullptr;  // null: of a shared receive queue
    Registration<Cq> registration_;
};

/// Makes a channel for the two queues of a connection.
Result<std::shared_ptr<CompletionChannel>> make_channel(const std::shared_ptr<Device>& device);

}  // namespace viaduct::rpma
