// SPDX-License-Identifier: BSD-3-Clause
// The order of a send queue that is software. Requests are executed in the order in which they were posted, and
// complete in that order as soon as they are answered. On reliable levels one that fails does so when no earlier one is
// unanswered, and none is executed after it (guide, section 2.4).
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "backends/support/refusals.hpp"
#include "backends/support/send_request.hpp"
#include "core/base/counter.hpp"
#include "core/base/fifo.hpp"
#include "viaduct/status.hpp"

namespace viaduct::support {

/// A request that is being executed or waits for its execution. `Progress` is what a backend has to remember of one.
template <class Progress>
struct SendOperation : Progress {
    SendRequest request;
    SgeList sges;
    std::uint64_t total = 0;
    std::uint64_t moved = 0;                        // bytes
    std::uint64_t value = 0;                        // AtomicWrite: the 8 bytes; otherwise the backend's
    CompletionCode code = CompletionCode::Success;  // the result or, before execution, an error found early
};

enum class SendOutcome : std::uint8_t {
    Finished,
    Blocked,   // has to be executed again, to go on
    InFlight,  // the peer has to answer
};

/// What a consumer is told of an executed request.
enum class Report : std::uint8_t {
    Nothing,  // if it succeeded: the request is unsignaled
    Success,  // without immediate data
    Any,
};

/// An executed request whose completion waits for its turn or for an answer.
struct ExecutedSend {
    std::uint64_t context = 0;
    std::uint64_t awaited = 0;  // for is_answered(); 0: nothing
    std::uint32_t bytes = 0;
    CompletedOperation operation = CompletedOperation::Send;
    CompletionCode code = CompletionCode::Success;
    Report report = Report::Any;
    bool with_immediate = false;
};

/// The base of a `Queue`, which has these functions:
///   - endpoint(), is_attached(), outstanding(), is_full(), count_posted(), count_polled(), push(completion);
///   - make_room(): completes requests for which nobody polls, and returns whether there is room then;
///   - reserve(requests): so many can be outstanding; false: memory runs out;
///   - progress(): calls execute_entries() and retire(), unless it is already being called;
///   - execute(operation): goes on with a request, as far as possible now;
///   - awaited(operation, outcome): what the completion of an executed request waits for; counts the request;
///   - is_answered(executed), take_answer(executed): whether it has that, and what it says;
///   - await_answers(): the next request waits for that of all before it, which must bring progress(), even if nobody
///     polls;
///   - has_begun(operation): whether the peer may have seen a part of it.
/// Its endpoint has own_region(key), domain_id() and tell(failed request).
template <class Queue, class Progress>
class SendOrder {
public:
    bool has_drained() const noexcept { return draining_ && left_ == 0; }

protected:
    using Operation = SendOperation<Progress>;
    using Outcome = SendOutcome;

    /// Posts a request; see backend::Endpoint.
    [[gnu::noinline]] Status enqueue(const SendRequest& request) noexcept try {
        if (queue().is_full() && !queue().make_room()) return {Code::QueueFull, "the send queue is full"};
        if (request.sges.size() > queue().endpoint().device_attributes().max_sges)
            return {Code::InvalidParameter, "too many pieces"};
        if (!entries_.reserve(entries_.size() + 1) || !executed_.reserve(queue().outstanding() + std::size_t{1}) ||
            !queue().reserve(executed_.capacity()))
            return {Code::NoResources, "out of memory"};
        Operation& operation = entries_.vacant();
        operation.sges.assign(request.sges);
        operation.request = request;
        operation.total = total_length(request.sges);
        operation.moved = operation.value = 0;
        operation.code = take_operands(request, operation.total, operation.value);
        static_cast<Progress&>(operation) = {};
        entries_.commit();
        queue().count_posted();
        if (queue().is_attached()) {
            queue().progress();
        } else {
            if (wants_reasons()) explain(operation, CompletionCode::Flushed, "the endpoint is not connected");
            flush_all(CompletionCode::Flushed, CompletionCode::Success);
        }
        return {};
    } catch (const std::bad_alloc&) {
        return {Code::NoResources, "out of memory"};
    }

