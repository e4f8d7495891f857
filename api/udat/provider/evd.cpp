// SPDX-License-Identifier: BSD-3-Clause
// Event dispatchers: how events are posted, taken and waited for.
#include "api/udat/provider/evd.hpp"

#include <limits>
#include <thread>

#include "api/udat/provider/cno.hpp"
#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/service_point.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"
#include "core/base/wait_until.hpp"
#include "core/frontend.hpp"

namespace viaduct::dat {
namespace {

/// The position behind all events.
constexpr std::size_t last = std::numeric_limits<std::size_t>::max();

/// Reports whether the event ends a connection. Earlier completions must be returned before it.
bool ends_connection(DAT_EVENT_NUMBER number) noexcept {
    return number == DAT_CONNECTION_EVENT_DISCONNECTED || number == DAT_CONNECTION_EVENT_BROKEN;
}

/// Reports whether the event means that a connection was not established.
bool fails_connection(DAT_EVENT_NUMBER number) noexcept {
    switch (number) {
        case DAT_CONNECTION_EVENT_PEER_REJECTED:
        case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
        case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
        case DAT_CONNECTION_EVENT_TIMED_OUT:
        case DAT_CONNECTION_EVENT_UNREACHABLE: return true;
        default: return false;
    }
}

/// Held while looking up the endpoint of a connection, which may belong to another IA and be freed at the same time.
ProcessMutex& looking_up() noexcept {
    static constinit ProcessMutex mutex;
    return mutex;
}

/// Notifies the endpoint of a completion. If the endpoint has cookies, the completion gets the cookie of its request
/// back. Returns false if the endpoint no longer exists, and with it the cookie. `quiet`: the completion wakes no
/// waiter.
bool settle_with_endpoint(Completion& completion, bool has_cookies, bool& quiet) noexcept {
    quiet = false;
    const bool is_immediate = completion.operation == CompletedOperation::Receive && completion.with_immediate &&
                              completion.code == CompletionCode::Success;
    if (!is_immediate && !completion.invalidated && !has_cookies) return true;
    Ep* ep = resolve<Ep>(reinterpret_cast<DAT_EP_HANDLE>(completion.endpoint_context));
    if (ep == nullptr) return !has_cookies || completion.operation == CompletedOperation::BindWindow;
    if (is_immediate) ep->count_immediate(completion.bytes);
    if (completion.invalidated) ep->end_binding(completion.immediate);
    quiet = has_cookies && ep->restore_cookie(completion);
    return true;
}

[[gnu::cold, gnu::noinline]] DAT_RETURN has_waiter() noexcept {
    return invalid_state(DAT_INVALID_STATE_EVD_WAITER, "another thread waits for events of the EVD");
}

DAT_RETURN freed() noexcept { return failed(error(DAT_ABORT), "the EVD was freed during the wait"); }

DAT_RETURN unwaitable() noexcept {
    return invalid_state(DAT_INVALID_STATE_EVD_UNWAITABLE, "dat_evd_set_unwaitable was called");
}

}  // namespace

// ---- Posting events -----------------------------------------------------------------------------------------------

/// Makes room for one more event, possibly beyond the length that the consumer requested.
bool Evd::make_room() noexcept {
    const std::size_t wanted = events_.size() + requests_ + (has_place_ ? 2 : 1);
    if (wanted <= events_.capacity()) return true;
    return wanted <= ia().device()->attributes().max_completions && events_.reserve(wanted);
}

/// Reports whether the length of the dispatcher forbids another software event or connection request.
bool Evd::is_full() const noexcept { return events_.size() - collected_ + requests_ >= capacity_; }

bool Evd::is_known_overflow(const DAT_EVENT& event) const noexcept {
    if (event.event_number != DAT_ASYNC_ERROR_EVD_OVERFLOW) return false;
    for (std::size_t i = events_.size(); i-- != 0;)  // it is usually among the last ones
        if (events_[i].event.event_number == event.event_number &&
            events_[i].event.event_data.asynch_error_event_data.dat_handle ==
                event.event_data.asynch_error_event_data.dat_handle)
            return true;
    return false;
}

/// Tells the CNO that there are events, now or when the thread that waits has left without hearing of them.
void Evd::announce() noexcept {
    untold_ = true;
    if (cno_ && notifies()) cno_->trigger(handle());
}

/// There must be room.
void Evd::append(const DAT_EVENT& event) noexcept {
    DAT_EVENT posted = event;
    posted.evd_handle = handle();
    events_.push({.event = posted, .is_completion = false, .quiet = false});
    endings_ += ends_connection(posted.event_number) ? 1 : 0;
    count_.store(events_.size(), std::memory_order_release);
    news_.set(true);
    announce();
}

bool Evd::try_post(const DAT_EVENT& event) noexcept {
    const LockGuard lock(lock_);
    if (is_known_overflow(event)) return true;
    if ((event.event_number == DAT_SOFTWARE_EVENT && is_full()) || !make_room()) return false;
    append(event);
    return true;
}

bool Evd::expect_request() noexcept {
    {
        const LockGuard lock(lock_);
        const bool admitted = !is_full() && make_room();
        requests_ += admitted ? 1 : 0;
        if (admitted) return true;
    }
    report_overflow();
    return false;
}

void Evd::post_request(const DAT_EVENT& event) noexcept {
    const LockGuard lock(lock_);
    --requests_;
    append(event);
}

void Evd::give_up_request() noexcept {
    const LockGuard lock(lock_);
    --requests_;
}

void Evd::report_overflow() noexcept { ia().report(DAT_ASYNC_ERROR_EVD_OVERFLOW, handle(), DAT_EVD_OVERFLOW_ERROR); }

// ---- Taking events ------------------------------------------------------------------------------------------------

/// Writes the event of a completion. Returns false if it has none.
bool Evd::write(Completion completion, DAT_EVENT& event, Origin& origin) noexcept {
    origin = {.ep = reinterpret_cast<DAT_EP_HANDLE>(completion.endpoint_context)};
    if (!settle_with_endpoint(completion, has_cookies_, origin.quiet) ||
        !write_event(completion, binds, event, origin.quiet))
        return false;
    event.evd_handle = handle();
    return true;
}

/// The same for completions of the usual kind, which all have events. Returns false if this is another one.
[[gnu::always_inline]] inline bool Evd::write_usual(const Completion& completion, DAT_EVENT& event) noexcept {
    if (!is_usual(completion) || has_cookies_.load(std::memory_order_relaxed)) [[unlikely]]
        return false;
    write_usual_event(completion, event);
    event.evd_handle = handle();
    return true;
}

bool Evd::take_completion(DAT_EVENT& event, Origin& origin) noexcept {
    UninitializedCompletions<1> memory;
    while (completions_ != nullptr && completions_->poll(memory.first()))
        if (write(memory.first(), event, origin)) return true;
    return false;
}

/// Reports whether the oldest posted event, which must exist, ends a connection that may still have completions in the
/// queue.
bool Evd::is_early() const noexcept {
    DAT_EP_HANDLE ending = DAT_HANDLE_NULL;
    {
        const LockGuard lock(lock_);
        const Queued& oldest = events_[0];
        if (ends_connection(oldest.event.event_number) && !oldest.is_due && completions_ != nullptr)
            ending = oldest.event.event_data.connect_event_data.ep_handle;
    }
    if (ending == DAT_HANDLE_NULL) return false;
    const LockGuard lock(looking_up());
    const Ep* ep = resolve<Ep>(ending);
    return ep != nullptr && ep->awaited_on(*this);
}

/// Takes the oldest posted event, which must exist.
[[gnu::noinline]] bool Evd::take_posted(DAT_EVENT& event) noexcept {
    {
        const LockGuard lock(lock_);
        event = events_.front().event;
        quiet_ -= events_.front().quiet ? 1 : 0;
        collected_ -= events_.front().is_completion ? 1 : 0;
        events_.pop();
        endings_ -= ends_connection(event.event_number) ? 1 : 0;
        count_.store(events_.size(), std::memory_order_release);
    }
    // settle() takes locks of the core. Threads that hold these post events, so lock_ must not be held here.
    if (!fails_connection(event.event_number)) return true;
    const LockGuard lock(looking_up());
    if (Ep* ep = resolve<Ep>(event.event_data.connect_event_data.ep_handle)) ep->settle();
    return true;
}

/// The rest of take() if events were posted.
[[gnu::noinline]] bool Evd::take_any(DAT_EVENT& event) noexcept {
    if (is_early()) collect_before_end();
    return take_posted(event);
}

/// Takes the oldest event if a completion was polled. Meanwhile the beginning of its connection may have been posted.
[[gnu::noinline]] bool Evd::take_after(Completion polled, DAT_EVENT& event) noexcept {
    Origin origin;
    const bool has_completion = write(polled, event, origin) || take_completion(event, origin);
    if (!has_posted() || (has_completion && !reserve_place())) return has_completion;
    if (has_completion) (void)keep_completion(event, origin, last);
    return take_any(event);
}

/// Takes the oldest event.
[[gnu::always_inline]] inline bool Evd::take(DAT_EVENT& event) noexcept {
    UninitializedCompletions<1> memory;
    if (!has_posted() && completions_ != nullptr && completions_->poll(memory.first())) [[likely]] {
        if (write_usual(memory.first(), event) && !has_posted()) [[likely]]
            return true;
        return take_after(memory.first(), event);
    }
    return has_posted() && take_any(event);
}

/// Returns the position of a completion among the queued events: before the end of its connection, behind its beginning
/// or, if neither is queued, the position given.
std::size_t Evd::place_for(DAT_EP_HANDLE ep, std::size_t otherwise) const noexcept {
    for (std::size_t i = endings_ == 0 ? 0 : events_.size(); i-- > 0;) {
        const DAT_EVENT& event = events_[i].event;
        const bool ends = ends_connection(event.event_number);
        if (!ends && event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED) continue;
        if (event.event_data.connect_event_data.ep_handle == ep) return ends ? i : events_.size();
    }
    return std::min(otherwise, events_.size());
}

/// Makes room for a completion before it is taken, because it could not be put back.
bool Evd::reserve_place() noexcept {
    if (has_place_) return true;
    const LockGuard lock(lock_);
    has_place_ = make_room();
    lacks_memory_ = !has_place_;
    return has_place_;
}

/// Returns its place.
std::size_t Evd::keep_completion(const DAT_EVENT& event, const Origin& origin, std::size_t otherwise) noexcept {
    const LockGuard lock(lock_);
    has_place_ = false;
    const std::size_t place = place_for(origin.ep, otherwise);
    events_.push({.event = event, .is_completion = true, .quiet = origin.quiet});
    ++collected_;
    quiet_ += origin.quiet ? 1 : 0;
    untold_ = untold_ || !origin.quiet;
    for (std::size_t i = events_.size() - 1; i > place; --i) std::swap(events_[i], events_[i - 1]);
    count_.store(events_.size(), std::memory_order_release);
    return place;
}

/// Moves completions to the events until there are as many as these. Returns the number of queued events.
std::size_t Evd::collect(std::size_t most) noexcept {
    DAT_EVENT event;
    Origin origin;
    while (completions_ != nullptr && count_.load(std::memory_order_acquire) < most && reserve_place() &&
           take_completion(event, origin))
        (void)keep_completion(event, origin, last);
    return count_.load(std::memory_order_acquire);
}

/// Moves the completions that the queue holds before the oldest posted event, which ends a connection, unless older
/// ones of other endpoints are behind it. There might always be more of those, so it is done once.
void Evd::collect_before_end() noexcept {
    bool others_follow = false;
    {
        const LockGuard lock(lock_);
        events_.front().is_due = true;
        others_follow = collected_ != 0;
    }
    DAT_EVENT event;
    Origin origin;
    std::size_t end = 0;  // its position
    for (std::uint32_t i = 0; i != places_ && reserve_place() && take_completion(event, origin); ++i)
        if (keep_completion(event, origin, others_follow ? last : end) <= end) ++end;
}

/// Threads that wait are told, because nothing tells them of completions that are taken here.
bool Evd::collect_all() noexcept {
    if (completions_ == nullptr) return true;
    const BiasedLock::SlowPathGuard taking(taking_);
    DAT_EVENT event;
    Origin origin;
    bool has_room = true;
    bool wakes = false;
    for (std::uint32_t i = 0; i != places_; ++i) {
        has_room = reserve_place();
        if (!has_room || !take_completion(event, origin)) break;
        (void)keep_completion(event, origin, last);
        wakes = wakes || !origin.quiet;
    }
    if (!wakes) return has_room;
    if (cno() != nullptr) watch_for_cno();
    const LockGuard lock(lock_);
    news_.set(true);
    announce();
    return has_room;
}

bool Evd::has_news() const noexcept {
    const LockGuard lock(lock_);
    return quiet_ != events_.size() || events_.size() >= capacity_;
}

/// Takes the oldest event if at least `threshold` are queued and one of them wakes waiters. Counts the remaining
/// events.
bool Evd::has(std::size_t threshold, DAT_EVENT& event, DAT_COUNT& nmore) noexcept {
    const LockGuard taking(taking_);
    if (threshold > 1 || has_cookies_) {
        // The dispatcher may have become shorter than the threshold.
        nmore = static_cast<DAT_COUNT>(collect(std::max<std::size_t>(capacity_, threshold)));
        if (static_cast<std::size_t>(nmore) < threshold || !has_news()) return false;
    }
    if (!take(event)) return false;
    (void)collect(capacity_);
    const LockGuard lock(lock_);
    nmore = static_cast<DAT_COUNT>(events_.size());
    untold_ = false;
    return true;
}

DAT_RETURN Evd::dequeue(DAT_EVENT& event) noexcept {
    if (waiting_.load(std::memory_order_acquire)) [[unlikely]]
        return report_failure("dat_evd_dequeue", handle(), has_waiter());
    const LockGuard taking(taking_);
    counters.add(DCNT_EVD_DEQUEUE);
    const bool taken = take(event);
    counters.add(taken ? DCNT_EVD_DEQUEUE_FOUND : DCNT_EVD_DEQUEUE_NOT_FOUND);
    if (taken) return success;
    // Programs compare the whole code. For dispatchers with completions they expect it without its class.
    return completions_ != nullptr ? DAT_RETURN{DAT_QUEUE_EMPTY} : error(DAT_QUEUE_EMPTY);
}

[[gnu::flatten, gnu::hot]] DAT_RETURN calls::evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT* event) {
    Evd* dispatcher = resolve_held<Evd>(evd);
    if (dispatcher == nullptr) [[unlikely]]
        return report_failure("dat_evd_dequeue", evd, invalid_handle(DAT_NO_SUBTYPE));
    if (event == nullptr) [[unlikely]]
        return report_failure("dat_evd_dequeue", evd, invalid_parameter(DAT_INVALID_ARG2, "event is null"));
    return dispatcher->dequeue(*event);
}

