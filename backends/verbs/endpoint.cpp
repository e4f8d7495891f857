// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/endpoint.hpp"

#include <algorithm>
#include <new>

#include "backends/support/endings.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/send_request.hpp"
#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/device.hpp"
#include "backends/verbs/shared_receive_queue.hpp"

namespace viaduct::verbs {

using namespace std::chrono_literals;

Endpoint::Endpoint(Device& device, const backend::EndpointInit& init)
    : device_(device),
      context_(init.context),
      observer_(*init.observer),
      shared_receives_(static_cast<SharedReceiveQueue*>(init.shared_receives)),
      send_(device, init),
      receive_(device, init),
      attributes_(init.attributes),
      domain_(static_cast<const ProtectionDomain*>(init.domain)) {
    send_.set_rules(attributes_, *domain_);
}

Result<std::unique_ptr<Endpoint>> Endpoint::create(Device& device, const backend::EndpointInit& init) {
    std::unique_ptr<Endpoint> endpoint(new Endpoint(device, init));
    const LockGuard lock(endpoint->nic().control());
    if (const Status status = endpoint->renew_queue_pair(); !status.ok()) return status;
    return endpoint;
}

Endpoint::~Endpoint() {
    disconnect();
    const LockGuard lock(nic().control());
    drop_queue_pair();
}

Nic& Endpoint::nic() const noexcept { return device_.nic(); }

Status Endpoint::bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept {
    return support::guarded([&] { return send_.bind(static_cast<MemoryWindow&>(window), request); });
}

EndpointCounters Endpoint::counters() const noexcept {
    EndpointCounters counters{.retries = retries_.value()};
    send_.add_to(counters);
    receive_.add_to(counters);
    return counters;
}

std::uint32_t Endpoint::outstanding(QueueKind queue) const noexcept {
    const WorkQueue& work = queue == QueueKind::Send ? static_cast<const WorkQueue&>(send_) : receive_;
    if (work.outstanding() != 0) work.completions().progress();  // unsignaled requests may be complete
    return work.outstanding();
}

Status Endpoint::modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept {
    const LockGuard lock(nic().control());
    if (state_ != State::Idle && state_ != State::Broken) return {Code::InvalidState, "the endpoint is connected"};
    const EndpointAttributes old_attributes = std::exchange(attributes_, attributes);
    const ProtectionDomain* old_domain = std::exchange(domain_, static_cast<const ProtectionDomain*>(&domain));
    const bool other_kind = (old_attributes.reliability == Reliability::Unreliable) == is_reliable();
    if (old_domain != domain_ || other_kind) {
        if (const Status status = renew_queue_pair(); !status.ok()) {
            attributes_ = old_attributes;
            domain_ = old_domain;
            return status;
        }
    }
    send_.set_rules(attributes_, *domain_);
    return {};
}

/// Replaces the idle queue pair with a new one, or changes nothing.
Status Endpoint::renew_queue_pair() noexcept {
    auto fresh = QueuePair::create({.domain = domain_->get(),
                                    .send_queue = send_.completions().get(),
                                    .receive_queue = receive_.completions().get(),
                                    .shared_receives = shared_receives_ == nullptr ? nullptr : shared_receives_->get(),
                                    .send_depth = send_.depth(),
                                    .receive_depth = receive_.depth(),
                                    .max_sges = send_.max_sges(),
                                    .reliable = is_reliable()});
    if (!fresh.ok()) return fresh.status();
    const std::uint32_t number = fresh->number();
    const Status known = support::guarded([&]() -> Status {
        nic().add(number, *this);
        if (shared_receives_ == nullptr) return {};
        return shared_receives_->attach(receive_.completions(), number, receive_);
    });
    if (!known.ok()) {
        nic().remove(number);
        return known;
    }
    drop_queue_pair();
    queue_pair_ = std::move(*fresh);
    return {};
}

void Endpoint::drop_queue_pair() noexcept {
    if (!queue_pair_) return;
    const std::uint32_t number = queue_pair_->number();
    nic().remove(number);
    nic().windows().remove_those_of(*queue_pair_->get());
    queue_pair_.reset();
    has_returned_receive_ = false;
    // Takes its completions out of the hardware queue while its number is still known.
    for (WorkQueue* queue : {static_cast<WorkQueue*>(&send_), static_cast<WorkQueue*>(&receive_)})
        queue->completions().progress();
    if (shared_receives_ == nullptr) return;
    shared_receives_->detach(receive_.completions(), number);
}

/// Requires that the queue pair is initialized and the peer's parameters are known. Posts the receives to the hardware,
/// then activates the connection.
Status Endpoint::activate(const rdma_conn_param& peer, std::uint8_t reads_requested) {
    // Receives of a shared queue may be posted at any time, so the sender has to wait for them.
    const bool waits = attributes_.receiver_not_ready == ReceiverNotReady::Wait || peer.srq != 0;
    const ConnectionTerms terms{.waits_for_receiver = waits,
                                .reads_served = at_most(nic().limits().max_qp_rd_atom, peer.responder_resources),
                                .reads_requested = reads_requested};
    const Translation translation{.silent = !support::reports_refusals(attributes_),
                                  .reliable = is_reliable(),
                                  .domain = domain_,
                                  .invalidated = nic().invalidated_flags()};
    const LockGuard send_lock(send_.mutex());
    const LockGuard receive_lock(receive_.mutex());
    receive_.activate(queue_pair_->get(), translation, link_.get());
    Status status = receive_.post_buffered();
    if (status.ok()) status = queue_pair_->make_ready(link_->id(), terms);
    send_.set_inline_bytes(queue_pair_->inline_bytes());
    if (status.ok()) send_.activate(queue_pair_->get(), translation, link_.get());
    return status;
}

/// Stops the queue pair, and waits until it has completed the shared receive that it has taken for a message, if it is
/// in the midst of one. If it were destroyed before, the receive would be lost. Then ends the connection.
void Endpoint::leave(State next) noexcept {
    const LockGuard lock(nic().control());
    if (holds_shared_receive()) {
        queue_pair_->stop();
        loss_.reset();
        closing_ = true;
        const std::uint64_t epoch = epoch_;
        changed_.wait(nic().control(), Deadline::after(return_time),
                      [&] { return epoch_ != epoch || has_returned_receive_; });
    }
    end_connection(next);
}

void Endpoint::drain() noexcept {
    const LockGuard lock(nic().control());
    if (!is_established() || drain_ || loss_) return;
    drain_ = Drain{.end = send_.close()};
    schedule_drain_check();
}

/// The hardware does not report when a queue is empty, so the agent's thread checks at increasing intervals.
void Endpoint::check_drain() noexcept {
    if (!drain_->end) drain_->end = send_.close();
    if (drain_->end && send_.is_retired(*drain_->end))
        return queue_pair_->has_stopped() ? lose_stopped()
                                          : lose(ConnectionEventKind::Disconnected, support::endings::drained);
    drain_->pause = std::clamp<Deadline::Clock::duration>(2 * drain_->pause, 1ms, 64ms);
    schedule_drain_check();
}

void Endpoint::schedule_drain_check() noexcept try {
    link_->set_deadline(Deadline::after(drain_->pause));
} catch (const std::bad_alloc&) {
    lose(ConnectionEventKind::Lost, "out of memory");
}

/// Removes the endpoint from its connection, if there is one, and completes all posted requests.
void Endpoint::end_connection(State next) noexcept {
    ++epoch_;
    peer_connector_.reset();
    repetition_.reset();
    peer_established_.reset();
    drain_.reset();
    loss_.reset();
    closing_ = false;
    const bool used = is_established();
    const auto mode = next == State::Idle ? WorkQueue::Mode::Idle : WorkQueue::Mode::Broken;
    {
        const LockGuard send_lock(send_.mutex());
        const LockGuard receive_lock(receive_.mutex());
        if (used) {
            if (queue_pair_) queue_pair_->stop();
            for (WorkQueue* queue : {static_cast<WorkQueue*>(&send_), static_cast<WorkQueue*>(&receive_)})
                queue->completions().progress();
            drop_queue_pair();
        }
        send_.flush();
        receive_.flush();
        receive_.flush_buffered();
        send_.set_mode(mode);
        receive_.set_mode(mode);
    }
    if (link_ != nullptr) {
        // Disconnects, or confirms the peer's disconnect. A request that has not been answered is withdrawn when its id
        // is destroyed.
        const bool told = used && rdma_disconnect(link_->id()) == 0;
        if (link_->is_mutual() && told) nic().agent().keep_ended(std::move(link_));
        link_.reset();
    }
    state_ = next;
    changed_.notify_all();
    (void)have_queue_pair().ok();  // if this fails, the next connection attempt tries again
}

}  // namespace viaduct::verbs
