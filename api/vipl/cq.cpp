// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/cq.hpp"

#include <array>

#include "api/vipl/nic.hpp"
#include "api/vipl/translate.hpp"
#include "api/vipl/vi.hpp"
#include "core/base/wait_until.hpp"
#include "core/base/waiting.hpp"
#include "core/explain.hpp"
#include "core/frontend.hpp"
#include "core/log.hpp"

namespace viaduct::vipl {

Cq::Cq(Nic& nic, std::uint32_t capacity) : nic_(nic), capacity_(capacity), entries_(capacity) {}

Result<std::unique_ptr<Cq>> Cq::create(Nic& nic, std::uint32_t capacity) {
    std::unique_ptr<Cq> cq(new Cq(nic, capacity));
    auto queue = Internals::create_queue<CompletionQueue>(
        nic.device(), CompletionQueueConfig{.capacity = nic.attributes().max_completions}, Vi::on_completion,
        &success_record);
    if (!queue.ok()) return queue.status();
    cq->queue_ = std::move(*queue);
    cq->notifier_ = std::make_unique<Notifier>(*cq->queue_);
    return cq;
}

Cq::~Cq() {
    end_calls();
    end_handlers();
}

void Cq::end_handlers() noexcept {
    if (notifier_ != nullptr) notifier_->stop();
}

/// Takes one completion at a time. The core wakes other waiters while more completions are left.
bool Cq::take_one(CqEntry& entry) noexcept {
    UninitializedCompletions<1> memory;
    Completion& completion = memory.first();
    while (queue_->poll(completion))
        if (deliver(completion, entry)) return true;
    return false;
}

bool Cq::deliver(Completion& completion, CqEntry& entry) noexcept {
    Vi* vi = resolve_context<Vi>(completion.endpoint_context);
    if (vi == nullptr) return false;
    VIP_DESCRIPTOR* const descriptor = vi->complete(completion);
    if (descriptor == nullptr) return false;
    Fifo<Done>& complete = vi->queue(completion.queue()).complete;
    if (!complete.reserve(complete.size() + 1)) {
        vi->lose(VIP_ERROR_CATASTROPHIC, descriptor, completion.operation);
        return false;
    }
    complete.push({.descriptor = descriptor, .result = result_of(completion)});
    entry = {.vi = vi->handle(), .receive = completion.queue() == QueueKind::Receive};
    return true;
}

/// Keeps an entry for a later call. If there is no room for it, the queue overflows (guide, section 6.3.2).
void Cq::keep(const CqEntry& entry) noexcept {
    if (entries_.size() < capacity_)
        entries_.push(entry);
    else
        lose(entry);
}

/// Reported once for the present connections of the VIs that use the queue.
void Cq::lose(const CqEntry& entry) noexcept {
    bool is_first = false;
    nic_.vis.for_each([&](Vi& vi) { is_first = (vi.uses(handle()) && vi.begin_error()) || is_first; });
    if (!is_first) return;
    log(LogLevel::Warning,
        "VIPL: completion queue %p has overflowed: its %zu entries wait for VipCQDone or VipCQWait, and the next one, "
        "of the %s queue of VI %p, is lost",
        handle(), capacity_, entry.receive ? "receive" : "send", entry.vi);
    nic_.errors.report({.NicHandle = nic_.handle(),
                        .CQHandle = handle(),
                        .ResourceCode = VIP_RESOURCE_CQ,
                        .ErrorCode = VIP_ERROR_CATASTROPHIC});
}

bool Cq::next_entry(CqEntry& entry) noexcept {
    const LockGuard lock(mutex_);
    if (entries_.empty()) return take_one(entry);
    entry = entries_.front();
    entries_.pop();
    tell_waiters();
    (void)queue_->ready();  // the caller may have armed the queue, and left a completion for which another one sleeps
    return true;
}

int Cq::left_fd() noexcept {
    const LockGuard lock(mutex_);
    return left_.fd();
}

VIP_RETURN Cq::wait(const Deadline& deadline, CqEntry& entry) {
    struct Source {
        Cq& cq;
        Status arm() const noexcept { return cq.queue_->arm(); }
        bool sleep(const Deadline& until) const {
            const std::array fds{cq.queue_->fd(), cq.left_fd()};
            return sleep_until_ready(fds, until) != Woken::Closed;
        }
    } source{*this};
    if (wait_until(source, deadline, [&] { return next_entry(entry); })) return VIP_SUCCESS;
    return deadline.passed() ? VIP_TIMEOUT : VIP_ERROR_RESOURCE;
}

void Cq::notify(VIP_PVOID context, NotifyHandler handler) {
    notifier_->request(
        [this, context, handler] {
            CqEntry entry;
            if (!next_entry(entry)) return false;
            handler(context, nic_.handle(), entry.vi, to_boolean(entry.receive));
            return true;
        },
        left_fd());
}

VIP_RETURN Cq::resize(std::uint32_t capacity) {
    Fifo<CqEntry> resized(capacity);
    const LockGuard lock(mutex_);
    for (CqEntry entry; entries_.reserve(entries_.size() + 1) && take_one(entry);) entries_.push(entry);
    tell_waiters();
    if (entries_.size() > capacity)
        return failed(VIP_ERROR_RESOURCE, explain("%u entries asked for, but %zu completions wait in the queue",
                                                  capacity, entries_.size()));
    for (; !entries_.empty(); entries_.pop()) resized.push(entries_.front());
    entries_ = std::move(resized);
    capacity_ = capacity;
    return VIP_SUCCESS;
}

VIP_RETURN Cq::done(WorkQueue& queue, VIP_DESCRIPTOR** descriptor) noexcept {
    const LockGuard lock(mutex_);
    for (CqEntry entry; queue.complete.empty() && take_one(entry);) keep(entry);
    tell_waiters();
    Done done{.result = VIP_DESCRIPTOR_ERROR};
    if (!queue.complete.empty()) {
        done = queue.complete.front();
        queue.complete.pop();
    } else if (queue.outstanding() != 0) {
        return VIP_NOT_DONE;
    }
    *descriptor = done.descriptor;
    return done.result;
}

bool Cq::empty(const WorkQueue& queue) noexcept {
    const LockGuard lock(mutex_);
    return queue.complete.empty() && queue.outstanding() == 0;
}

}  // namespace viaduct::vipl

