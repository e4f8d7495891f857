// SPDX-License-Identifier: BSD-3-Clause
// Event dispatchers: how they are made, their sizes, the streams that they serve, the CNO that they notify, and the
// calls on them, except dat_evd_dequeue(3DAT).
#include <algorithm>

#include "api/udat/provider/cno.hpp"
#include "api/udat/provider/evd.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"

namespace viaduct::dat {
namespace {

constexpr int all_streams = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;
constexpr int completion_streams = DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG;

/// Some programs create dispatchers for one event but leave the flushed requests of hundreds of endpoints there.
constexpr std::uint32_t fewest_completions = 64;

/// Returns the number of events for which a new dispatcher allocates memory. Posting software events and connection
/// requests must never allocate, even if a place is reserved for a completion.
constexpr std::size_t room_at_first(std::size_t qlen, DAT_EVD_FLAGS flags) noexcept {
    const std::size_t reserved = (flags & completion_streams) != 0 ? 1 : 0;
    return (flags & (DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG)) != 0 ? qlen + reserved
                                                                    : std::min(qlen, std::size_t{256});
}

constexpr std::uint32_t places_at_first(DAT_COUNT qlen) noexcept {
    return std::max(static_cast<std::uint32_t>(qlen), fewest_completions);
}

DAT_RETURN too_long(DAT_COUNT wanted, std::uint32_t limit) noexcept {
    return failed(error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD),
                  explain("%d events asked for, max_evd_qlen is %u", wanted, limit));
}

}  // namespace

Evd::Evd(Ia& ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags)
    : Object(ia, ia.provider(), handle_type),
      flags_(flags),
      capacity_(static_cast<std::size_t>(qlen)),
      places_(places_at_first(qlen)),
      events_(room_at_first(capacity_, flags)) {}

Evd::~Evd() {
    EvdLink::await_posters();
    if (Cno* const cno = cno_.get()) cno->detach(*this, std::move(cno_), true);
}

DAT_RETURN Evd::create(Ia& ia, DAT_COUNT qlen, Cno* cno, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE& evd) {
    const std::uint32_t limit = ia.device()->attributes().max_completions;
    if (static_cast<std::uint32_t>(qlen) > limit) return too_long(qlen, limit);
    std::unique_ptr<Evd> created(new Evd(ia, qlen, flags));
    if ((flags & completion_streams) != 0) {
        auto queue = CompletionQueue::create(
            ia.device(),
            {.capacity = places_at_first(qlen), .context = reinterpret_cast<std::uint64_t>(created->handle())});
        if (!queue.ok()) return to_return(queue.status(), DAT_RESOURCE_TEVD);
        created->completions_ = std::move(*queue);
    }
    if (cno != nullptr) created->set_cno(cno);
    evd = ia.adopt(std::move(created));
    return success;
}

/// Makes the queue large enough that no completion is lost, even if the consumer requested less.
Status Evd::fit_completions(std::size_t qlen) noexcept {
    const std::uint32_t most = ia().device()->attributes().max_completions;
    const auto wanted = std::min(std::max({static_cast<std::uint32_t>(qlen), fewest_completions, room_.load()}), most);
    Status status = completions_->resize(wanted);
    if (status.ok()) places_ = wanted;
    return status;
}

void Evd::begin_stream(std::uint32_t completions, Notification wanted) noexcept {
    ++streams_.at(static_cast<std::size_t>(wanted));
    if (cno() != nullptr) watch_for_cno();
    {
        const LockGuard lock(lock_);
        news_.set(true);  // waiters arm again
    }
    room_ += completions;
    add_places();
}

/// Not for fewer: there may be completions of endpoints that were freed.
void Evd::add_places() noexcept {
    const BiasedLock::SlowPathGuard taking(taking_);
    if (completions_ != nullptr) (void)fit_completions(std::max<std::size_t>(capacity_, places_));
}

void Evd::end_stream(std::uint32_t completions, Notification wanted) noexcept {
    --streams_.at(static_cast<std::size_t>(wanted));
    room_ -= completions;
}

/// If endpoints require different notification, every completion wakes.
Evd::Notification Evd::notification() const noexcept {
    Notification common = Notification::Unset;
    for (const auto each : {Notification::Every, Notification::Solicited, Notification::Threshold})
        if (streams_.at(static_cast<std::size_t>(each)) != 0)
            common = common == Notification::Unset ? each : Notification::Every;
    return common;
}

