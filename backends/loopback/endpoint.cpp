// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/endpoint.hpp"

#include <functional>

#include "backends/loopback/device.hpp"
#include "backends/support/endings.hpp"
#include "backends/support/guarded.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {

Endpoint::Endpoint(Device& device, const backend::EndpointInit& init)
    : EndpointBase(device, init),
      send_(*this, init.context, *static_cast<CompletionQueue*>(init.send_queue), init.send_depth),
      receive_(*this, init.context, *static_cast<CompletionQueue*>(init.receive_queue), init.receive_depth,
               static_cast<SharedReceiveQueue*>(init.shared_receives)),
      ref_(std::make_shared<EndpointRef>()) {
    ref_->endpoint = this;
    send_.completions().attach(send_);
    try {
        receive_.completions().attach(receive_);
    } catch (...) {
        send_.completions().detach(send_);
        throw;
    }
}

Endpoint::~Endpoint() {
    disconnect();
    {
        const LockGuard lock(ref_->mutex);
        ref_->endpoint = nullptr;
    }
    receive_.completions().detach(receive_);
    send_.completions().detach(send_);
    device_.endpoint_closed();
}

Status Endpoint::bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept {
    return support::guarded([&] {
        return post_bind(window, request, [this](const SendRequest& turn) {
            std::size_t posted = 0;
            return post_send({&turn, 1}, posted);
        });
    });
}

unsigned Endpoint::local_uses(const RegionView& region) const noexcept {
    if (region.domain != domain_id_) return 0;
    return (region.is_usable(false) ? local_read : 0u) | (region.is_usable(true) ? local_write : 0u);
}

/// Applies a change to both queues with both locks held. A shared lock is taken once; two locks are taken in order of
/// address, which is why this is unchecked.
template <class Change>
void Endpoint::with_queues_locked(Change change) noexcept {
    BiasedLock* first = &send_.lock();
    BiasedLock* second = &receive_.lock();
    if (std::less<>()(second, first)) std::swap(first, second);
    const BiasedLock::SlowPathGuard lock_first(*first);
    if (first == second) return change();
    const BiasedLock::SlowPathGuard lock_second(*second);
    change();
}

Status Endpoint::modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept {
    const LockGuard lock(ref_->mutex);
    if (!is_idle()) return {Code::InvalidState, "the attributes can be changed only while the endpoint is idle"};
    with_queues_locked([&] { change(attributes, domain); });
    return {};
}

Status Endpoint::connect(const ConnectParameters& parameters) noexcept {
    return support::guarded([&]() -> Status {
        const LockGuard lock(ref_->mutex);
        if (!is_idle()) return {Code::InvalidState, "the endpoint is not idle"};
        const auto target = index_of(parameters.remote.host);
        if (!target) return not_on_this_host(parameters.remote.host);
        auto to_device = parameters;
        to_device.remote.host = host_of(*target);
        const auto attempt = attempt_ = std::make_shared<Connection>(device_, ref_);
        const Status status = support::guarded([&] { return attempt->connect(to_device); });
        if (!status.ok() && attempt_ != nullptr) std::exchange(attempt_, nullptr)->abandon();
        return status;
    });
}

void Endpoint::establish(std::shared_ptr<Connection> connection, const ConnectionEvent& event) noexcept {
    attempt_.reset();
    bool rang = false;
    with_queues_locked([&]() VIADUCT_REQUIRES(send_.lock(), receive_.lock()) {
        breaking_.store(false);
        ending_.store(false);
        connection_ = std::move(connection);
        peer_process_.store(connection_->peer().process(), std::memory_order_relaxed);
        watched_ = false;
        polls_seen_ = send_.completions().polls() + receive_.completions().polls() - 1;  // assume at first that the
                                                                                         // consumers poll
        receive_polls_served_ = receive_.completions().polls() - 1;
        receive_.attach(*connection_);
        send_.attach(*connection_, receive_.ring());
        rang = device_.enter(connection_->number(), receive_.completions(), *this);
        observer_.on_connection_event(event);
    });
    if (rang) device_.doorbell().ring_self(connection_->number());
}

/// Flushes both queues and closes the connection. The mutex of the reference must be held; the caller should release it
/// before it drops the connection, because that takes longer than the rest.
std::shared_ptr<Connection> Endpoint::end_connection(bool on_purpose, bool reject_receives,
                                                     CompletionCode in_flight) noexcept {
    if (attempt_ != nullptr) std::exchange(attempt_, nullptr)->abandon();
    std::shared_ptr<Connection> connection = connection_;
    with_queues_locked([&]() VIADUCT_REQUIRES(send_.lock(), receive_.lock()) {
        send_.detach(in_flight);
        receive_.detach(reject_receives);
        if (connection_ != nullptr) device_.leave(connection_->number());
        connection_ = nullptr;
        peer_process_.store(0, std::memory_order_relaxed);
        breaking_.store(false);
    });
    if (connection == nullptr) return nullptr;
    device_.regions().end_windows_of(connection->number());
    connection->close(on_purpose);
    return connection;
}

