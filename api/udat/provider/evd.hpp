// SPDX-License-Identifier: BSD-3-Clause
// Event dispatchers. Completions of data transfers and binds stay in a completion queue of the core until they are
// requested. All other events are posted here by the threads that cause them.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "api/udat/provider/binds.hpp"
#include "api/udat/provider/counters.hpp"
#include "api/udat/provider/object.hpp"
#include "core/base/biased_lock.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/fifo.hpp"
#include "viaduct/completion_queue.hpp"

namespace viaduct::dat {

class Cno;

class Evd final : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_EVD;

    /// Which completions wake waiters (DAT_EVD_STATE_CONFIG_...), as required by the endpoints that use the dispatcher.
    enum class Notification : std::uint8_t { Unset, Every, Solicited, Threshold };

    static DAT_RETURN create(Ia& ia, DAT_COUNT qlen, Cno* cno, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE& evd);
    ~Evd() override;

    Counters<DCNT_EVD_ALL_COUNTERS> counters;
    Binds binds;  ///< the binds that complete here

    bool takes(DAT_EVD_FLAGS stream) const noexcept { return (flags_ & stream) != 0; }
    DAT_COUNT qlen() const noexcept { return static_cast<DAT_COUNT>(capacity_.load(std::memory_order_relaxed)); }

    /// The queue for the completions of endpoints. Null if the dispatcher accepts no such stream.
    const std::shared_ptr<CompletionQueue>& completions() const noexcept { return completions_; }

    /// An endpoint starts or stops queueing at most `completions` completions here. See CompletionStream.
    void begin_stream(std::uint32_t completions, Notification wanted) noexcept;
    void end_stream(std::uint32_t completions, Notification wanted) noexcept;
    /// An endpoint may queue as many more; see add_places().
    void widen_stream(std::uint32_t completions) noexcept { room_ += completions; }
    /// Gives the queue the places that its endpoints may need. Not while parts of an endpoint are locked.
    void add_places() noexcept;

    /// Called if the endpoint has cookies, so that some completions may wake no waiter.
    void expect_cookies() noexcept { has_cookies_ = true; }

    /// Called if receives of shared queues complete here.
    void expect_shared_receives() noexcept { has_shared_receives_ = true; }

    /// Appends an event and sets its evd_handle. Returns false if there is no room. Never blocks and takes no lock of
    /// the core, so observers may call it. The requested length limits connection requests and software events; for
    /// other events the dispatcher grows. An overflow that is still queued is not queued again.
    bool try_post(const DAT_EVENT& event) noexcept;

    /// Reserves room for a connection request, which is then posted or given up. If there is none, returns false and
    /// reports an overflow on the asynchronous dispatcher of the IA.
    bool expect_request() noexcept;
    void post_request(const DAT_EVENT& event) noexcept;
    void give_up_request() noexcept;

    /// Reports that there was no room for an event.
    void report_overflow() noexcept;

    DAT_RETURN dequeue(DAT_EVENT& event) noexcept;
    DAT_RETURN wait(const Deadline& deadline, std::size_t threshold, DAT_EVENT& event, DAT_COUNT& nmore);

    void close() noexcept override;

    /// Moves all completions from the queue to the events, beyond the length of the dispatcher. Endpoints then count
    /// only work that has not completed. Returns false if there is no room. Not while parts of an endpoint are locked.
    bool collect_all() noexcept;

    /// As collect_all(), if shared receives may take the places of other work. There is none if only solicited messages
    /// wake threads (dat_ep_create_with_srq(3DAT)).
    bool collect_shared() noexcept {
        return !has_shared_receives_ || notification() == Notification::Solicited || collect_all();
    }

    /// As collect_all(), if suppressed binds may have completed, which cause no event that makes anybody take them.
    /// Otherwise returns false.
    bool collect_suppressed() noexcept { return binds.any_suppressed() && collect_all(); }

    /// Drops the events of a dispatcher that is freed, and refuses the requests that only they name.
    void drop_events() noexcept;

    /// Waits until no thread that takes an event uses an object whose handle was already invalid before this call.
    void await_takers() noexcept { const BiasedLock::SlowPathGuard taking(taking_); }

    /// Waits until no thread that takes a connection event, of any IA, uses an endpoint whose handle was already
    /// invalid before this call.
    static void await_lookups() noexcept;

