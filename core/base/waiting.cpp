// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/waiting.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include "core/base/fork.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct {
namespace {

/// The cancellation state of the program while a CancellationHold exists.
constexpr int not_held = -1;
thread_local int state_of_program = not_held;

thread_local WaitingCall* innermost = nullptr;

/// All waiting calls of the process. Never destroyed: threads may wait while the process exits.
struct Calls {
    static void forget_all(void* calls) noexcept {
        auto& own = *static_cast<Calls*>(calls);
        own.mutex.assume_held();
        own.first = nullptr;
    }

    ProcessMutex mutex{forget_all, this};  // guards the members of the calls, too
    std::atomic<std::uint32_t> left{0};    // the closed calls that have ended; a child inherits no waiter
    WaitingCall* first VIADUCT_GUARDED_BY(mutex) = nullptr;
};
Calls& calls = *new Calls;

void set_cancellation(int state) noexcept { pthread_setcancelstate(state, nullptr); }

}  // namespace

CancellationHold::CancellationHold() noexcept : outermost_(state_of_program == not_held) {
    if (outermost_) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_of_program);
}

CancellationHold::~CancellationHold() {
    if (!outermost_) return;
    set_cancellation(state_of_program);
    state_of_program = not_held;
}

CancellationPoint::CancellationPoint() noexcept {
    if (state_of_program != not_held) set_cancellation(state_of_program);
}

CancellationPoint::~CancellationPoint() {
    if (state_of_program != not_held) set_cancellation(PTHREAD_CANCEL_DISABLE);
}

WaitingCall::WaitingCall(const void* handle, void* (*find)(const void* handle) noexcept, OnSignal on_signal) noexcept
    : handle_(handle), on_signal_(on_signal), outer_(innermost) {
    const LockGuard lock(calls.mutex);
    object_ = find(handle);  // end_waits() takes the lock after the handle has become invalid
    next_ = calls.first;
    if (next_ != nullptr) next_->previous_ = this;
    calls.first = this;
    innermost = this;
}

WaitingCall::~WaitingCall() {
    innermost = outer_;
    {
        const LockGuard lock(calls.mutex);
        (previous_ == nullptr ? calls.first : previous_->next_) = next_;
        if (next_ != nullptr) next_->previous_ = previous_;
        if (!closed_) return;
        ++calls.left;
    }
    calls.left.notify_all();
}

bool WaitingCall::closed() const noexcept {
    const LockGuard lock(calls.mutex);
    return closed_;
}

bool wait_closed() noexcept { return innermost != nullptr && innermost->closed(); }

void end_waits(const void* handle) noexcept {
    while (true) {
        std::uint32_t left = 0;
        {
            const LockGuard lock(calls.mutex);
            bool found = false;
            for (WaitingCall* call = calls.first; call != nullptr; call = call->next_) {
                if (call->handle_ != handle) continue;
                found = true;
                if (std::exchange(call->closed_, true) || !call->wake_) continue;
                eventfd_write(call->wake_.get(), 1);
            }
            if (!found) return;
            left = calls.left;
        }
        calls.left.wait(left);
    }
}

/// The descriptors that a sleeping call watches besides those it was asked to watch.
class Sleep {
public:
    explicit Sleep(WaitingCall* call) noexcept : call_(call) {
        if (call_ == nullptr) return;
        {
            const LockGuard lock(calls.mutex);
            if (!call_->wake_) call_->wake_ = UniqueFd(eventfd(call_->closed_ ? 1 : 0, EFD_CLOEXEC));
        }
        if (call_->on_signal_ == OnSignal::EndUnlessRestarting) block_signals();
    }
    ~Sleep() {
        if (signals_) pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
    }

    int wake_fd() const noexcept { return call_ == nullptr ? -1 : call_->wake_.get(); }
    int signal_fd() const noexcept { return signals_.get(); }

    /// Whether the sleep ends although a signal only interrupted poll(2).
    bool ends_when_interrupted() const noexcept {
        return call_ == nullptr || call_->on_signal_ == OnSignal::EndUnlessRestarting;
    }

    /// Lets the pending signals run their handlers. Returns whether one of them ends the sleep.
    bool deliver_signals() noexcept {
        sigset_t pending;
        sigpending(&pending);
        bool ends = false;
        for (int signal = 1; signal < NSIG; ++signal) {
            struct sigaction action {};
            if (sigismember(&pending, signal) != 1 || sigismember(&watched_, signal) != 1) continue;
            if (sigaction(signal, nullptr, &action) != 0) continue;
            const bool handled = action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
            ends = ends || (handled && (action.sa_flags & SA_RESTART) == 0);
        }
        pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
        pthread_sigmask(SIG_BLOCK, &watched_, nullptr);
        return ends;
    }

private:
    /// poll(2) does not tell which handler ran. Therefore the signals wait until they have been looked at. Without a
    /// descriptor for that, each one ends the sleep.
    void block_signals() noexcept {
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        sigemptyset(&watched_);
        for (int signal = 1; signal < NSIG; ++signal)
            if (sigismember(&blocked, signal) == 0) sigaddset(&watched_, signal);
        signals_ = UniqueFd(signalfd(-1, &watched_, SFD_CLOEXEC));
        if (signals_) pthread_sigmask(SIG_BLOCK, &watched_, nullptr);
    }

    WaitingCall* const call_;
    UniqueFd signals_;
    sigset_t watched_{};  // those that the program does not block
};

Woken sleep_until_readable(std::span<const int> fds, const Deadline& deadline) {
    constexpr Deadline::Clock::duration longest_unwatched = std::chrono::milliseconds(100);
    WaitingCall* const call = deadline.poll_timeout_ms() == 0 ? nullptr : innermost;
    Sleep sleep(call);
    std::array<pollfd, 5> sources{};
    pollfd* end = sources.data();
    for (const int fd : fds) *end++ = {.fd = fd, .events = POLLIN, .revents = 0};
    const pollfd& wake = *end++ = {.fd = sleep.wake_fd(), .events = POLLIN, .revents = 0};
    const pollfd& signals = *end++ = {.fd = sleep.signal_fd(), .events = POLLIN, .revents = 0};
    const bool must_look = call != nullptr && wake.fd < 0;  // no descriptor was left
    while (true) {
        const Deadline until = must_look ? std::min(deadline, Deadline::after(longest_unwatched)) : deadline;
        int ready = 0;
        {
            const CancellationPoint here;
            ready = ::poll(sources.data(), static_cast<nfds_t>(end - sources.data()), until.poll_timeout_ms());
        }
        if (ready < 0 && (errno != EINTR || sleep.ends_when_interrupted())) return Woken::Signal;
        for (std::size_t i = 0; ready > 0 && i < fds.size(); ++i)
            if (sources[i].revents != 0) return Woken::Ready;
        if (call != nullptr && call->closed()) return Woken::Closed;
        if (ready > 0 && signals.revents != 0 && sleep.deliver_signals()) return Woken::Signal;
        if (deadline.passed()) return Woken::Late;
    }
}

Woken sleep_until_ready(std::span<const int> fds, const Deadline& deadline) {
    if (std::ranges::min(fds) >= 0) return sleep_until_readable(fds, deadline);
    const Woken woken = sleep_until_readable(fds, std::min(deadline, Deadline::after(look_again)));
    return woken == Woken::Late ? Woken::Ready : woken;
}

}  // namespace viaduct
