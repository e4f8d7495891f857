// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/completion_queue.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "backends/verbs/device.hpp"
#include "backends/verbs/shared_receive_queue.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::verbs {
namespace {

/// The initial size of the hardware queue. It grows when more work is posted.
constexpr std::uint32_t first_size = 256;
constexpr std::size_t batch = 16;

}  // namespace

CompletionQueue::CompletionQueue(Device& device, const backend::CompletionQueueInit& init)
    : device_(device), context_(init.context), channel_(static_cast<Channel*>(init.channel)), capacity_(init.capacity) {
    if (channel_ != nullptr) channel_->attach();
}

Result<std::unique_ptr<CompletionQueue>> CompletionQueue::create(Device& device,
                                                                 const backend::CompletionQueueInit& init) {
    std::unique_ptr<CompletionQueue> queue(new CompletionQueue(device, init));
    queue->mutex_.assume_held();  // no other thread knows the queue
    ibv_comp_channel* channel = queue->channel_ == nullptr ? nullptr : queue->channel_->hardware();
    const auto size = static_cast<int>(std::min(init.capacity, first_size));
    queue->hardware_.reset(ibv_create_cq(device.nic().context(), size, queue.get(), channel, 0));
    if (queue->hardware_ == nullptr) return Status::from_errno(errno, "ibv_create_cq");
    if (!queue->buffered_.reserve(static_cast<std::size_t>(size))) return Status(Code::NoResources, "out of memory");
    return queue;
}

CompletionQueue::~CompletionQueue() {
    disarm();
    if (channel_ != nullptr) channel_->detach(*this);
    hardware_.reset();
}

bool CompletionQueue::ready() noexcept {
    const LockGuard lock(mutex_);
    drain();
    notify();
    return !buffered_.empty();
}

Status CompletionQueue::arm(Arm what) noexcept {
    if (channel_ == nullptr) return {Code::InvalidState, "the completion queue has no channel"};
    const LockGuard lock(mutex_);
    if (const Status status = channel_->take_back(*this); !status.ok()) return status;
    const Armed wanted = what == Arm::Any ? Armed::Any : Armed::Solicited;
    Armed now = armed_.load();
    do {
        if (now >= wanted) return {};
    } while (!armed_.compare_exchange_weak(now, wanted));
    const int error = ibv_req_notify_cq(hardware_.get(), what == Arm::Solicited ? 1 : 0);
    if (error == 0) return {};
    disarm();
    return Status::from_errno(error, "ibv_req_notify_cq");
}

Status CompletionQueue::resize(std::uint32_t capacity) noexcept {
    const LockGuard lock(mutex_);
    drain();
    if (buffered_.size() > capacity) return {Code::Busy, "completions wait"};
    capacity_ = capacity;
    return {};
}

const RegionTable& CompletionQueue::regions() const noexcept { return device_.nic().regions(); }

WindowTable& CompletionQueue::windows() const noexcept { return device_.nic().windows(); }

void CompletionQueue::progress() noexcept {
    const LockGuard lock(mutex_);
    drain();
    notify();
}

Status CompletionQueue::reserve(std::uint32_t places) noexcept {
    const LockGuard lock(mutex_);
    return take_places(places);
}

/// As reserve().
Status CompletionQueue::take_places(std::uint32_t places) noexcept {
    if (!grow(places)) {
        take_back_places();
        if (!grow(places)) return {Code::QueueFull, "the completion queue of the device is full"};
    }
    if (!buffered_.reserve(buffered_.size() + reserved_ + places)) return {Code::NoResources, "out of memory"};
    reserved_ += places;
    return {};
}

/// Makes the hardware queue large enough for more places. Returns false if the device does not support that.
bool CompletionQueue::grow(std::uint32_t places) noexcept {
    const std::uint32_t wanted = reserved_ + places;
    const auto size = static_cast<std::uint32_t>(hardware_->cqe);
    if (wanted <= size) return true;
    const std::uint32_t limit = device_.attributes().max_completions;
    if (wanted > limit) return false;
    const CancellationHold hold;  // posts have none, and with an old kernel this is a write(2)
    return ibv_resize_cq(hardware_.get(), static_cast<int>(std::min(std::max(2 * size, wanted), limit))) == 0;
}

/// Skips queues to which others are posting at the moment.
void CompletionQueue::take_back_places() noexcept {
    for (WorkQueue* queue : queues_) {
        if (!queue->mutex().try_lock()) continue;
        const LockGuard lock(queue->mutex(), std::adopt_lock);
        release(queue->give_back());
    }
}

std::size_t CompletionQueue::take_buffered(std::span<Completion> out) noexcept {
    std::size_t taken = 0;
    while (taken < out.size() && !buffered_.empty()) {
        const Entry& entry = buffered_.front();
        out[taken++] = entry.completion;
        if (entry.queue != nullptr) entry.queue->taken();
        if (entry.completion.code != CompletionCode::Success) --failures_;
        buffered_.pop();
    }
    return taken;
}

/// Returns the completion. Returns false if it is not reported to the consumer.
bool CompletionQueue::interpret(const ibv_wc& result, Completion& completion) noexcept {
    auto& slot = *reinterpret_cast<Slot*>(result.wr_id);
    if (slot.queue == nullptr) [[unlikely]]
        return interpret_shared(slot, result, completion);
    return slot.queue->complete(slot, result, completion);
}

bool CompletionQueue::interpret_shared(Slot& slot, const ibv_wc& result, Completion& completion) noexcept {
    const auto receiver = shared_receivers_.find(result.qp_num);
    const bool known = receiver != shared_receivers_.end();
    if (known) receiver->second->complete_shared(slot, result, completion);
    SharedReceiveQueue::free(slot);
    return known;
}

