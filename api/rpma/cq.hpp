// SPDX-License-Identifier: BSD-3-Clause
// Completion queues and their notification channels.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>

#include "api/rpma/handles.hpp"
#include "api/rpma/translate.hpp"
#include "core/frontend.hpp"
#include "viaduct/completion_queue.hpp"

namespace viaduct::rpma {

class Cq;

/// Notifies about one queue, or about both queues of a connection. The queues are kept armed once the program has asked
/// for the descriptor, but not before, so that polling a queue without a watched descriptor costs nothing extra.
class CompletionChannel {
public:
    explicit CompletionChannel(std::shared_ptr<Channel> channel) noexcept : channel_(std::move(channel)) {}

    const std::shared_ptr<Channel>& channel() const noexcept { return channel_; }

    /// Called when the queues are created, before any wait. The queues own the channel.
    void add(Cq& queue) noexcept { queues_[count_++] = &queue; }

    /// Returns the descriptor and starts watching it. Returns -1 if none can be created.
    int watch() noexcept;

    /// Waits until a queue is ready and returns it. RPMA_E_NO_COMPLETION: the descriptor is non-blocking, or a signal
    /// interrupted the wait.
    int wait(Cq*& queue);

private:
    friend class AnyQueue;
    int wait_unwatched(Cq*& queue);
    int take_event(Cq*& queue);
    Cq* ready_queue() noexcept;
    std::span<Cq* const> queues() const noexcept { return {queues_.data(), count_}; }

    const std::shared_ptr<Channel> channel_;
    std::array<Cq*, 2> queues_{};
    std::size_t count_ = 0;
    std::atomic<bool> watched_{false};
    std::atomic<std::size_t> turn_{0};  // the queue to check first, so that a busy queue does not starve the other
};

class Cq final : public WithHandle<Cq, rpma_cq, 11> {
public:
    static constexpr const char* invalid_handle = no_cq;

    /// Creates a queue with its own channel, or with the channel of another queue.
    static Result<std::unique_ptr<Cq>> create(const std::shared_ptr<Device>& device, std::uint32_t capacity,
                                              std::shared_ptr<CompletionChannel> shared_channel = nullptr);

    ~Cq() { end_calls(); }

    const std::shared_ptr<CompletionQueue>& queue() const noexcept { return queue_; }
    CompletionChannel& channel() const noexcept { return *channel_; }
    bool shares_channel() const noexcept { return shares_channel_; }

    /// Invalidates the handle, and releases the calls that wait for the queue.
    void end_calls() noexcept {
        if (revoke()) end_waits(handle());
    }

    /// Stores the descriptor of the channel. Returns 0 or an error of librpma.
    int get_fd(int& fd) const noexcept;

    /// For a queue of one connection: delays flushed completions until this flag says that the end was reported.
    void follow(const std::atomic<bool>& end_reported) noexcept { end_reported_ = &end_reported; }

    /// Takes a completion. Returns false if there is none.
    [[gnu::always_inline]] bool take(ibv_wc& wc) noexcept {
        UninitializedCompletions<1> memory;
        if (!queue_->poll(memory.first())) return false;
        show(memory.first(), wc);
        return true;
    }

    /// Takes several completions and returns their number.
    std::size_t take(std::span<ibv_wc> out) noexcept;

private:
    Cq(std::shared_ptr<CompletionChannel> channel, bool shares_channel)
        : channel_(std::move(channel)), shares_channel_(shares_channel) {}

    [[gnu::always_inline]] void show(const Completion& completion, ibv_wc& wc) const noexcept {
        write_wc(completion, completion.code == CompletionCode::Success ? IBV_WC_SUCCESS : failure(completion.code),
                 wc);
    }
    [[gnu::cold, gnu::noinline]] ibv_wc_status failure(CompletionCode code) const noexcept;
    void await_end() const noexcept;

    const std::shared_ptr<CompletionChannel> channel_;
    std::shared_ptr<CompletionQueue> queue_;
    const bool shares_channel_;
    const std::atomic<bool>* end_reported_ = nullptr;  // null for a shared receive queue
};

/// Creates a channel for the two queues of a connection.
Result<std::shared_ptr<CompletionChannel>> make_channel(const std::shared_ptr<Device>& device);

}  // namespace viaduct::rpma
