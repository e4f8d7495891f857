// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/receive_queue.hpp"

#include <cerrno>
#include <new>

#include "backends/support/post_each.hpp"
#include "backends/support/sge_list.hpp"
#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/device.hpp"
#include "backends/verbs/pieces.hpp"
#include "core/base/internals.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {

ReceiveQueue::ReceiveQueue(Device& device, const backend::EndpointInit& init)
    : WorkQueue(QueueKind::Receive, init), shared_(init.shared_receives != nullptr), regions_(device.nic().regions()) {
    set_direct(!shared_);
    work_.sg_list = &piece_;
    work_.num_sge = 1;
}

Status ReceiveQueue::buffer(const ReceiveRequest& request) noexcept try {
    buffered_.push_back({request.context, request.fault, {request.sges.begin(), request.sges.end()}});
    count();
    return {};
} catch (const std::bad_alloc&) {
    return {Code::NoResources, "out of memory"};
}

/// Removes the last request, which the hardware has refused.
Status ReceiveQueue::refuse(int error) noexcept {
    unpush();
    return error == ENOMEM ? Status(Code::QueueFull, "the receive queue of the device is full")
                           : Status::from_errno(error, "ibv_post_recv");
}

Status ReceiveQueue::post_to_hardware(const ReceiveRequest& request) noexcept {
    if (const Status status = make_place(); !status.ok()) return status;
    const bool valid = request.fault == CompletionCode::Success;
    Slot& slot = *new (&slot_at(position())) Slot{.queue = this,
                                                  .completion = {.context = request.context,
                                                                 .endpoint_context = endpoint_context(),
                                                                 .operation = CompletedOperation::Receive},
                                                  .first_piece = request.sges.empty() ? Sge{} : request.sges.front(),
                                                  .next = position() + 1,
                                                  .report = valid ? Slot::Report::Received : Slot::Report::Examined,
                                                  .fault = request.fault};
    Pieces pieces = valid ? Pieces(request.sges, true, regions_) : Pieces::unusable();
    ibv_recv_wr work{.wr_id = reinterpret_cast<std::uintptr_t>(&slot),
                     .next = nullptr,
                     .sg_list = pieces.data(),
                     .num_sge = pieces.count()};
    push();
    ibv_recv_wr* refused = nullptr;
    if (const int error = ibv_post_recv(queue_pair_, &work, &refused); error != 0) return refuse(error);
    return {};
}

Status ReceiveQueue::enqueue(const ReceiveRequest& request) noexcept {
    if (request.sges.size() > max_sges()) return {Code::InvalidParameter, "too many pieces"};
    if (!make_room()) return {Code::QueueFull, "receive queue"};
    if (mode() == Mode::Live) return post_to_hardware(request);
    if (mode() == Mode::Idle) return buffer(request);
    flush_at_once(request.context, CompletedOperation::Receive);
    return {};
}

Status ReceiveQueue::post(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
    posted = 0;
    if (shared_) return {Code::InvalidState, "the endpoint uses a shared receive queue"};
    const LockGuard lock(mutex());
    return support::post_each(requests, posted, [this](const ReceiveRequest& request) VIADUCT_REQUIRES(mutex()) {
        const Status status = enqueue(request);
        if (!status.ok()) return status;
        count_accepted(support::total_length(request.sges));
        return status;
    });
}

/// Posts a valid request that has one piece, at the next position, for which is_direct() is true. The mutex is held,
/// and is released.
[[gnu::always_inline]] inline const Status* ReceiveQueue::post_directly(std::uint32_t place, std::uint64_t context,
                                                                        const Sge& piece) noexcept {
    Slot& slot = slot_at(place);
    slot.completion.context = context;
    slot.completion.operation = CompletedOperation::Receive;
    slot.completion.code = CompletionCode::Success;
    slot.completion.with_immediate = false;
    slot.completion.invalidated = false;
    slot.first_piece = piece;
    slot.next = place + 1;
    slot.report = Slot::Report::Received;
    slot.fault = CompletionCode::Success;
    work_.wr_id = reinterpret_cast<std::uintptr_t>(&slot);
    piece_ = {.addr = reinterpret_cast<std::uintptr_t>(piece.address), .length = piece.length, .lkey = piece.key};
    push_directly(place);
    count_accepted(piece.length);
    if (ibv_post_recv(queue_pair_, &work_, &refused_) != 0) [[unlikely]]
        return post_again();
    mutex().unlock();
    return nullptr;
}

/// Posts the last direct request, which the hardware has refused, in the general way, or reports why that fails.
const Status* ReceiveQueue::post_again() noexcept {
    (void)refuse(0);
    const Slot& slot = slot_at(position());
    const Sge piece = slot.first_piece;
    const Status status = enqueue({.context = slot.completion.context, .sges = {&piece, 1}});
    if (!status.ok()) {
        accepted_.add(-std::uint64_t{1});
        accepted_bytes_.add(-std::uint64_t{piece.length});
    }
    mutex().unlock();
    return backend::kept(status);
}

const Status* ReceiveQueue::post(const ReceiveRequest& request) noexcept {
    if (request.sges.size() != 1 || !regions_.plain() || !mutex().try_lock()) [[unlikely]]
        return support::post_generally(*this, request);
    const std::uint32_t place = position();
    if (is_direct(place)) return post_directly(place, request.context, request.sges.front());
    mutex().unlock();
    return support::post_generally(*this, request);
}

/// As receive_one(), which calls this with the mutex held if it does not know whether there is room.
const Status* ReceiveQueue::find_room_and_post(std::uint64_t context, void* address, std::uint32_t length,
                                               std::uint32_t key) noexcept {
    const std::uint32_t place = position();
    if (is_direct(place)) return post_directly(place, context, {address, key, length});
    mutex().unlock();
    return support::receive_one_generally(*this, context, address, length, key);
}

const Status* ReceiveQueue::receive_one(std::uint64_t context, void* address, std::uint32_t length,
                                        std::uint32_t key) noexcept {
    if (!regions_.plain() || !mutex().try_lock()) [[unlikely]]
        return support::receive_one_generally(*this, context, address, length, key);
    const std::uint32_t place = position();
    if (!is_known_direct(place)) [[unlikely]]
        return find_room_and_post(context, address, length, key);
    return post_directly(place, context, {address, key, length});
}

Status ReceiveQueue::post_buffered() noexcept {
    while (!buffered_.empty()) {
        const BufferedReceive& kept = buffered_.front();
        const Status status =
            post_to_hardware({.context = kept.context, .fault = Internals::faulty(kept.fault), .sges = kept.sges});
        if (!status.ok()) return status;
        uncount();
        buffered_.pop_front();
    }
    return {};
}

}  // namespace viaduct::verbs