    DAT_RETURN resize(DAT_COUNT qlen);
    void set_waitable(bool waitable) noexcept;
    void set_enabled(bool enabled) noexcept;
    void set_cno(Cno* cno);
    void query(DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM& param) const noexcept;

    // For the CNO of this dispatcher:

    bool has_completions() const noexcept { return completions_ != nullptr; }
    /// Returns -1 if there are no completions to watch, or if no descriptor is left for them.
    int completion_fd() const noexcept { return completions_ == nullptr ? -1 : completions_->fd(); }
    /// Reports whether there are new completions since the last call. Arms the queue for the next one.
    bool has_new_completions() noexcept;
    bool notifies() const noexcept { return enabled_ && !waiting_; }
    bool is_enabled() const noexcept { return enabled_; }

private:
    class Waiting;

    /// An event that was posted, or a completion that was taken to be returned later.
    struct Queued {
        DAT_EVENT event;
        bool is_completion;
        bool quiet;           ///< wakes no waiter
        bool is_due = false;  ///< an end that completions do not delay any more
    };

    /// The endpoint of a completion and whether the completion wakes no waiter.
    struct Origin {
        DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
        bool quiet = false;
    };

    Evd(Ia& ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags);

    bool has_posted() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
    bool take(DAT_EVENT& event) noexcept VIADUCT_REQUIRES(taking_);
    Status fit_completions(std::size_t qlen) noexcept VIADUCT_REQUIRES(taking_);
    Notification notification() const noexcept;
    bool is_early() const noexcept VIADUCT_REQUIRES(taking_);
    bool take_any(DAT_EVENT& event) noexcept VIADUCT_REQUIRES(taking_);
    bool take_after(Completion polled, DAT_EVENT& event) noexcept VIADUCT_REQUIRES(taking_);
    bool take_posted(DAT_EVENT& event) noexcept VIADUCT_REQUIRES(taking_);
    [[gnu::noinline]] bool write(Completion completion, DAT_EVENT& event, Origin& origin) noexcept;
    bool write_usual(const Completion& completion, DAT_EVENT& event) noexcept;
    bool take_completion(DAT_EVENT& event, Origin& origin) noexcept VIADUCT_REQUIRES(taking_);
    bool reserve_place() noexcept VIADUCT_REQUIRES(taking_);
    std::size_t keep_completion(const DAT_EVENT& event, const Origin& origin, std::size_t otherwise) noexcept
        VIADUCT_REQUIRES(taking_);
    void collect_before_end() noexcept VIADUCT_REQUIRES(taking_);
    bool make_room() noexcept VIADUCT_REQUIRES(lock_);
    bool is_full() const noexcept VIADUCT_REQUIRES(lock_);
    bool is_known_overflow(const DAT_EVENT& event) const noexcept VIADUCT_REQUIRES(lock_);
    void append(const DAT_EVENT& event) noexcept VIADUCT_REQUIRES(lock_);
    std::size_t place_for(DAT_EP_HANDLE ep, std::size_t otherwise) const noexcept VIADUCT_REQUIRES(lock_);
    bool has_news() const noexcept;
    std::size_t collect(std::size_t most) noexcept VIADUCT_REQUIRES(taking_);
    bool has(std::size_t threshold, DAT_EVENT& event, DAT_COUNT& nmore) noexcept;
    void announce() noexcept VIADUCT_REQUIRES(lock_);
    bool arm() noexcept;
    bool begin_wait() noexcept;
    void end_wait() noexcept;
    Status watch_completions() noexcept;
    void watch_for_cno() noexcept;
    Cno* cno() const noexcept;
    Woken sleep(const Deadline& deadline);
    EventPoller& poller() const noexcept;
    void dismiss_waiter() noexcept;

    const DAT_EVD_FLAGS flags_;
    std::atomic<std::size_t> capacity_;   // the length that the consumer requested
    std::atomic<std::uint32_t> room_{0};  // required by the endpoints, whatever the length of the dispatcher
    std::shared_ptr<CompletionQueue> completions_;
    std::array<std::atomic<int>, 4> streams_{};  // number of streams for each Notification
    std::atomic<bool> has_cookies_{false};
    std::atomic<bool> has_shared_receives_{false};
    std::atomic<bool> enabled_{true};
    std::atomic<bool> waitable_{true};
    std::atomic<bool> waiting_{false};
    std::atomic<bool> dismissed_{false};

