// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/completion_queue.hpp"

#include "backends/software/device.hpp"
#include "core/base/internals.hpp"

namespace viaduct::software {

CompletionQueue::CompletionQueue(Device& device, const backend::CompletionQueueInit& init)
    : device_(device),
      node_(device.node()),
      context_(init.context),
      channel_(static_cast<Channel*>(init.channel)),
      observer_(init.observer),
      capacity_(init.capacity) {
    if (channel_ != nullptr) channel_->join();
}

CompletionQueue::~CompletionQueue() {
    const Node::Guard guard(node_);
    if (channel_ != nullptr) channel_->part(*this);
    if (armed_) node_.agent().sleep_ends();
    device_.completion_queue_closed();
}

std::size_t CompletionQueue::take(std::span<Completion> out) noexcept {
    std::size_t taken = 0;
    for (; taken < out.size() && !items_.empty(); ++taken) {
        Item& item = items_.front();
        out[taken] = item.completion;
        item.from->remove();
        item.from.reset();
        if (item.solicited) --solicited_;
        items_.pop();
    }
    if (taken != 0 && std::exchange(waits_for_room_, false)) node_.resume_waiting();
    return taken;
}

std::size_t CompletionQueue::poll(std::span<Completion> out) noexcept {
    const Node::Guard guard(node_);
    std::size_t taken = take(out);
    if (taken != 0) {
        node_.took_as_consumer(taken);
    } else {
        node_.poll_as_consumer();
        taken = take(out);
    }
    signal_items();
    return taken;
}

bool CompletionQueue::ready() noexcept {
    const Node::Guard guard(node_);
    if (items_.empty()) node_.poll_as_consumer();
    signal_items();
    return !items_.empty();
}

Status CompletionQueue::arm(Arm what) noexcept {
    if (channel_ == nullptr) return {Code::InvalidState, "the completion queue has no channel"};
    const Node::Guard guard(node_);
    if (armed_) {
        if (what == Arm::Any) armed_for_ = Arm::Any;
        return {};
    }
    channel_->take_back_event(*this);
    armed_ = true;
    armed_for_ = what;
    node_.send_held();
    node_.acknowledge();
    node_.agent().sleep_begins();
    return {};
}

Status CompletionQueue::resize(std::uint32_t capacity) noexcept {
    const Node::Guard guard(node_);
    if (items_.size() + reserved_ > capacity) return {Code::Busy, "the queue holds more completions"};
    capacity_ = capacity;
    if (std::exchange(waits_for_room_, false)) node_.resume_waiting();
    return {};
}

void CompletionQueue::push(const Completion& completion, const std::shared_ptr<WorkCount>& from,
                           bool solicited) noexcept {
    if (items_.size() + reserved_ >= capacity_ || !items_.reserve(items_.size() + 1)) {
        from->remove();
        device_.raise({.kind = AsyncEventKind::CompletionQueueOverrun,
                       .endpoint_context = completion.endpoint_context,
                       .completion_queue_context = context_,
                       .operation = completion.operation});
        return;
    }
    Item& item = items_.vacant();
    items_.commit();
    item.completion = completion;
    item.completion.observed = Internals::observed(observer_ != nullptr && observer_(completion));
    item.from = from;
    item.solicited = solicited || completion.code != CompletionCode::Success;
    if (item.solicited) ++solicited_;
    if (armed_) {
        if (armed_for_ == Arm::Any || item.solicited) disarm();
    }
}

void CompletionQueue::disarm() noexcept {
    armed_ = false;
    node_.agent().sleep_ends();
    channel_->leave_event(*this, context_);
}

}  // namespace viaduct::software
