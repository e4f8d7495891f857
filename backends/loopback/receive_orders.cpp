// SPDX-License-Identifier: BSD-3-Clause
// What the peer asks this end to execute in its place: RDMA operations on memory that it cannot reach, and flushes.
#include <atomic>
#include <cstring>
#include <utility>

#include "backends/loopback/device.hpp"
#include "backends/loopback/endpoint.hpp"
#include "backends/loopback/receive_queue.hpp"
#include "backends/support/atomic_word.hpp"

namespace viaduct::loopback {
namespace {

using wire::SlotKind;

/// The access to a region that an operation for the agent requires, and what it counts as.
struct Order {
    RemoteUse use;
    CompletedOperation operation;
    CountedOperation served;
};

Order order_of(SlotKind kind) noexcept {
    switch (kind) {
        case SlotKind::AgentRead: return {RemoteUse::Read, CompletedOperation::RdmaRead, CountedOperation::ServeRead};
        case SlotKind::AgentFetchAdd:
        case SlotKind::AgentCompareSwap:
            return {RemoteUse::Atomic, CompletedOperation::FetchAdd, CountedOperation::ServeAtomic};
        default: return {RemoteUse::Write, CompletedOperation::RdmaWrite, CountedOperation::ServeWrite};
    }
}

/// Returns false if the memory is not there or cannot be written.
bool execute_order(SlotKind kind, const wire::AgentTransfer& order, std::byte* area, std::uint32_t length) noexcept {
    auto* const target = reinterpret_cast<std::byte*>(order.address);
    const auto give_back = [area](std::uint64_t old) { std::memcpy(area, &old, sizeof old); };
    switch (kind) {
        case SlotKind::AgentWrite: return support::deliver_piece(target, area, length);
        case SlotKind::AgentRead: return copy_guarded(area, target, length);
        case SlotKind::AgentFetchAdd: return survives([&] { give_back(support::fetch_add(target, order.value)); });
        case SlotKind::AgentCompareSwap:
            return survives([&] { give_back(support::compare_swap(target, order.compare, order.value)); });
        default: return survives([&] { support::atomic_word(target).store(order.value, std::memory_order_release); });
    }
}

}  // namespace

/// Starts the flush that the slot requests, or checks whether it is done. consume() handles the result.
bool ReceiveQueue::is_flushed(const wire::Slot& slot) noexcept {
    if (flush_ != nullptr) return flush_->state.load(std::memory_order_acquire) != support::FlushJob::State::Running;
    const auto order = wire::read_payload<wire::AgentTransfer>(slot);
    if (!endpoint_.peer_may_access(RemoteUse::Flush, {order.address, order.key}, order.value)) return true;
    flush_ = endpoint_.start_flush(order.address, order.value);
    return flush_ == nullptr;
}

void ReceiveQueue::refuse_order(RemoteUse use, CompletedOperation operation, const wire::AgentTransfer& order,
                                std::uint64_t bytes) noexcept {
    endpoint_.refused_access(use, operation, {order.address, order.key}, bytes);
    fail_connection(wire::Fault::Protection, true);
}

/// Handles a flush that is done or that was never started, because access was denied or memory or threads ran out.
void ReceiveQueue::finish_flush(const wire::Slot& slot) noexcept {
    const auto job = std::exchange(flush_, nullptr);
    if (job != nullptr && job->state.load(std::memory_order_acquire) == support::FlushJob::State::Done) return;
    const auto order = wire::read_payload<wire::AgentTransfer>(slot);
    if (!endpoint_.peer_may_access(RemoteUse::Flush, {order.address, order.key}, order.value))
        return refuse_order(RemoteUse::Flush, CompletedOperation::Flush, order, order.value);
    fail_connection(wire::Fault::Operation, false);
}

/// Executes an RDMA operation that the peer could not execute itself. The checks are repeated, because the peer may be
/// hostile and the region may have changed.
void ReceiveQueue::serve_agent_order(const Arrival& arrival, const wire::Slot& slot) noexcept {
    const auto order = wire::read_payload<wire::AgentTransfer>(slot);
    const bool word = arrival.kind != SlotKind::AgentRead && arrival.kind != SlotKind::AgentWrite;
    if (arrival.length > wire::fragment_bytes || order.offset > wire::area_bytes - arrival.length ||
        (word && (arrival.length != 8 || order.address % 8 != 0)))
        return stop();
    const auto [use, operation, served] = order_of(arrival.kind);
    const bool executed = [&, use = use] {
        const SharedLock executing(endpoint_.device().executing());
        return endpoint_.peer_may_access(use, {order.address, order.key}, arrival.length) &&
               execute_order(arrival.kind, order, ring_.ring().area + order.offset, arrival.length);
    }();
    if (!executed) return refuse_order(use, operation, order, arrival.length);
    traffic_.add(served, Way::Agent, arrival.length);
}

}  // namespace viaduct::loopback
