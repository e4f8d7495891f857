// SPDX-License-Identifier: BSD-3-Clause
// The order of a receive queue that is software: messages take its receives in the order in which they were posted, and
// complete them in that order. A receive that cannot take its message fails.
#pragma once

#include <cstdint>
#include <new>
#include <span>

#include "backends/support/refusals.hpp"
#include "backends/support/sge_list.hpp"
#include "backends/support/traffic.hpp"
#include "core/base/counter.hpp"
#include "core/base/fifo.hpp"
#include "viaduct/status.hpp"

namespace viaduct::support {

/// A message, or the notice of an RDMA write with immediate data, as the peer describes it.
struct Arrival {
    CompletedOperation operation = CompletedOperation::Receive;
    std::uint32_t total = 0;      // length of the message
    std::uint32_t immediate = 0;  // or the key of the window to invalidate
    bool with_immediate = false;
    bool invalidates = false;
    bool solicited = false;
    Way way = Way::Frame;  // in which the data came
};

/// The base of a `Queue`, which has these functions:
///   - endpoint(), is_shared(), outstanding(), is_full(), count_posted(), push(completion, solicited);
///   - reserve(requests): so many can be outstanding;
///   - was_posted(): a receive was posted; it completes now if the queue flushes;
///   - may_use(sge, bytes): whether a message may be written to the first bytes of an SGE;
///   - count(operation, way, bytes): counts a message that was received;
///   - refuse(code): the message could not be received; `code` is for the peer.
/// Its endpoint has own_region(key), domain_id() and tell(failed request).
template <class Queue>
class ReceiveOrder {
protected:
    /// Posts a receive; see backend::Endpoint.
    [[gnu::noinline]] Status enqueue(const ReceiveRequest& request) noexcept try {
        if (queue().is_shared()) return {Code::InvalidState, "the endpoint uses a shared receive queue"};
        if (queue().is_full()) return {Code::QueueFull, "the receive queue is full"};
        if (request.sges.size() > queue().endpoint().device_attributes().max_sges)
            return {Code::InvalidParameter, "too many pieces"};
        if (!entries_.reserve(queue().outstanding() + std::size_t{1})) return {Code::NoResources, "out of memory"};
        queue().reserve(entries_.capacity());
        entries_.vacant().assign(request);
        entries_.commit();
        queue().count_posted();
        posted_.add();
        posted_bytes_.add(total_length(request.sges));
        queue().was_posted();
        return {};
    } catch (const std::bad_alloc&) {
        return {Code::NoResources, "out of memory"};
    }

    void begin_message() noexcept {
        moved_ = 0;
        skipping_ = false;
    }

    /// Takes the next bytes of the message for the receive at the front. Returns false if the message is not as long as
    /// announced.
    bool take_fragment(const Arrival& arrival, std::span<const std::byte> bytes, bool last) noexcept {
        if (skipping_) return true;
        if (moved_ > arrival.total || bytes.size() > arrival.total - moved_) return false;
        // Each fragment is checked, because the memory may be deregistered meanwhile.
        CompletionCode code = check(arrival.total);
        if (code == CompletionCode::Success &&
            !scatter(entries_.front().sges.span(), moved_, bytes.data(), bytes.size()))
            code = CompletionCode::LocalProtection;
        if (code != CompletionCode::Success) {
            fail_front(arrival, code);
            skipping_ = true;
            return true;
        }
        moved_ += bytes.size();
        if (!last) return true;
        if (moved_ != arrival.total) return false;
        finish_front(arrival);
        return true;
    }

    /// The peer has lost the rest of the message.
    void abort_message(const Arrival& arrival) noexcept {
        if (!skipping_) fail_front(arrival, CompletionCode::PartialMessage);
    }

    /// Checks the receive at the front when a message arrives (guide, section 5.2). Only the memory that the message
    /// fills is checked.
    CompletionCode check(std::uint32_t total) noexcept {
        const Receive& entry = entries_.front();
        if (entry.fault != CompletionCode::Success) return entry.fault;
        if (total > entry.room() || total > queue().endpoint().max_transfer_bytes()) return CompletionCode::LocalLength;
        std::uint64_t left = total;
        for (const Sge& sge : entry.sges.span()) {
            const std::uint64_t used = std::min<std::uint64_t>(sge.length, left);
            if (!queue().may_use(sge, used)) return CompletionCode::LocalProtection;
            left -= used;
        }
        return CompletionCode::Success;
    }