// ---- Changes by the consumer --------------------------------------------------------------------------------------

DAT_RETURN Evd::resize(DAT_COUNT qlen) {
    const auto wanted = static_cast<std::size_t>(qlen);
    const std::uint32_t limit = ia().device()->attributes().max_completions;
    if (wanted > limit) return too_long(qlen, limit);
    Fifo<Queued> resized(room_at_first(wanted, flags_));
    const BiasedLock::SlowPathGuard taking(taking_);
    const std::size_t before = capacity_;
    {
        const LockGuard lock(lock_);
        if (events_.size() + requests_ > wanted)
            return failed(error(DAT_INVALID_STATE),
                          explain("%d events asked for, %zu are in the EVD", qlen, events_.size() + requests_));
        capacity_ = wanted;
    }
    if (completions_ != nullptr) {  // without the lock, which backends take with theirs held
        if (const Status status = fit_completions(wanted); !status.ok()) {
            capacity_ = before;
            return to_return(status, DAT_RESOURCE_TEVD);
        }
    }
    const LockGuard lock(lock_);
    if (resized.room() > events_.size() + requests_) {
        for (; !events_.empty(); events_.pop()) resized.push(events_.front());
        events_ = std::move(resized);
    }
    return success;
}

void Evd::set_waitable(bool waitable) noexcept {
    waitable_ = waitable;
    if (!waitable) dismiss_waiter();
}

void Evd::set_enabled(bool enabled) noexcept {
    Cno* const notified = cno();
    if (enabled_.exchange(enabled) == enabled || notified == nullptr) return;
    if (enabled) watch_for_cno();
    notified->update_watches(*this);
    if (!enabled) return;
    const LockGuard lock(lock_);
    if (quiet_ != events_.size()) announce();
}

Cno* Evd::cno() const noexcept {
    const LockGuard lock(lock_);
    return cno_.get();
}

void Evd::set_cno(Cno* cno) {
    Use<Cno> use(cno);
    if (cno != nullptr) cno->attach(*this);
    {
        const LockGuard lock(lock_);
        std::swap(cno_, use);
        if (quiet_ != events_.size()) announce();
    }
    Cno* const previous = use.get();
    if (previous != nullptr && previous != cno) previous->detach(*this, std::move(use), false);
    if (cno != nullptr) watch_for_cno();
}

/// Arms the queue. That takes back an event that has not been seen, so completions that are there cause another one.
void Evd::watch_for_cno() noexcept {
    if (completions_ == nullptr) return;
    (void)watch_completions();
    (void)completions_->ready();
}

bool Evd::has_new_completions() noexcept {
    if (completions_ == nullptr || !completions_->channel().take_event().ok()) return false;  // it is still armed
    (void)watch_completions();
    {
        const LockGuard lock(lock_);
        if (waiting_) news_.set(true);  // for a thread that has begun to wait since it was looked for
    }
    if (!has_cookies_) return true;
    const BiasedLock::SlowPathGuard taking(taking_);
    (void)collect(capacity_);
    return has_news();
}

void Evd::query(DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM& param) const noexcept {
    constexpr DAT_EVD_STATE configured[] = {DAT_EVD_STATE_CONFIG_NOTIFY, DAT_EVD_STATE_CONFIG_NOTIFY,
                                            DAT_EVD_STATE_CONFIG_SOLICITED, DAT_EVD_STATE_CONFIG_THRESHOLD};
    const int state = (enabled_ ? DAT_EVD_STATE_ENABLED : DAT_EVD_STATE_DISABLED) |
                      (waitable_ ? DAT_EVD_STATE_WAITABLE : DAT_EVD_STATE_UNWAITABLE) |
                      configured[static_cast<std::size_t>(notification())];
    if ((mask & DAT_EVD_FIELD_IA_HANDLE) != 0) param.ia_handle = ia().number();
    if ((mask & DAT_EVD_FIELD_EVD_QLEN) != 0) param.evd_qlen = qlen();
    if ((mask & DAT_EVD_FIELD_EVD_STATE) != 0) param.evd_state = static_cast<DAT_EVD_STATE>(state);
    if ((mask & DAT_EVD_FIELD_CNO) != 0) {
        const LockGuard lock(lock_);
        param.cno_handle = cno_.handle();
    }
    if ((mask & DAT_EVD_FIELD_EVD_FLAGS) != 0) param.evd_flags = flags_;
}