    /// Executes the queued requests in order, as far as possible now.
    void execute_entries() noexcept {
        while (!entries_.empty() && (!draining_ || left_ > executed_.size()) && !queue().endpoint().is_breaking()) {
            Operation& operation = front();
            const Outcome outcome = queue().execute(operation);
            if (outcome == Outcome::Blocked) return;
            executed_.push(executed(operation, queue().awaited(operation, outcome)));
            entries_.pop();
        }
    }

    /// Completes the requests that are executed and, if required, answered.
    void retire() noexcept {
        while (!executed_.empty() && queue().is_answered(executed_.front())) {
            queue().take_answer(executed_.front());
            complete(executed_.front());
            executed_.pop();
            if (draining_ && --left_ == 0) queue().endpoint().request_end();
        }
    }

    /// Executes the requests that are queued now, but no later ones, and notifies the endpoint when that is done.
    /// Returns false if there is none.
    bool begin_drain() noexcept {
        if (std::exchange(draining_, true)) return false;
        left_ = executed_.size() + entries_.size();
        if (left_ == 0) queue().endpoint().request_end();
        return left_ != 0;
    }

    void end_drain() noexcept { draining_ = false; }

    /// Reports whether a request can fail now. An error ends a reliable connection, so it must wait until all earlier
    /// requests are answered.
    bool may_fail() noexcept {
        if (!is_reliable()) return true;
        retire();
        if (!executed_.empty()) queue().await_answers();
        return executed_.empty();
    }

    /// Completes a request with an error.
    Outcome fail(Operation& operation, CompletionCode code) noexcept {
        if (!may_fail()) return Outcome::Blocked;
        drop_binding(operation);
        if (wants_reasons()) explain_failure(operation, code);
        operation.code = code;
        if (is_reliable()) queue().endpoint().request_break();
        return Outcome::Finished;
    }

    /// Completes a request that had an error before its execution. One that counts as refused by the peer ends like
    /// those that the peer refuses, and a transport error ends the connection on all levels.
    Outcome fail_early(Operation& operation) noexcept {
        auto& endpoint = queue().endpoint();
        const CompletionCode code = operation.code;
        const bool silent = is_refusal(code) && !reports_refusals(endpoint.attributes());
        const Outcome outcome = fail(operation, silent ? CompletionCode::Success : code);
        if (outcome == Outcome::Finished && code == CompletionCode::Transport) endpoint.request_break();
        return outcome;
    }

    /// Executes a prepared binding. The attempt consumes it, so a failure must be reportable before.
    Outcome bind(Operation& operation) noexcept {
        if (!may_fail()) return Outcome::Blocked;
        const CompletionCode code = queue().endpoint().bind_window(operation.request.remote.key);
        return code == CompletionCode::Success ? Outcome::Finished : fail(operation, code);
    }

    /// Completes all requests when the connection has ended: the oldest one without an answer with `refused`, if the
    /// peer has refused it, or else with `in_flight`, and those after it as Flushed.
    void flush_all(CompletionCode in_flight, CompletionCode refused) noexcept {
        const auto unanswered = [&] {
            const CompletionCode code = std::exchange(in_flight, CompletionCode::Flushed);
            return refused == CompletionCode::Success ? code : std::exchange(refused, CompletionCode::Success);
        };
        bool all_answered = queue().is_attached();
        for (; !executed_.empty(); executed_.pop()) {
            ExecutedSend& oldest = executed_.front();
            const bool answered = all_answered && queue().is_answered(oldest);
            if (is_reliable()) all_answered = answered;
            queue().take_answer(oldest);
            if (answered)
                complete(oldest);
            else
                give_up(oldest, unanswered());
        }
        for (; !entries_.empty(); entries_.pop()) {
            const Operation& operation = front();
            drop_binding(operation);
            give_up(executed(operation, 0), queue().has_begun(operation) ? unanswered() : CompletionCode::Flushed);
        }
    }

    [[gnu::always_inline]] inline void complete(const ExecutedSend& executed) noexcept {
        if (executed.code == CompletionCode::Success && executed.report == Report::Nothing)
            return queue().count_polled();
        queue().push({.context = executed.context,
                      .endpoint_context = queue().endpoint().context(),
                      .bytes = executed.bytes,
                      .immediate = 0,
                      .operation = executed.operation,
                      .code = executed.code,
                      .with_immediate = executed.with_immediate,
                      .invalidated = false});
    }