    /// The same for the notice of a write, whose data are in place.
    void take_notice(const Arrival& arrival) noexcept {
        const CompletionCode fault = entries_.front().fault;
        return fault == CompletionCode::Success ? finish_front(arrival) : fail_front(arrival, fault);
    }

    void fail_front(const Arrival& arrival, CompletionCode code) noexcept {
        const bool too_long = code == CompletionCode::LocalLength;
        const CompletionCode told = too_long ? CompletionCode::RemoteLength : CompletionCode::RemoteOperation;
        if (wants_reasons()) explain_failure(arrival, code, told);
        complete_front(arrival, code);
        queue().refuse(told);
    }

    void complete_front(const Arrival& arrival, CompletionCode code) noexcept {
        const bool good = code == CompletionCode::Success;
        const bool has_word = good && (arrival.with_immediate || arrival.invalidates);
        queue().push({.context = entries_.front().context,
                      .endpoint_context = queue().endpoint().context(),
                      .bytes = good ? arrival.total : 0,
                      .immediate = has_word ? arrival.immediate : 0,
                      .operation = arrival.operation,
                      .code = code,
                      .with_immediate = good && arrival.with_immediate,
                      .invalidated = good && arrival.invalidates},
                     arrival.solicited);
        entries_.pop();
    }

    /// Completes all receives when the connection has ended. `in_message`: a part of a message has arrived.
    void flush_all(bool in_message) noexcept {
        if (in_message && !skipping_ && moved_ != 0) complete_front({}, CompletionCode::PartialMessage);
        while (!entries_.empty()) complete_front({}, CompletionCode::Flushed);
    }

    Fifo<Receive> entries_{4};  // with a shared queue: the receive of the message that is being received
    Counter posted_;
    Counter posted_bytes_;
    std::uint64_t moved_ = 0;  // bytes of the message that have arrived
    bool skipping_ = false;    // the receive has failed, so the remaining fragments of the message are dropped

private:
    friend Queue;
    ReceiveOrder() = default;
    Queue& queue() noexcept { return static_cast<Queue&>(*this); }

    /// Says why the receive at the front fails. Front-ends say themselves what they have found.
    [[gnu::cold, gnu::noinline]] void explain_failure(const Arrival& arrival, CompletionCode code,
                                                      CompletionCode told) noexcept {
        const Receive& entry = entries_.front();
        if (entry.fault != CompletionCode::Success) return;
        auto& endpoint = queue().endpoint();
        FailedRequest failed{.operation = arrival.operation,
                             .code = code,
                             .told = endpoint.is_reliable() ? told : CompletionCode::Success,
                             .context = entry.context,
                             .why = {}};
        if (code == CompletionCode::PartialMessage)
            failed.why = "the sender's memory became inaccessible after a part was sent";
        else if (code == CompletionCode::LocalLength)
            failed.why = why_too_long(arrival.total, entry.room(), endpoint.max_transfer_bytes());
        else if (arrival.operation == CompletedOperation::ReceiveRdmaWrite)
            failed.why = "the RDMA write that announces itself was refused";
        else if (!find_unusable(entry.sges.span(), arrival.total, true, endpoint, failed))
            failed.why = arrival.invalidates
                             ? explain("the message invalidates window %#x, which this endpoint has not bound",
                                       arrival.immediate)
                             : "its memory is not mapped any more, or cannot be written";
        endpoint.tell(failed);
    }

    /// Completes the receive. The data are in place; a window that the peer wants to invalidate is invalidated now.
    void finish_front(const Arrival& arrival) noexcept {
        if (arrival.invalidates && !queue().endpoint().invalidate_window(arrival.immediate))
            return fail_front(arrival, CompletionCode::LocalProtection);
        const bool written = arrival.operation == CompletedOperation::ReceiveRdmaWrite;
        queue().count(written ? CountedOperation::ReceiveImmediate : CountedOperation::Receive, arrival.way,
                      arrival.total);
        complete_front(arrival, CompletionCode::Success);
    }
};

}  // namespace viaduct::support
