// SPDX-License-Identifier: BSD-3-Clause
// Event dispatchers. Completions of data transfers and binds wait in a completion queue of the core until somebody
// asks; all other events are put here by whoever brings them.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "api/udat/provider/binds.hpp"
#include "api/udat/provider/counters.hpp"
#include "api/udat/provider/object.hpp"
#include "core/base/biased_lock.hpp"
#include "core/base/event_channel.hpp"
#include "core/completion_queue.hpp"

namespace viaduct::dat {

class Cno;

/// A queue that has to be given room before it grows. Not thread-safe.
class EventRing {
public:
    explicit EventRing(std::size_t capacity) : slots_(capacity) {}

    std::size_t size() const noexcept { return size_; }
    std::size_t capacity() const noexcept { return slots_.size(); }
    bool full() const noexcept { return size_ == slots_.size(); }
    const DAT_EVENT& front() const noexcept { return slots_[first_].event; }
    const DAT_EVENT& at(std::size_t index) const noexcept { return slots_[(first_ + index) % slots_.size()].event; }

    /// Whether any event is there of which those who wait are to know.
    bool has_news() const noexcept { return quiet_ != size_; }

    /// Appends an event, which may be one that wakes nobody. The ring is not full.
    void push(const DAT_EVENT& event, bool quiet) noexcept {
        slot(size_++) = {event, quiet};
        quiet_ += quiet ? 1 : 0;
    }
    void pop() noexcept {
        quiet_ -= slots_[first_].quiet ? 1 : 0;
        first_ = (first_ + 1) % slots_.size();
        --size_;
    }
    void swap(std::size_t a, std::size_t b) noexcept { std::swap(slot(a), slot(b)); }

    /// Takes all events of another ring, which fit.
    void take_over(EventRing& other) noexcept {
        for (; other.size_ != 0; other.pop()) push(other.front(), other.slots_[other.first_].quiet);
    }

private:
    struct Slot {
        DAT_EVENT event;
        bool quiet;
    };
    Slot& slot(std::size_t index) noexcept { return slots_[(first_ + index) % slots_.size()]; }

    std::vector<Slot> slots_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
    std::size_t quiet_ = 0;  // events that wake nobody
};

class Evd final : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_EVD;

    /// Who is woken by completions (DAT_EVD_STATE_CONFIG_...), as the endpoints that use the dispatcher want it.
    enum class Notification : std::uint8_t { Unset, Every, Solicited, Threshold };

    static DAT_RETURN create(Ia& ia, DAT_COUNT qlen, Cno* cno, DAT_EVD_FLAGS flags, std::unique_ptr<Evd>& evd);
    ~Evd() override;

    Counters<DCNT_EVD_ALL_COUNTERS> counters;
    Binds binds;  ///< that complete here

    DAT_EVD_FLAGS flags() const noexcept { return flags_; }
    bool takes(DAT_EVD_FLAGS stream) const noexcept { return (flags_ & stream) != 0; }
    DAT_COUNT qlen() const noexcept { return static_cast<DAT_COUNT>(capacity_.load(std::memory_order_relaxed)); }

    /// Where endpoints complete their work; null where no such stream feeds this dispatcher.
    const std::shared_ptr<CompletionQueue>& completions() const noexcept { return completions_; }

    /// Completions of an endpoint come, as many as may wait here at once, or come no more. See CompletionStream.
    void begin_stream(std::uint32_t completions, Notification wanted) noexcept;
    void end_stream(std::uint32_t completions, Notification wanted) noexcept;

    /// Some completions will wake nobody: the endpoint has cookies.
    void expect_cookies() noexcept { has_cookies_ = true; }

    /// Adds an event, whose evd_handle is filled in. False where there was no room: then the asynchronous dispatcher of
    /// the IA has been told. Never waits, takes no lock of the core: observers may call it. Connection requests and
    /// software events find as much room as the consumer asked for; for others it grows.
    bool post(const DAT_EVENT& event) noexcept;
    /// As post(), but a full queue is the caller's to report.
    bool try_post(const DAT_EVENT& event) noexcept;

    /// A completion found no room.
    void report_overflow() noexcept;

    DAT_RETURN dequeue(DAT_EVENT& event) noexcept;
    DAT_RETURN wait(const Deadline& deadline, std::size_t threshold, DAT_EVENT& event, DAT_COUNT& nmore) noexcept;

    /// Wakes a waiter, who then returns `farewell`, and waits until it has gone.
    void dismiss_waiter(DAT_RETURN farewell) noexcept;

    void close() noexcept override;