// ---- Waiting ------------------------------------------------------------------------------------------------------

/// A dispatcher has at most one waiter. This adapts it to wait_until().
class Evd::Waiting {
public:
    explicit Waiting(Evd& evd) noexcept : evd_(evd), admitted_(evd.begin_wait()) {}
    ~Waiting() {
        if (admitted_) evd_.end_wait();
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    bool admitted() const noexcept { return admitted_; }
    bool interrupted() const noexcept { return interrupted_; }

    Status arm() noexcept {
        hears_ = evd_.arm();
        return {};
    }
    /// If no descriptor can wake the thread, or completions had to be left where they are, it polls periodically.
    bool sleep(const Deadline& deadline) {
        const bool patient = hears_ && !evd_.lacks_memory_;
        const Woken woken = evd_.sleep(patient ? deadline : std::min(deadline, Deadline::after(look_again)));
        interrupted_ = woken == Woken::Signal;
        return !interrupted_ && woken != Woken::Closed;
    }

private:
    Evd& evd_;
    const bool admitted_;
    bool hears_ = false;
    bool interrupted_ = false;
};

/// Returns false if new events cannot wake a sleeping thread.
bool Evd::arm() noexcept {
    bool hears = false;
    {
        const LockGuard lock(lock_);
        news_.set(false);
        hears = news_.fd() >= 0;
    }
    return watch_completions().ok() && hears && (!has_completions() || completion_fd() >= 0);
}

Status Evd::watch_completions() noexcept {
    if (completions_ == nullptr) return {};
    return completions_->arm(notification() == Notification::Solicited ? Arm::Solicited : Arm::Any);
}

/// Completions bring the work of the device with them.
EventPoller& Evd::poller() const noexcept { return Internals::poller(*ia().device()); }

Woken Evd::sleep(const Deadline& deadline) {
    counters.add(DCNT_EVD_WAIT_BLOCKED);
    if (!has_completions()) poller().stop_polling();
    std::array<int, 2> sources{-1, completion_fd()};
    {
        const LockGuard lock(lock_);
        sources[0] = news_.fd();
    }
    return sleep_until_readable(sources, deadline);
}

DAT_RETURN Evd::wait(const Deadline& deadline, std::size_t threshold, DAT_EVENT& event, DAT_COUNT& nmore) {
    if (threshold > 1 && notification() == Notification::Solicited)
        return invalid_state(DAT_INVALID_STATE_EVD_CONFIG_SOLICITED,
                             "a threshold, while an endpoint notifies with DAT_COMPLETION_SOLICITED_WAIT_FLAG");
    if (threshold > 1 && notification() == Notification::Every)
        return invalid_state(DAT_INVALID_STATE_EVD_CONFIG_NOTIFY,
                             "a threshold, while an endpoint notifies with DAT_COMPLETION_UNSIGNALLED_FLAG");
    if (!waitable_) return unwaitable();
    nmore = 0;
    Waiting waiter(*this);
    if (!waiter.admitted()) return has_waiter();
    if (!waitable_) return unwaitable();  // checked again, because from here on dismiss_waiter() sees this thread
    counters.add(DCNT_EVD_WAIT);
    bool taken = false;
    wait_until(waiter, deadline, [&] {
        taken = !dismissed_ && has(threshold, event, nmore);
        if (!taken && !has_completions()) poller().poll();
        return taken || dismissed_;
    });
    if (taken) return success;
    if (wait_closed()) return freed();
    if (dismissed_) return unwaitable();
    return error(waiter.interrupted() ? DAT_INTERRUPTED_CALL : DAT_TIMEOUT_EXPIRED);
}

/// Returns false if another thread waits.
bool Evd::begin_wait() noexcept {
    const LockGuard lock(lock_);
    if (waiting_) return false;
    waiting_ = true;
    untold_ = false;  // the CNO was told
    return true;
}

/// The CNO was not triggered while the thread was waiting. A successful call tells how many events remain. Of others,
/// and if the call was not successful or the thread was cancelled, nobody has heard.
void Evd::end_wait() noexcept {
    if (cno() != nullptr) {
        (void)watch_completions();
        {
            const LockGuard taking(taking_);
            (void)collect(capacity_);
        }
        if (completions_ != nullptr) (void)completions_->ready();  // what there was no room for causes an event
    }
    const LockGuard lock(lock_);
    waiting_ = false;  // the dispatcher may be freed once the lock is released
    if (untold_ && quiet_ != events_.size()) announce();
}

/// Wakes the waiter, because the dispatcher has become unwaitable, and waits until it has left.
void Evd::dismiss_waiter() noexcept {
    dismissed_ = true;
    while (true) {
        {
            const LockGuard lock(lock_);
            if (!waiting_) break;
            news_.set(true);
        }
        std::this_thread::yield();
    }
    dismissed_ = false;
}

void Evd::await_lookups() noexcept { const LockGuard lock(looking_up()); }

void Evd::close() noexcept { end_waits(handle()); }

void Evd::drop_events() noexcept {
    const BiasedLock::SlowPathGuard taking(taking_);
    DAT_EVENT event;
    while (has_posted() && take_posted(event))
        if (event.event_number == DAT_CONNECTION_REQUEST_EVENT)
            refuse_unheard(event.event_data.cr_arrival_event_data.cr_handle, "its EVD was freed");
}

}  // namespace viaduct::dat
