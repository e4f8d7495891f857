// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/completion_queue.hpp"

#include "backends/loopback/device.hpp"
#include "core/base/fence.hpp"
#include "core/base/waiting.hpp"
#include "core/log.hpp"

namespace viaduct::loopback {
namespace {

/// Up to this number, work queues are polled one by one, each at the cost of a load from the cache.
constexpr std::size_t max_polled_queues = 16;

/// If there are always enough completions for the consumer, only one in this many polls makes progress on the work
/// queues.
constexpr std::uint32_t look_every = 16;

/// While an oversubscribed queue has busy work queues, one in this many polls looks at the doorbell boards.
constexpr std::uint32_t answer_every = 4;

/// A work queue is not busy any more when so many polls have found nothing in it, which is checked now and then. Asking
/// its peer for doorbells again takes as long as some tens of polls.
constexpr std::uint32_t idle_after = 8192;
constexpr std::uint32_t check_idle_every = 1024;

}  // namespace

CompletionQueue::CompletionQueue(Device& device, const backend::CompletionQueueInit& init)
    : device_(device),
      context_(init.context),
      channel_(static_cast<Channel*>(init.channel)),
      observer_(init.observer),
      record_(init.record),
      capacity_(init.capacity) {
    if (channel_ != nullptr) channel_->join();
}

CompletionQueue::~CompletionQueue() {
    if (channel_ != nullptr) channel_->part(*this);
    if (is(armed)) device_.agent().sleep_ends();
    device_.completion_queue_closed();
}

[[gnu::always_inline]] inline void CompletionQueue::take_front(Completion& out) noexcept {
    const Item& item = items_.front();
    item.completion.load(out);
    subtract_alone(*item.outstanding, 1);
    items_.pop();
}

inline void CompletionQueue::finish_taking() noexcept {
    if (is(waits_for_room)) [[unlikely]] {
        set(waits_for_room, false);
        progress();
    }
    signal_items();
}

std::size_t CompletionQueue::take(std::span<Completion> out) noexcept {
    std::size_t taken = 0;
    for (; taken < out.size() && !items_.empty(); ++taken) {
        if (is(counting) && items_.front().completion.counts()) set(counting, --solicited_ != 0);
        take_front(out[taken]);
    }
    if (taken != 0) finish_taking();
    return taken;
}

/// Taking makes room, in which more may be queued. They are older than what work queues write into the array.
inline std::size_t CompletionQueue::take_all(std::span<Completion> out) noexcept {
    std::size_t taken = take(out);
    while (taken < out.size() && !items_.empty()) taken += take(out.subspan(taken));
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
        const LockGuard guard(lock_);
        count_poll();
        if (!is(oversubscribed)) [[likely]]
            return poll_each(out);
    }
    return poll_many(out);
}

inline std::size_t CompletionQueue::poll_each(std::span<Completion> out) noexcept {
    const std::size_t taken = take_all(out);
    const bool look = taken < out.size() || polls() % look_every == 0;
    return look ? taken + find(out.subspan(taken)) : taken;
}

/// The common case is a queued completion that needs nothing else, or a completion queue of one work queue, which may
/// have one. It takes no registers that have to be saved.
bool CompletionQueue::poll_one(Completion& out) noexcept {
    if (!lock_.try_lock_as_owner()) [[unlikely]]
        return poll_one_slowly(out);
    count_poll();
    if (!items_.empty()) {
        if (special_ != 0 || polls() % look_every == 0) return poll_one_as_owner(out);
        take_front(out);
        lock_.unlock_as_owner();
        return true;
    }
    if (WorkQueue* const only = only_) {
        lock_.assume_released();
        return only->poll_one_as_owner(out);
    }
    return is(oversubscribed) ? poll_one_as_owner(out) : find_one_as_owner(out);
}

bool CompletionQueue::poll_one_slowly(Completion& out) noexcept { return poll({&out, 1}) != 0; }

// The rest of poll_one(), which took the lock and counted the poll.

bool CompletionQueue::find_one_as_owner(Completion& out) noexcept {
    const bool found = find({&out, 1}) != 0;
    lock_.unlock_as_owner();
    return found;
}

bool CompletionQueue::poll_one_as_owner(Completion& out) noexcept {
    const bool many = is(oversubscribed);
    if (!many) {
        take({&out, 1});
        if (polls() % look_every == 0) progress();
    }
    lock_.unlock_as_owner();
    return !many || poll_many({&out, 1}) != 0;
}