    /// Says why a request completes with `code`.
    void explain(const Operation& operation, CompletionCode code, const Reason& why) noexcept {
        tell(operation_of(operation.request.opcode), code, operation.request.context, why);
    }
    void tell(CompletedOperation operation, CompletionCode code, std::uint64_t context, const Reason& why) noexcept {
        queue().endpoint().tell({.operation = operation, .code = code, .context = context, .why = why});
    }

    Counter refusals_;
    Fifo<Operation> entries_;         // not executed yet
    Fifo<ExecutedSend> executed_{4};  // before those; has room for all that is outstanding
    bool draining_ = false;

private:
    friend Queue;
    SendOrder() = default;
    Queue& queue() noexcept { return static_cast<Queue&>(*this); }
    bool is_reliable() noexcept { return queue().endpoint().is_reliable(); }

    /// Entries move when the FIFO grows, so the pointer into them is set before each use.
    Operation& front() noexcept {
        Operation& operation = entries_.front();
        operation.request.sges = operation.sges.span();
        return operation;
    }

    /// Says why a request fails at this end. Front-ends say themselves what they have found, and the queue says why the
    /// peer refuses one.
    [[gnu::cold, gnu::noinline]] void explain_failure(const Operation& operation, CompletionCode code) noexcept {
        const SendRequest& request = operation.request;
        if (request.fault != CompletionCode::Success || code == CompletionCode::Success || is_refusal(code)) return;
        auto& endpoint = queue().endpoint();
        FailedRequest failed{
            .operation = operation_of(request.opcode), .code = code, .context = request.context, .why = {}};
        if (request.opcode == Opcode::BindWindow) {
            failed.why =
                "the region, the window and the endpoint are not of one protection domain, or the region lacks "
                "a right";
        } else if (code != CompletionCode::LocalProtection) {
            failed.why = why_malformed(request, operation.total, endpoint.max_transfer_bytes());
        } else if (!find_unusable(request.sges, operation.total, fetches(request.opcode), endpoint, failed)) {
            failed.why = "its memory is not mapped any more, or cannot be written";
        }
        endpoint.tell(failed);
    }

    void drop_binding(const Operation& operation) noexcept {
        if (operation.request.opcode == Opcode::BindWindow)
            queue().endpoint().forget_window(operation.request.remote.key);
    }

    static ExecutedSend executed(const Operation& operation, std::uint64_t awaited) noexcept {
        const SendRequest& request = operation.request;
        const bool good = operation.code == CompletionCode::Success;
        // If the source is not there any more, part of it may have been sent.
        const std::uint64_t of_failure = operation.code == CompletionCode::LocalProtection ? operation.moved : 0;
        const Report report = good && !notifies(request) ? Report::Success : Report::Any;
        return {.context = request.context,
                .awaited = awaited,
                .bytes = static_cast<std::uint32_t>(good ? operation.total : of_failure),
                .operation = operation_of(request.opcode),
                .code = operation.code,
                .report = request.signaled ? report : Report::Nothing,
                .with_immediate = notifies(request)};
    }

    /// Completes a request that was not answered when the connection ended. The program may not want to be told why;
    /// see RefusedWrite.
    void give_up(ExecutedSend executed, CompletionCode code) noexcept {
        const bool refused = is_refusal(code);
        const bool sends =
            executed.operation == CompletedOperation::Send || executed.operation == CompletedOperation::RdmaWrite;
        if (refused) refusals_.add();
        const bool silent = sends && !reports_refusals(queue().endpoint().attributes());
        executed.code = !silent ? code : refused ? CompletionCode::Success : CompletionCode::Flushed;
        if (refused && wants_reasons()) tell(executed.operation, executed.code, executed.context, words_of_peer(code));
        if (executed.code != CompletionCode::Success) executed.bytes = 0;
        complete(executed);
    }

    std::size_t left_ = 0;  // number of requests to complete while draining
};

}  // namespace viaduct::support