[[gnu::always_inline]] inline std::size_t CompletionQueue::fetch(std::span<Completion> out) noexcept {
    std::array<ibv_wc, batch> results;
    std::size_t taken = 0;
    while (taken < out.size()) {
        const auto room = static_cast<int>(std::min(batch, out.size() - taken));
        const int count = ibv_poll_cq(hardware_.get(), room, results.data());
        for (int i = 0; i < count; ++i)
            if (interpret(results[static_cast<std::size_t>(i)], out[taken])) ++taken;
        if (count < room) break;
    }
    return taken;
}

/// The common case takes a completion from the hardware, in a queue that nobody waits for.
bool CompletionQueue::poll_one(Completion& out) noexcept {
    if (!mutex_.try_lock()) [[unlikely]]
        return poll({&out, 1}) != 0;
    if (!buffered_.empty() || armed_.load(std::memory_order_relaxed) != Armed::No) [[unlikely]] {
        mutex_.unlock();
        return poll({&out, 1}) != 0;
    }
    if (ibv_poll_cq(hardware_.get(), 1, &result_) <= 0) {
        mutex_.unlock();
        return false;
    }
    const auto& slot = *reinterpret_cast<const Slot*>(result_.wr_id);
    if (!WorkQueue::complete_plainly(slot, result_, out)) [[unlikely]]
        return finish_poll(out);
    mutex_.unlock();
    return true;
}

/// Continues a poll with what it took from the hardware.
bool CompletionQueue::finish_poll(Completion& out) noexcept {
    const bool reported = interpret(result_, out);
    mutex_.unlock();
    return reported || poll({&out, 1}) != 0;
}

std::size_t CompletionQueue::poll(std::span<Completion> out) noexcept {
    const LockGuard lock(mutex_);
    std::size_t taken = take_buffered(out);
    if (taken < out.size()) taken += fetch(out.subspan(taken));
    if (out.empty() || armed_.load(std::memory_order_relaxed) != Armed::No) {
        drain();
        notify();
    }
    return taken;
}

/// Stops if memory runs out; the remaining completions stay in the hardware queue.
void CompletionQueue::drain() noexcept {
    std::array<ibv_wc, batch> results;
    while (buffered_.reserve(buffered_.size() + 1)) {
        const auto room = static_cast<int>(std::min(batch, buffered_.room()));
        const int count = ibv_poll_cq(hardware_.get(), room, results.data());
        for (int i = 0; i < count; ++i) {
            const ibv_wc& result = results[static_cast<std::size_t>(i)];
            Entry entry{.queue = reinterpret_cast<const Slot*>(result.wr_id)->queue};
            if (entry.queue != nullptr) entry.queue->kept();  // before it leaves the ring
            if (interpret(result, entry.completion))
                buffer(entry);
            else if (entry.queue != nullptr)
                entry.queue->taken();
        }
        if (count < room) break;
    }
}

/// There must be room.
void CompletionQueue::buffer(const Entry& entry) noexcept {
    buffered_.push(entry);
    if (entry.completion.code != CompletionCode::Success) ++failures_;
}

void CompletionQueue::add(const Completion& completion, WorkQueue& queue) noexcept {
    if (buffered_.size() >= capacity_ || !buffered_.reserve(buffered_.size() + reserved_ + 1)) {
        queue.taken();
        device_.report({.kind = AsyncEventKind::CompletionQueueOverrun,
                        .endpoint_context = completion.endpoint_context,
                        .completion_queue_context = context_,
                        .operation = completion.operation});
        return;
    }
    buffer({completion, &queue});
    notify();
}

/// Leaves an event if the queue is armed and has completions. The hardware stays armed; its event is dropped later.
/// Only the hardware knows which messages were solicited, and it reports those itself.
void CompletionQueue::notify() noexcept {
    const std::size_t waking = armed_.load(std::memory_order_relaxed) == Armed::Any ? buffered_.size() : failures_;
    if (waking != 0 && disarm()) channel_->leave(*this);
}

Status CompletionQueue::attach(std::uint32_t number, WorkQueue& receives, const SharedReceiveQueue& shared,
                               std::uint32_t depth) {
    {
        const LockGuard lock(mutex_);
        Share& share = shares_[&shared];
        shared_receivers_.emplace(number, &receives);
        ++share.endpoints;
    }
    const Status status = make_places(shared, depth);
    if (!status.ok()) detach(number, shared);
    return status;
}

Status CompletionQueue::make_places(const SharedReceiveQueue& shared, std::uint32_t depth) noexcept {
    const LockGuard lock(mutex_);
    Share& share = shares_.find(&shared)->second;
    const std::uint32_t more = depth - std::min(share.places, depth);
    if (more != 0 && !take_places(more).ok())
        return {Code::NoResources, "the completion queue of the device cannot hold all receives of the shared queue"};
    share.places += more;
    return {};
}

void CompletionQueue::detach(std::uint32_t number, const SharedReceiveQueue& shared) noexcept {
    const LockGuard lock(mutex_);
    if (shared_receivers_.erase(number) == 0) return;
    const auto found = shares_.find(&shared);
    if (--found->second.endpoints != 0) return;
    release(found->second.places);
    shares_.erase(found);
}

void CompletionQueue::forget(const WorkQueue& queue, std::uint32_t places) noexcept {
    const LockGuard lock(mutex_);
    release(places);
    std::erase(queues_, &queue);
    for (std::size_t i = 0; i < buffered_.size(); ++i)
        if (buffered_[i].queue == &queue) buffered_[i].queue = nullptr;
}

}  // namespace viaduct::verbs