void Endpoint::leave(bool fails) noexcept {
    std::shared_ptr<Connection> ended;
    const SharedLock serving(device_.serving());  // messages that have arrived are received
    const LockGuard lock(ref_->mutex);
    ended = end_connection(!fails && !breaking_.load(), fails, CompletionCode::Flushed);
    broken_ = fails;
}

void Endpoint::drain() noexcept {
    const LockGuard lock(ref_->mutex);
    if (connection_ == nullptr) return;
    const BiasedLock::SlowPathGuard queue_lock(send_.lock());
    send_.drain();
}

void Endpoint::lost() noexcept {
    bool peer_failed = false;
    {
        const BiasedLock::SlowPathGuard lock(receive_.lock());
        peer_failed = receive_.peer_failed();
    }
    broke(loss_here(peer_failed), CompletionCode::Transport);
}

void Endpoint::request_break() noexcept {
    send_.suspend();
    if (!breaking_.exchange(true)) request_end();
}

void Endpoint::request_end() noexcept {
    ending_.store(true);
    device_.doorbell().ring_self(connection_->number());
}

bool Endpoint::serve_directly() noexcept {
    receive_.lock().assume_held();
    const bool one_queue = &send_.completions() == &receive_.completions();
    if (ending_.load() || (!one_queue && send_.outstanding() != 0)) return false;
    receive_.progress();
    receive_.confirm_lazily();
    if (one_queue) send_.progress();
    // serve() makes a queue busy, and clears the need-wakeup flag of one that was not polled for some time.
    return receive_.needs_wakeup() && receive_.is_polled() ? false : !receive_.rings_often();
}

bool Endpoint::serve(Connection& connection) noexcept {
    if (connection_.get() != &connection) return false;
    const std::uint32_t polls = send_.completions().polls() + receive_.completions().polls();
    const bool polled = std::exchange(polls_seen_, polls) != polls;
    const std::uint32_t receive_polls = receive_.completions().polls();
    const bool receives_polled = std::exchange(receive_polls_served_, receive_polls) != receive_polls;
    bool drained = false;
    bool becomes_busy = false;
    {
        const BiasedLock::SlowPathGuard lock(send_.lock());
        send_.progress();
        drained = send_.has_drained();
    }
    {
        const BiasedLock::SlowPathGuard lock(receive_.lock());
        receive_.progress();
        receive_.confirm_promptly();
        becomes_busy = receives_polled && receive_.rings_often();
        if (becomes_busy) receive_.become_busy();
        receive_.update_wakeup(receives_polled || watched_);
    }
    if (becomes_busy) {
        const BiasedLock::SlowPathGuard lock(send_.lock());
        send_.become_busy();
    }
    if (is_breaking()) {
        lost();
        return false;
    }
    if (drained) {
        broke({.kind = ConnectionEventKind::Disconnected, .why = support::endings::drained}, CompletionCode::Flushed,
              true);
        return false;
    }
    if (!receive_.needs_wakeup() && !std::exchange(watched_, true)) {
        receive_polls_seen_ = receive_.completions().polls();
        device_.watch_consumer(connection.number());
    }
    return polled;
}

bool Endpoint::is_still_polled(const Connection& connection) noexcept {
    if (connection_.get() != &connection) return false;
    const std::uint32_t polls = receive_.completions().polls();
    watched_ = std::exchange(receive_polls_seen_, polls) != polls && !receive_.needs_wakeup();
    if (watched_) return true;
    const BiasedLock::SlowPathGuard lock(receive_.lock());
    receive_.update_wakeup(false);
    return false;
}

void Endpoint::peer_hung_up(Connection& connection) noexcept {
    if (connection_.get() != &connection) return;
    {
        // A message that cannot be received turns the end into a loss.
        const BiasedLock::SlowPathGuard lock(receive_.lock());
        receive_.progress();
    }
    if (is_breaking())
        lost();
    else if (connection.closed_on_purpose_by_peer())
        broke({.kind = ConnectionEventKind::Disconnected, .why = support::endings::disconnected},
              CompletionCode::Flushed);
    else if (const CompletionCode refused = send_.refusal(); refused != CompletionCode::Success)
        broke({.kind = ConnectionEventKind::Lost, .why = support::words_of_peer(refused)}, CompletionCode::Transport);
    else
        broke({.kind = ConnectionEventKind::Lost, .reason = Code::Unreachable, .why = support::endings::peer_ended},
              CompletionCode::Transport);
}

}  // namespace viaduct::loopback
