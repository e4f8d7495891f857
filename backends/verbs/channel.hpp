// SPDX-License-Identifier: BSD-3-Clause
// The channel on which armed completion queues leave events. Events of the hardware arrive through an ibv_comp_channel;
// events of completions that the hardware does not know arrive through an eventfd. The descriptor for programs covers
// both and is created on demand.
#pragma once

#include <memory>
#include <vector>

#include "backends/verbs/owners.hpp"
#include "core/backend.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/unique_fd.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {

class CompletionQueue;

/// Thread-safe. Lock order: the mutex of a completion queue, then this mutex. No other lock is taken while it is held.
class Channel final : public backend::Channel {
public:
    static Result<std::unique_ptr<Channel>> create(std::shared_ptr<ibv_context> device);

    int fd() const noexcept override;
    Result<std::uint64_t> take_event() noexcept override;

    ibv_comp_channel* hardware() const noexcept { return hardware_.get(); }

    /// Makes room for the event of one more queue. Throws std::bad_alloc.
    void attach() {
        const LockGuard lock(mutex_);
        events_.reserve(queues_ + 1);
        ++queues_;
    }
    void detach(const CompletionQueue& queue) noexcept;

    /// Leaves an event that the hardware does not report.
    void leave(CompletionQueue& queue) noexcept {
        const LockGuard lock(mutex_);
        push(queue);
    }

    /// Removes pending events of the queue. Unreachable: no more will come, because the device was removed.
    Status take_back(const CompletionQueue& queue) noexcept;

private:
    explicit Channel(std::shared_ptr<ibv_context> device) noexcept : device_(std::move(device)) {}
    void push(CompletionQueue& queue) noexcept VIADUCT_REQUIRES(mutex_);
    void collect() noexcept VIADUCT_REQUIRES(mutex_);
    void show() noexcept VIADUCT_REQUIRES(mutex_) { readable_.set(!events_.empty() || loss_due_); }

    std::shared_ptr<ibv_context> device_;
    CompletionChannelOwner hardware_;
    mutable Mutex mutex_;
    mutable UniqueFd watched_ VIADUCT_GUARDED_BY(mutex_);
    std::vector<CompletionQueue*> events_ VIADUCT_GUARDED_BY(mutex_);
    std::size_t queues_ VIADUCT_GUARDED_BY(mutex_) = 0;
    bool lost_ VIADUCT_GUARDED_BY(mutex_) = false;      // the device was removed
    bool loss_due_ VIADUCT_GUARDED_BY(mutex_) = false;  // take_event() has not told that yet
    mutable ReadableFlag readable_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::verbs
