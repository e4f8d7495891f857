// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/completion_queue.hpp"

#include <algorithm>

#include "backends/loopback/device.hpp"
#include "core/base/fence.hpp"
#include "core/log.hpp"

namespace viaduct::loopback {
namespace {

/// Up to this number, work queues are polled one by one, each at the cost of a load from the cache.
constexpr std::size_t max_polled_queues = 16;

/// If there are always enough completions for the consumer, only one in this many polls makes progress on the work
/// queues.
constexpr std::uint32_t look_every = 16;

}  // namespace

Result<std::uint64_t> Channel::take_event() noexcept {
    if (const auto event = events_.try_take()) return event->context;
    return Status(Code::WouldBlock, "no event is pending");
}

void Channel::take_back_event(const CompletionQueue& from) noexcept {
    events_.discard_if([&from](const Event& event) { return event.from == &from; });
}

CompletionQueue::CompletionQueue(Device& device, const backend::CompletionQueueInit& init)
    : device_(device),
      context_(init.context),
      channel_(static_cast<Channel*>(init.channel)),
      observer_(init.observer),
      capacity_(init.capacity) {
    if (channel_ != nullptr) channel_->join();
}

CompletionQueue::~CompletionQueue() {
    if (channel_ != nullptr) channel_->take_back_event(*this);
    device_.completion_queue_closed();
}

[[gnu::always_inline]] inline void CompletionQueue::take_front(Completion& out) noexcept {
    const Item& item = items_.front();
    item.completion.load(out);
    out.observed = item.observed;
    if (item.from != nullptr) item.from->count(-1);
    if (item.solicited) --solicited_;
    items_.pop();
}

inline void CompletionQueue::finish_taking() noexcept {
    if (waits_for_room_) [[unlikely]] {
        waits_for_room_ = false;
        progress();
    }
    signal_items();
}

std::size_t CompletionQueue::take(std::span<Completion> out) noexcept {
    std::size_t taken = 0;
    for (; taken < out.size() && !items_.empty(); ++taken) take_front(out[taken]);
    if (taken != 0) finish_taking();
    return taken;
}

// Queued completions are taken first. Those of work queues then go directly into the consumer's array. While enough
// completions are queued, most polls skip the work queues, because reading a slot that the peer is about to write slows
// the peer down.

std::size_t CompletionQueue::poll(std::span<Completion> out) noexcept {
    if (out.empty()) {
        (void)ready();
        return 0;
    }
    {
        const std::lock_guard guard(lock_);
        count_poll();
        const std::size_t taken = take(out);
        if (!oversubscribed_) {
            const bool look = taken < out.size() || polls() % look_every == 0;
            return look ? taken + find(out.subspan(taken)) : taken;
        }
        if (taken != 0) return taken;
    }
    return serve(out);
}

bool CompletionQueue::poll_one(Completion& out) noexcept {
    {
        const std::lock_guard guard(lock_);
        count_poll();
        if (!items_.empty()) {
            take_front(out);
            finish_taking();
            if (!oversubscribed_ && polls() % look_every == 0) [[unlikely]]
                progress();
            return true;
        }
        if (!oversubscribed_) [[likely]]
            return find({&out, 1}) != 0;
    }
    return serve({&out, 1}) != 0;
}

/// Lets the work queues write completions into an array. Returns their number.
inline std::size_t CompletionQueue::find(std::span<Completion> out) noexcept {
    output_ = out.data();
    output_end_ = out.data() + out.size();
    progress();
    const auto found = static_cast<std::size_t>(output_ - out.data());
    output_ = output_end_ = nullptr;
    return found;
}

/// The same for an oversubscribed queue, without the lock.
std::size_t CompletionQueue::serve(std::span<Completion> out) noexcept {
    device_.serve_connections();
    const std::lock_guard guard(lock_);
    return take(out);
}

bool CompletionQueue::ready() noexcept {
    {
        const std::lock_guard guard(lock_);
        polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        if (!oversubscribed_) progress();
        if (!oversubscribed_ || !items_.empty()) return signal_items();
    }
    device_.serve_connections();
    const std::lock_guard guard(lock_);
    return signal_items();
}

void CompletionQueue::progress() noexcept {
    for (WorkQueue* queue : attached_) queue->progress();
}

bool CompletionQueue::has_room() noexcept {
    waits_for_room_ = waits_for_room_ || (output_ == output_end_ && items_.size() >= capacity_);
    return !waits_for_room_;
}

/// Makes room for one more item. Returns false if the queue is full or memory runs out.
bool CompletionQueue::make_room() noexcept {
    room_ = capacity_;
    if (items_.size() >= capacity_) return false;
    const bool reserved = items_.reserve(items_.size() + 1);
    room_ = std::min<std::size_t>(capacity_, items_.size() + items_.room());
    return reserved;
}

void CompletionQueue::lose(WorkQueue& from, std::uint64_t endpoint_context, CompletedOperation operation) noexcept {
    from.count(-1);
    if (items_.size() < capacity_) return log(LogLevel::Error, "out of memory: a completion is lost");
    device_.raise({.kind = AsyncEventKind::CompletionQueueOverrun,
                   .endpoint_context = endpoint_context,
                   .completion_queue_context = context_,
                   .operation = operation});
}

void CompletionQueue::disarm() noexcept {
    armed_ = false;
    channel_->leave_event(*this, context_);
}

Status CompletionQueue::arm(Arm what) noexcept {
    if (channel_ == nullptr) return {Code::InvalidState, "the completion queue has no channel"};
    if (channel_->fd() < 0) return {Code::NoResources, "the channel has no descriptor"};
    {
        const std::lock_guard guard(lock_);
        if (!armed_) {
            channel_->take_back_event(*this);
            armed_ = true;
            armed_for_ = what;
            if (!oversubscribed_)
                for (WorkQueue* queue : attached_) queue->expect_ring();
        }
        if (what == Arm::Any) armed_for_ = Arm::Any;
    }
    Fence::heavy();  // the caller's next poll finds messages whose senders did not see the flag
    device_.agent().end_busy_polling();
    return {};
}

Status CompletionQueue::resize(std::uint32_t capacity) noexcept {
    const BiasedLock::SlowPathGuard guard(lock_);
    if (items_.size() > capacity)
        return {Code::Busy, "the new capacity is less than the number of pending completions"};
    capacity_ = capacity;
    room_ = 0;
    return {};
}

void CompletionQueue::attach(WorkQueue& queue) {
    const BiasedLock::SlowPathGuard guard(lock_);
    attached_.push_back(&queue);
    set_oversubscribed(attached_.size() > max_polled_queues);
}

void CompletionQueue::detach(WorkQueue& queue) noexcept {
    const BiasedLock::SlowPathGuard guard(lock_);
    std::erase(attached_, &queue);
    for (std::size_t i = 0; i < items_.size(); ++i)
        if (items_[i].from == &queue) items_[i].from = nullptr;
    set_oversubscribed(attached_.size() > max_polled_queues);
}

void CompletionQueue::set_oversubscribed(bool oversubscribed) noexcept {
    if (!std::exchange(oversubscribed_, oversubscribed) && oversubscribed) {
        for (WorkQueue* queue : attached_) queue->expect_ring();
        Fence::heavy();
        device_.ring_all_connections();  // for messages that arrived before peers could see the need-wakeup flag
    }
}

}  // namespace viaduct::loopback