    BiasedLock taking_;  // held by threads that take events, never by those that post them
    std::uint32_t places_ VIADUCT_GUARDED_BY(taking_);  // of completions_

    mutable SpinLock lock_;  // never held while a backend is called
    Fifo<Queued> events_ VIADUCT_GUARDED_BY(lock_);
    ReadableFlag news_ VIADUCT_GUARDED_BY(lock_);  // since arm()
    std::atomic<bool> has_place_{false};     // events_ has room for a completion; changed with taking_ and lock_ held
    std::atomic<bool> lacks_memory_{false};  // for a place, when one was last needed
    std::size_t requests_ VIADUCT_GUARDED_BY(lock_) = 0;   // connection requests for which there is room
    std::atomic<std::size_t> count_{0};                    // size of events_, to be read without the lock
    bool untold_ VIADUCT_GUARDED_BY(lock_) = false;        // events came since a thread began to wait or was told
    std::size_t collected_ VIADUCT_GUARDED_BY(lock_) = 0;  // number of completions in events_
    std::size_t quiet_ VIADUCT_GUARDED_BY(lock_) = 0;      // number of events in events_ that wake no waiter
    std::size_t endings_ VIADUCT_GUARDED_BY(lock_) = 0;    // number of events in events_ that end a connection
    Use<Cno> cno_ VIADUCT_GUARDED_BY(lock_);
};

/// A reference to a dispatcher that may belong to another IA and be destroyed with it. The dispatcher is therefore
/// looked up for each event. Empty by default and after the dispatcher was destroyed, also when another one has got its
/// handle.
class EvdLink {
public:
    EvdLink() noexcept = default;
    explicit EvdLink(Evd* evd) noexcept : handle_(handle_of(evd)) {
        if (evd == nullptr) return;
        evd->users.add();
        use_ = Object::slots.use_of(handle_);
    }
    EvdLink& operator=(EvdLink&& other) noexcept;
    ~EvdLink();

    Evd* get() const noexcept {
        Evd* const evd = resolve<Evd>(handle_);
        return evd != nullptr && Object::slots.use_of(handle_) == use_ ? evd : nullptr;
    }
    DAT_EVD_HANDLE handle() const noexcept { return get() == nullptr ? DAT_HANDLE_NULL : handle_; }
    explicit operator bool() const noexcept { return get() != nullptr; }

    /// Like Evd::try_post(). Also returns false if the dispatcher was destroyed.
    bool try_post(const DAT_EVENT& event) const noexcept;

    /// Waits until no thread posts to a dispatcher whose handle was already invalid before this call.
    static void await_posters() noexcept;

private:
    DAT_EVD_HANDLE handle_ = DAT_HANDLE_NULL;
    std::uint32_t use_ = 0;  // of the handle
};

/// The completions of an endpoint on a dispatcher, which may be null.
class CompletionStream {
public:
    CompletionStream() noexcept = default;
    /// `completions`: how many requests the endpoint may have outstanding.
    CompletionStream(Evd* evd, DAT_COUNT completions, Evd::Notification wanted) noexcept
        : evd_(evd), completions_(static_cast<std::uint32_t>(completions)), wanted_(wanted) {
        if (evd_ != nullptr) evd_->begin_stream(completions_, wanted_);
    }
    CompletionStream& operator=(CompletionStream&& other) noexcept {
        std::swap(evd_, other.evd_);
        std::swap(completions_, other.completions_);
        std::swap(wanted_, other.wanted_);
        return *this;
    }
    /// The endpoint may have so many requests outstanding now. Returns the dispatcher if that needs more places.
    Evd* widen(std::uint32_t completions) noexcept {
        if (evd_ == nullptr || completions <= completions_) return nullptr;
        evd_->widen_stream(completions - completions_);
        completions_ = completions;
        return evd_;
    }
    ~CompletionStream() {
        if (evd_ != nullptr) evd_->end_stream(completions_, wanted_);
    }

private:
    Evd* evd_ = nullptr;
    std::uint32_t completions_ = 0;
    Evd::Notification wanted_ = Evd::Notification::Unset;
};

}  // namespace viaduct::dat