/// Lets the work queues write completions into an array, until it is full. Returns their number.
inline std::size_t CompletionQueue::find(std::span<Completion> out) noexcept {
    set_output(out);
    progress();
    return end_output(out);
}

std::size_t CompletionQueue::poll_many(std::span<Completion> out) noexcept {
    Others others;
    std::size_t found = 0;
    {
        const LockGuard guard(lock_);
        found = is(oversubscribed) ? poll_ready(out, others) : poll_each(out);  // another thread may have detached one
    }
    if (others.count == 0) return found;
    serve(others);
    if (found != 0) return found;
    const LockGuard guard(lock_);
    return take(out);
}

/// As poll() for an oversubscribed queue: polls only busy work queues and those whose doorbell rang. These do not stop
/// when the array is full, because the doorbell does not ring again for what has arrived.
std::size_t CompletionQueue::poll_ready(std::span<Completion> out, Others& others) noexcept {
    const std::size_t taken = take_all(out);
    if (!out.empty() && taken == out.size() && polls() % look_every != 0) return taken;
    const std::span<Completion> rest = out.subspan(taken);
    set_output(rest);
    poll_busy();
    const bool found = output_ != rest.data();
    const bool in_turn = polls() % (found ? look_every : answer_every) == 0;
    if (ready_->busy_count == 0 || in_turn) answer_doorbell(others);
    if (in_turn && !ready_->revisited.empty()) revisit_one();
    if (polls() % check_idle_every == 0) retire_idle();
    return taken + end_output(rest);
}

void CompletionQueue::poll_busy() noexcept {
    for (WorkQueue* queue : ready_->all_busy()) {
        const std::uint32_t before = queue->outstanding();
        const std::size_t queued = items_.size();
        queue->progress();
        if (queue->outstanding() != before || items_.size() != queued) queue->used_at_ = polls();
    }
}

void CompletionQueue::revisit_one() noexcept {
    auto& all = ready_->revisited;
    WorkQueue*& place = all[++ready_->next_revisited % all.size()];
    place->progress();
    if (place->awaits_confirmation()) return;
    place->revisited_ = false;
    place = all.back();
    all.pop_back();
}

void CompletionQueue::revisit(WorkQueue& queue) noexcept {
    if (!queue.busy_ && !std::exchange(queue.revisited_, true)) ready_->revisited.push_back(&queue);
}

void CompletionQueue::answer_doorbell(Others& others) noexcept {
    device_.doorbell().take([&](std::uint32_t number) {
        device_.consumer_polls();
        if (device_.serve_directly(number, *this)) return;
        if (others.count != others.numbers.size())
            others.numbers[others.count++] = number;
        else
            device_.doorbell().ring_self(number);  // for the next poll
    });
}

/// Connections that have ended are closed.
void CompletionQueue::serve(const Others& others) noexcept {
    const CancellationHold hold;
    for (const std::uint32_t number : std::span(others.numbers).first(others.count)) device_.serve(number);
}

bool CompletionQueue::rings_often(const WorkQueue& queue) noexcept {
    if (!is(oversubscribed) || queue.busy_) return false;
    if (std::ranges::find(ready_->rang, &queue) != ready_->rang.end())
        return ready_->busy_count + 2 <= Ready::max_busy;  // for both queues of its endpoint
    ready_->rang[ready_->rings++ % ready_->rang.size()] = &queue;
    return false;
}

void CompletionQueue::add_busy(WorkQueue& queue) noexcept {
    if (!is(oversubscribed) || queue.busy_ || ready_->busy_count == Ready::max_busy) return;
    queue.busy_ = true;
    queue.used_at_ = polls();
    ready_->busy[ready_->busy_count++] = &queue;
}

/// Peers of idle work queues ring again. Messages that they sent before they could see that are found here.
void CompletionQueue::retire_idle() noexcept {
    const auto is_idle = [this](const WorkQueue* queue) { return polls() - queue->used_at_ > idle_after; };
    const auto all = ready_->all_busy();
    const auto idle = std::ranges::partition(all, [&](const WorkQueue* queue) { return !is_idle(queue); });
    if (idle.empty()) return;
    ready_->busy_count -= idle.size();
    for (WorkQueue* queue : idle) {
        queue->busy_ = false;
        queue->expect_ring();
    }
    Fence::heavy();
    for (WorkQueue* queue : idle) queue->progress();
}

bool CompletionQueue::ready() noexcept {
    Others others;
    {
        const LockGuard guard(lock_);
        count_poll();
        if (!is(oversubscribed))
            progress();
        else if (items_.empty())
            poll_ready({}, others);
        if (others.count == 0) return signal_items();
    }
    serve(others);
    const LockGuard guard(lock_);
    return signal_items();
}

