// SPDX-License-Identifier: BSD-3-Clause
// The outcome of a connection request, passed from the backend to the call that collects it.
#pragma once

#include "api/support/interruption.hpp"
#include "core/backend.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/wait_until.hpp"
#include "core/base/waiting.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::vipl {

/// A VI has at most one request in progress. The outcome of a peer-to-peer request is kept until it is collected or the
/// next request begins.
class ConnectAttempt {
public:
    using Model = ConnectParameters::Model;

    /// Returns the number of the request, or 0 if one is in progress, or after end().
    std::uint64_t begin(Model model) noexcept {
        const LockGuard lock(mutex_);
        if (ended_ || phase_ == Phase::Pending) return 0;
        model_ = model;
        phase_ = Phase::Pending;
        return ++number_;
    }

    /// The number of the last request.
    std::uint64_t number() noexcept {
        const LockGuard lock(mutex_);
        return number_;
    }

    /// Records the outcome. Does nothing if no request is in progress.
    void settle(const ConnectionEvent& event) noexcept {
        {
            const LockGuard lock(mutex_);
            if (phase_ != Phase::Pending) return;
            outcome_ = event;
            phase_ = Phase::Settled;
        }
        changed_.notify_all();
    }

    /// Abandons the request or its outcome. A thread that waits for it gets InvalidState.
    void abandon() noexcept {
        {
            const LockGuard lock(mutex_);
            phase_ = Phase::None;
        }
        changed_.notify_all();
    }

    /// As abandon(), and no request can begin any more.
    void end() noexcept {
        {
            const LockGuard lock(mutex_);
            ended_ = true;
        }
        abandon();
    }

    /// Collects the outcome. InvalidState: there is no request of this model. WouldBlock: the request is still in
    /// progress.
    Result<ConnectionEvent> try_take(Model model) {
        const LockGuard lock(mutex_);
        return take(model);
    }

    /// Like try_take(), but waits for the outcome of the request with this number; it has its own deadline.
    /// InvalidState: it was abandoned. WouldBlock: the wait was interrupted.
    Result<ConnectionEvent> wait(Model model, std::uint64_t number, EventPoller& poller) {
        const auto settled = [this, model, number]() VIADUCT_REQUIRES(mutex_) {
            return phase_ != Phase::Pending || number_ != number || model_ != model;
        };
        (void)poll_soon(Deadline::never(), poller, [&] {
            const LockGuard lock(mutex_);
            return settled();
        });
        UniqueLock lock(mutex_);
        while (true) {
            {
                const CancellationPoint here;
                changed_.wait(mutex_, next_look(Deadline::never()), settled);
            }
            if (number_ != number || phase_ == Phase::None) return abandoned();
            if (settled()) return take(model);
            lock.unlock();
            if (interrupted())
                return Status(Code::WouldBlock, "interrupted while waiting for the outcome of a connection request");
            lock.lock();
        }
    }

private:
    enum class Phase : std::uint8_t { None, Pending, Settled };

    static Status no_request() noexcept { return {Code::InvalidState, "no connection request"}; }
    static Status abandoned() noexcept { return {Code::InvalidState, "another call has ended the connection request"}; }

    Result<ConnectionEvent> take(Model model) VIADUCT_REQUIRES(mutex_) {
        if (phase_ == Phase::None || model_ != model) return no_request();
        if (phase_ == Phase::Pending) return Status(Code::WouldBlock, "the connection request is still pending");
        phase_ = Phase::None;
        return outcome_;
    }

    Mutex mutex_;
    ConditionVariable changed_;
    std::uint64_t number_ VIADUCT_GUARDED_BY(mutex_) = 0;
    Phase phase_ VIADUCT_GUARDED_BY(mutex_) = Phase::None;
    bool ended_ VIADUCT_GUARDED_BY(mutex_) = false;
    Model model_ VIADUCT_GUARDED_BY(mutex_) = Model::ClientServer;
    ConnectionEvent outcome_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::vipl