using namespace viaduct;
using namespace viaduct::vipl;

namespace {

/// The sizes that VipCreateCQ and VipResizeCQ accept.
VIP_RETURN check_entry_count(const Nic& nic, VIP_ULONG count) noexcept {
    if (count == 0) return failed(VIP_INVALID_PARAMETER, "EntryCount is 0");
    if (count <= nic.attributes().max_completions) return VIP_SUCCESS;
    return failed(VIP_ERROR_RESOURCE,
                  explain("%lu entries asked for, MaxCQEntries is %u", count, nic.attributes().max_completions));
}

}  // namespace

VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE* CQHandle) {
    return Entry::on<Nic>(NicHandle, {{CQHandle != nullptr, "CQHandle is NULL"}}, [&](Nic& nic) {
        if (const VIP_RETURN result = check_entry_count(nic, EntryCount); result != VIP_SUCCESS) return result;
        if (nic.cqs.size() >= nic.max_cqs())
            return failed(VIP_ERROR_RESOURCE,
                          explain("the NIC has %zu completion queues, MaxCQ is %lu", nic.cqs.size(), nic.max_cqs()));
        auto cq = Cq::create(nic, static_cast<std::uint32_t>(EntryCount));
        if (!cq.ok()) return to_return(cq.status());
        *CQHandle = nic.cqs.add(std::move(*cq)).handle();
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle) {
    return Entry::on<Cq>(CQHandle, {}, [&](Cq& cq) {
        if (cq.queue()->in_use()) return failed(VIP_ERROR_RESOURCE, "a VI uses the completion queue");
        return cq.nic().cqs.remove(cq) != nullptr ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
    });
}

VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount) {
    return Entry::on<Cq>(CQHandle, {}, [&](Cq& cq) {
        if (const VIP_RETURN result = check_entry_count(cq.nic(), EntryCount); result != VIP_SUCCESS) return result;
        return cq.resize(static_cast<std::uint32_t>(EntryCount));
    });
}