void CompletionQueue::progress() noexcept {
    for (WorkQueue* queue : attached_) queue->progress();
}

bool CompletionQueue::has_room() noexcept {
    if (is_full()) set(waits_for_room, true);
    return !is(waits_for_room);
}

void CompletionQueue::find_room() noexcept {
    room_ = std::min<std::size_t>(capacity_ - reserved_, items_.size() + items_.room());
}

/// Makes room for one more item. Returns false if the queue is full or memory runs out.
bool CompletionQueue::make_room() noexcept {
    const bool has_place = !is_full() && items_.reserve(items_.size() + 1);
    if (!is(armed)) find_room();
    return has_place;
}

void CompletionQueue::lose(WorkQueue& from, std::uint64_t endpoint_context, CompletedOperation operation) noexcept {
    from.count_polled();
    if (!is_full()) log(LogLevel::Error, "out of memory: a completion is lost");
    device_.raise({.kind = AsyncEventKind::CompletionQueueOverrun,
                   .endpoint_context = endpoint_context,
                   .completion_queue_context = context_,
                   .operation = operation});
}

void CompletionQueue::disarm() noexcept {
    set(armed, false);
    find_room();
    device_.agent().sleep_ends();
    channel_->leave_event(*this, context_);
}

Status CompletionQueue::arm(Arm what) noexcept {
    if (channel_ == nullptr) return {Code::InvalidState, "the completion queue has no channel"};
    {
        const LockGuard guard(lock_);
        if (!is(armed)) {
            channel_->take_back_event(*this);
            set(armed, true);
            room_ = 0;
            armed_for_ = what;
            device_.agent().sleep_begins();
            for (WorkQueue* queue : is(oversubscribed) ? ready_->all_busy() : std::span(attached_))
                queue->expect_ring();
            if (is(oversubscribed))
                for (WorkQueue* queue : ready_->revisited) queue->expect_ring();
        }
        if (what == Arm::Any) armed_for_ = Arm::Any;
    }
    Fence::heavy();  // the caller's next poll finds messages whose senders did not see the flag
    return {};
}

Status CompletionQueue::resize(std::uint32_t capacity) noexcept {
    const BiasedLock::SlowPathGuard guard(lock_);
    if (items_.size() + reserved_ > capacity)
        return {Code::Busy, "the new capacity is less than the number of pending completions"};
    capacity_ = capacity;
    room_ = 0;
    if (is(waits_for_room)) finish_taking();
    return {};
}

void CompletionQueue::attach(WorkQueue& queue) {
    const BiasedLock::SlowPathGuard guard(lock_);
    if (attached_.size() >= max_polled_queues) {
        if (ready_ == nullptr) ready_ = std::make_unique<Ready>();
        if (ready_->revisited.capacity() <= attached_.size()) ready_->revisited.reserve(2 * attached_.size());
    }
    attached_.push_back(&queue);
    attached_changed();
}

void CompletionQueue::detach(WorkQueue& queue) noexcept {
    const BiasedLock::SlowPathGuard guard(lock_);
    std::erase(attached_, &queue);
    for (std::size_t i = 0; i < items_.size(); ++i)
        if (items_[i].outstanding == &queue.outstanding_) items_[i].outstanding = &orphans_;
    if (queue.busy_) {
        std::ranges::partition(ready_->all_busy(), [&](const WorkQueue* busy) { return busy != &queue; });
        --ready_->busy_count;
    }
    if (queue.revisited_) std::erase(ready_->revisited, &queue);
    if (ready_ != nullptr) std::ranges::replace(ready_->rang, static_cast<const WorkQueue*>(&queue), nullptr);
    attached_changed();
}

void CompletionQueue::attached_changed() noexcept {
    only_ = attached_.size() == 1 ? attached_.front() : nullptr;
    set_oversubscribed(attached_.size() > max_polled_queues);
}

void CompletionQueue::set_oversubscribed(bool on) noexcept {
    const bool before = is(oversubscribed);
    set(oversubscribed, on);
    if (on && !before) {
        for (WorkQueue* queue : ready_->all_busy()) queue->busy_ = false;  // from an earlier time
        ready_->busy_count = 0;
        for (WorkQueue* queue : attached_) queue->expect_ring();
        Fence::heavy();
        device_.ring_all_connections();  // for messages that arrived before peers could see the need-wakeup flag
    }
}

}  // namespace viaduct::loopback