    /// Waits until no thread that takes an event looks at an object whose handle had ended before.
    void await_takers() noexcept { const BiasedLock::Aside taking(taking_); }

    /// Waits until no thread that takes the event of a connection, of whichever IA, looks at an endpoint whose handle
    /// had ended before.
    static void await_lookups() noexcept;

    DAT_RETURN resize(DAT_COUNT qlen);
    void set_waitable(bool waitable) noexcept;
    void set_enabled(bool enabled) noexcept;
    void set_cno(Cno* cno);
    DAT_RETURN query(DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM& param) const noexcept;

    // For the CNO that this dispatcher feeds:

    /// -1 where there are no completions to watch.
    int completion_fd() const noexcept { return completions_ == nullptr ? -1 : completions_->fd(); }
    /// Whether completions have come since the last call; from then on the next one is watched for.
    bool take_notice() noexcept;
    bool notifies() const noexcept { return enabled_ && !waiting_; }
    bool is_enabled() const noexcept { return enabled_; }

private:
    class Waiting;

    /// Where a completion comes from, and whether it is to wake nobody.
    struct Origin {
        DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
        bool quiet = false;
    };

    Evd(Ia& ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags);

    bool has_posted() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
    bool take(DAT_EVENT& event) noexcept;
    Status fit_completions(std::size_t qlen) noexcept;
    Notification notification() const noexcept;
    bool is_early() const noexcept;
    bool take_posted(DAT_EVENT& event) noexcept;
    bool take_completion(DAT_EVENT& event, Origin& origin) noexcept;
    bool keep_completion(const DAT_EVENT& event, const Origin& origin) noexcept;
    bool make_room() noexcept;
    std::size_t place_for(DAT_EP_HANDLE ep) const noexcept;
    bool has_news() const noexcept;
    std::size_t collect() noexcept;
    bool has(std::size_t threshold, DAT_EVENT& event, DAT_COUNT& nmore) noexcept;
    bool arm() noexcept;
    void end_wait(std::size_t told) noexcept;
    Status watch_completions() noexcept;
    Cno* cno() const noexcept;
    int sleep(int timeout_ms) noexcept;

    const DAT_EVD_FLAGS flags_;
    std::atomic<std::size_t> capacity_;   // what the consumer asked for
    std::atomic<std::uint32_t> room_{0};  // for completions of endpoints, however short the dispatcher is
    std::shared_ptr<CompletionQueue> completions_;
    std::array<std::atomic<int>, 4> streams_{};  // of completions, by what they want of Notification
    std::atomic<bool> has_cookies_{false};
    std::atomic<bool> enabled_{true};
    std::atomic<bool> waitable_{true};
    std::atomic<bool> waiting_{false};
    std::atomic<DAT_RETURN> dismissal_{DAT_SUCCESS};

    BiasedLock taking_;  // held by who takes events; never by who brings them

    mutable SpinLock lock_;  // guards what follows; innermost
    EventRing events_;
    ReadableFlag news_;                  // since arm()
    std::atomic<std::size_t> count_{0};  // of events_, to look at without the lock
    std::size_t endings_ = 0;            // of connections, among events_
    Use<Cno> cno_;
};

/// Holds on to a dispatcher that may be another IA's, and end with that one: it is looked up for each event. Empty by
/// default, and when the dispatcher has ended.
class EvdLink {
public:
    EvdLink() noexcept = default;
    explicit EvdLink(Evd* evd) noexcept : handle_(handle_of(evd)) {
        if (evd != nullptr) evd->users.add();
    }
    EvdLink& operator=(EvdLink&& other) noexcept;
    ~EvdLink();

    Evd* get() const noexcept { return resolve<Evd>(handle_); }
    DAT_EVD_HANDLE handle() const noexcept { return handle_of(get()); }
    explicit operator bool() const noexcept { return get() != nullptr; }

    /// As the dispatcher's. False also where it has ended.
    bool try_post(const DAT_EVENT& event) const noexcept;

    /// Waits until nobody posts to a dispatcher whose handle had ended before.
    static void await_posters() noexcept;

private:
    DAT_EVD_HANDLE handle_ = DAT_HANDLE_NULL;
};

/// What completes of an endpoint at a dispatcher, which may be none.
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
    ~CompletionStream() {
        if (evd_ != nullptr) evd_->end_stream(completions_, wanted_);
    }

private:
    Evd* evd_ = nullptr;
    std::uint32_t completions_ = 0;
    Evd::Notification wanted_ = Evd::Notification::Unset;
};

}  // namespace viaduct::dat