// ---- Entry points -------------------------------------------------------------------------------------------------

DAT_RETURN calls::evd_create(Ia& owner, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
                             DAT_EVD_HANDLE* evd) {
    Cno* notified = resolve_in<Cno>(owner, cno);
    if (min_qlen <= 0) return invalid_parameter(DAT_INVALID_ARG2, explain("evd_min_qlen is %d", min_qlen));
    if (cno != DAT_HANDLE_NULL && notified == nullptr)
        return invalid_handle(DAT_INVALID_HANDLE_CNO, "cno_handle is no CNO of this adapter");
    if (flags == 0 || (flags & ~all_streams) != 0)
        return invalid_parameter(DAT_INVALID_ARG4, explain("evd_flags is 0x%x", unsigned{flags}));
    if (evd == nullptr) return invalid_parameter(DAT_INVALID_ARG5, "evd_handle is null");
    return Evd::create(owner, min_qlen, notified, flags, *evd);
}

DAT_RETURN calls::evd_modify_cno(Evd& dispatcher, DAT_CNO_HANDLE cno) {
    Cno* notified = resolve_in<Cno>(dispatcher.ia(), cno);
    if (cno != DAT_HANDLE_NULL && notified == nullptr)
        return invalid_handle(DAT_INVALID_HANDLE_CNO, "cno_handle is no CNO of this adapter");
    dispatcher.set_cno(notified);
    return success;
}

DAT_RETURN calls::evd_enable(Evd& dispatcher) {
    dispatcher.set_enabled(true);
    return success;
}

DAT_RETURN calls::evd_disable(Evd& dispatcher) {
    dispatcher.set_enabled(false);
    return success;
}

DAT_RETURN calls::evd_set_unwaitable(Evd& dispatcher) {
    dispatcher.set_waitable(false);
    return success;
}

DAT_RETURN calls::evd_clear_unwaitable(Evd& dispatcher) {
    dispatcher.set_waitable(true);
    return success;
}

DAT_RETURN calls::evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event,
                           DAT_COUNT* nmore) {
    const WaitOn<Evd> call(evd, OnSignal::EndUnlessRestarting);
    Evd* dispatcher = call.object();
    if (dispatcher == nullptr) return invalid_handle(DAT_NO_SUBTYPE);
    if (threshold <= 0 || threshold > dispatcher->qlen())
        return invalid_parameter(
            DAT_INVALID_ARG3, explain("threshold is %d, the length of the EVD is %d", threshold, dispatcher->qlen()));
    if (event == nullptr) return invalid_parameter(DAT_INVALID_ARG4, "event is null");
    if (nmore == nullptr) return invalid_parameter(DAT_INVALID_ARG5, "nmore is null");
    return dispatcher->wait(deadline_after(timeout), static_cast<std::size_t>(threshold), *event, *nmore);
}

DAT_RETURN calls::evd_resize(Evd& dispatcher, DAT_COUNT min_qlen) {
    if (min_qlen <= 0) return invalid_parameter(DAT_INVALID_ARG2, explain("evd_min_qlen is %d", min_qlen));
    return dispatcher.resize(min_qlen);
}

DAT_RETURN calls::evd_post_se(Evd& dispatcher, const DAT_EVENT* event) {
    if (event == nullptr || event->event_number != DAT_SOFTWARE_EVENT)
        return invalid_parameter(DAT_INVALID_ARG2, "event is no DAT_SOFTWARE_EVENT");
    if (!dispatcher.takes(DAT_EVD_SOFTWARE_FLAG))
        return invalid_parameter(DAT_INVALID_ARG1, "the EVD was created without DAT_EVD_SOFTWARE_FLAG");
    if (dispatcher.try_post(*event)) return success;
    return failed(error(DAT_QUEUE_FULL), explain("the EVD is full, its length is %d", dispatcher.qlen()));
}

DAT_RETURN calls::evd_free(Evd& dispatcher) {
    dispatcher.ia().acceptor().await_quiet();
    if (dispatcher.users.in_use())
        return invalid_state(DAT_INVALID_STATE_EVD_IN_USE, "an endpoint, a service point or an adapter uses the EVD");
    const auto freed = claim<Evd>(dispatcher.handle());
    if (freed == nullptr) return invalid_handle(DAT_NO_SUBTYPE);
    freed->close();
    freed->drop_events();
    return success;
}

}  // namespace viaduct::dat
