// SPDX-License-Identifier: BSD-3-Clause
// The completion queues and shared receive queues of the fake backend.
#include <algorithm>

#include "tests/support/fake_world.hpp"

namespace viaduct::testing::fake {

int Channel::fd() const noexcept {
    const std::lock_guard lock(world().mutex);
    return readable_.fd();
}

Result<std::uint64_t> Channel::take_event() noexcept {
    const std::lock_guard lock(world().mutex);
    if (events_.empty()) return Status(Code::WouldBlock, "no event waits");
    const std::uint64_t context = events_.front().context;
    events_.pop_front();
    readable_.set(!events_.empty());
    return context;
}

void Channel::leave_event(const CompletionQueue& queue, std::uint64_t context) {
    events_.push_back({&queue, context});
    readable_.set(true);
}

void Channel::take_back(const CompletionQueue& queue) noexcept {
    std::erase_if(events_, [&](const Event& event) { return event.queue == &queue; });
    readable_.set(!events_.empty());
}

CompletionQueue::CompletionQueue(std::shared_ptr<World> world, Device& device,
                                 const backend::CompletionQueueInit& init) noexcept
    : CountedObject(std::move(world)),
      device_(device),
      context_(init.context),
      capacity_(init.capacity),
      channel_(static_cast<Channel*>(init.channel)) {}

CompletionQueue::~CompletionQueue() {
    const std::lock_guard lock(world().mutex);
    if (channel_ != nullptr) channel_->take_back(*this);
}

std::size_t CompletionQueue::poll(std::span<Completion> out) noexcept {
    const std::lock_guard lock(world().mutex);
    world().expire();
    const std::size_t count = std::min(out.size(), entries_.size());
    for (std::size_t i = 0; i < count; ++i) {
        const Entry& entry = entries_.front();
        out[i] = entry.completion;
        --entry.outstanding->of(entry.completion.queue());
        entries_.pop_front();
    }
    if (count != 0) world().run_waiting();
    notify();
    return count;
}

bool CompletionQueue::ready() noexcept {
    const std::lock_guard lock(world().mutex);
    world().expire();
    notify();
    return !entries_.empty();
}

Status CompletionQueue::arm(Arm what) noexcept {
    if (channel_ == nullptr) return {Code::InvalidState, "completion queue without a channel"};
    const std::lock_guard lock(world().mutex);
    if (!armed_) channel_->take_back(*this);
    if (armed_ != Arm::Any) armed_ = what;
    return {};
}

Status CompletionQueue::resize(std::uint32_t capacity) noexcept {
    const std::lock_guard lock(world().mutex);
    if (entries_.size() > capacity) return {Code::Busy, "completions wait"};
    capacity_ = capacity;
    world().run_waiting();
    return {};
}

void CompletionQueue::push(const Completion& completion, const std::shared_ptr<Outstanding>& outstanding,
                           bool solicited) {
    if (full()) {
        --outstanding->of(completion.queue());
        device_.report({.kind = AsyncEventKind::CompletionQueueOverrun,
                        .endpoint_context = completion.endpoint_context,
                        .completion_queue_context = context_,
                        .operation = completion.operation});
        return;
    }
    entries_.push_back({completion, outstanding, solicited});
    notify();
}

void CompletionQueue::notify() {
    const auto wakes = [this](const Entry& entry) {
        return armed_ == Arm::Any || entry.solicited || entry.completion.code != CompletionCode::Success;
    };
    if (!armed_ || std::ranges::none_of(entries_, wakes)) return;
    armed_.reset();
    channel_->leave_event(*this, context_);
}

Status SharedReceiveQueue::post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
    const std::lock_guard lock(world().mutex);
    posted = 0;
    for (const ReceiveRequest& request : requests) {
        if (request.sges.size() > device_.attributes().max_sges) return {Code::InvalidParameter, "too many pieces"};
        if (receives_.size() >= depth_) return {Code::QueueFull, "shared receive queue"};
        receives_.emplace_back(request);
        ++posted;
        world().run_waiting();
    }
    return {};
}

Status SharedReceiveQueue::arm_limit(std::uint32_t limit) noexcept {
    const std::lock_guard lock(world().mutex);
    limit_ = limit;
    check_limit();
    return {};
}

Status SharedReceiveQueue::resize(std::uint32_t depth) noexcept {
    const std::lock_guard lock(world().mutex);
    if (depth < limit_) return {Code::InvalidParameter, "depth below the armed limit"};
    if (receives_.size() > depth) return {Code::Busy, "receives wait"};
    depth_ = depth;
    return {};
}

std::uint32_t SharedReceiveQueue::outstanding() const noexcept {
    const std::lock_guard lock(world().mutex);
    return static_cast<std::uint32_t>(receives_.size());
}

PostedReceive SharedReceiveQueue::take() noexcept {
    PostedReceive receive = std::move(receives_.front());
    receives_.pop_front();
    check_limit();
    return receive;
}

void SharedReceiveQueue::check_limit() noexcept {
    if (receives_.size() >= limit_) return;
    limit_ = 0;
    device_.report({.kind = AsyncEventKind::SharedReceiveQueueLimit, .shared_receive_queue_context = context_});
}

}  // namespace viaduct::testing::fake
