// SPDX-License-Identifier: BSD-3-Clause
// The work queues of the fake backend. A request is executed when it is posted or when the receive that it waits for is
// available.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "backends/support/pieces.hpp"
#include "tests/support/fake_endpoint.hpp"

namespace viaduct::testing::fake {
namespace {

std::vector<std::byte> gather(std::span<const Sge> pieces) {
    std::vector<std::byte> data;
    data.reserve(support::total_length(pieces));
    for (const Sge& piece : pieces) {
        const auto* from = static_cast<const std::byte*>(piece.address);
        data.insert(data.end(), from, from + piece.length);
    }
    return data;
}

void scatter(std::span<const std::byte> data, std::span<const Sge> pieces) noexcept {
    for (const Sge& piece : pieces) {
        const std::size_t count = std::min<std::size_t>(piece.length, data.size());
        if (count != 0) std::memcpy(piece.address, data.data(), count);
        data = data.subspan(count);
    }
}

std::span<std::byte> bytes_at(const RemoteAddress& remote, std::uint64_t count) noexcept {
    return {reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(remote.address)), count};
}

/// Writes memory that is mapped from a file to the file.
bool persist(const RemoteAddress& remote, std::uint64_t count) noexcept {
    const auto within_page = static_cast<std::uintptr_t>(remote.address) % static_cast<std::uintptr_t>(getpagesize());
    return msync(bytes_at(remote, count).data() - within_page, within_page + count, MS_SYNC) == 0;
}

}  // namespace

PostedReceive::PostedReceive(const ReceiveRequest& request)
    : request(request), pieces(request.sges.begin(), request.sges.end()), bytes(support::total_length(pieces)) {}

void World::run_waiting() noexcept {
    const auto endpoints = waiting;  // a copy, because run_sends() changes the original
    for (Endpoint* endpoint : endpoints) endpoint->run_sends();
}

Status Endpoint::post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept {
    const std::lock_guard lock(world().mutex);
    posted = 0;
    for (const SendRequest& request : requests) {
        if (request.sges.size() > device_.attributes().max_sges) return {Code::InvalidParameter, "too many pieces"};
        const Status status =
            enqueue({request, {request.sges.begin(), request.sges.end()}, support::total_length(request.sges)});
        if (!status.ok()) return status;
        ++posted;
    }
    return {};
}

Status Endpoint::bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept {
    const std::lock_guard lock(world().mutex);
    const auto& state = static_cast<Window&>(window).state();
    const SendRequest order{.context = request.context,
                            .opcode = Opcode::BindWindow,
                            .signaled = request.signaled,
                            .remote = {.address = 0, .key = world().next_key++}};
    if (const Status status = enqueue({order, {}, 0, request, state}); !status.ok()) return status;
    state->key = order.remote.key;
    return {};
}

Status Endpoint::post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
    const std::lock_guard lock(world().mutex);
    posted = 0;
    if (shared_receives_ != nullptr) return {Code::InvalidState, "receives are posted to the shared queue"};
    for (const ReceiveRequest& request : requests) {
        if (const Status status = enqueue(request); !status.ok()) return status;
        ++posted;
        if (state_ == State::Broken) flush_receives();
        if (state_ == State::Connected) world().run_waiting();
    }
    return {};
}

Status Endpoint::enqueue(PostedSend send) {
    if (outstanding_->send == send_depth_) return {Code::QueueFull, "send queue"};
    ++outstanding_->send;
    sends_.push_back(std::move(send));
    if (state_ == State::Connected)
        run_sends();
    else
        flush_sends();
    return {};
}

Status Endpoint::enqueue(const ReceiveRequest& request) {
    if (request.sges.size() > device_.attributes().max_sges) return {Code::InvalidParameter, "too many pieces"};
    if (outstanding_->receive == receive_depth_) return {Code::QueueFull, "receive queue"};
    ++outstanding_->receive;
    receives_.emplace_back(request);
    return {};
}

std::uint32_t Endpoint::outstanding(QueueKind queue) const noexcept {
    const std::lock_guard lock(world().mutex);
    return outstanding_->of(queue);
}

void Endpoint::run_sends() {
    auto& waiting = world().waiting;
    while (state_ == State::Connected && !sends_.empty() && left_to_drain_ != 0) {
        const Outcome outcome = execute(sends_.front());
        if (outcome.waits) {
            if (std::ranges::find(waiting, this) == waiting.end()) waiting.push_back(this);
            return;
        }
        std::erase(waiting, this);
        complete_send(sends_.front(), outcome.code);
        sends_.pop_front();
        if (left_to_drain_) --*left_to_drain_;
        if (outcome.breaks) {
            peer_->lose(ConnectionEventKind::Lost, outcome.spoilt ? Code::Ok : Code::Unreachable);
            lose(ConnectionEventKind::Lost);
        }
        end_if_drained();
    }
}

Endpoint::Outcome Endpoint::execute(const PostedSend& send) {
    if (const CompletionCode code = check(send); code != CompletionCode::Success)
        return {.code = code, .breaks = reliable()};
    switch (send.request.opcode) {
        case Opcode::Send:
        case Opcode::SendInvalidate: return send_message(send);
        case Opcode::RdmaWrite:
        case Opcode::AtomicWrite: return write(send);
        case Opcode::RdmaRead: return read(send);
        case Opcode::Flush: return flush(send);
        case Opcode::BindWindow: return show(send);
        case Opcode::FetchAdd:
        case Opcode::CompareSwap: return exchange(send);
    }
    return {.code = CompletionCode::LocalFormat, .breaks = reliable()};
}

Endpoint::Outcome Endpoint::send_message(const PostedSend& send) {
    if (!peer_->can_receive()) return no_receive(CompletedOperation::Receive);
    const PostedReceive receive = peer_->take_receive();
    CompletionCode code = peer_->check(receive, send.bytes);
    if (code == CompletionCode::Success) scatter(gather(send.pieces), receive.pieces);
    const bool ends_window = send.request.opcode == Opcode::SendInvalidate && code == CompletionCode::Success;
    if (ends_window && !peer_->invalidate(send.request.remote.key)) code = CompletionCode::LocalProtection;
    peer_->complete_receive(receive, send, code);
    if (code == CompletionCode::Success) return {};
    Outcome outcome = remote_failure(code == CompletionCode::LocalLength ? CompletionCode::RemoteLength
                                                                         : CompletionCode::RemoteOperation);
    outcome.spoilt = true;
    return outcome;
}

Endpoint::Outcome Endpoint::write(const PostedSend& send) {
    const SendRequest& request = send.request;
    if (request.with_immediate && !peer_->can_receive()) return no_receive(CompletedOperation::ReceiveRdmaWrite);
    const bool granted = peer_->grants(request, send.bytes);
    if (granted) {
        const auto data = gather(send.pieces);
        if (request.opcode == Opcode::AtomicWrite) {
            std::uint64_t value = 0;
            std::memcpy(&value, data.data(), sizeof value);
            std::atomic_ref(*reinterpret_cast<std::uint64_t*>(request.remote.address)).store(value);
        } else if (!data.empty()) {
            std::memcpy(bytes_at(request.remote, data.size()).data(), data.data(), data.size());
        }
    }
    auto code = granted ? CompletionCode::Success : CompletionCode::LocalProtection;
    if (request.with_immediate) {
        const PostedReceive receive = peer_->take_receive();
        if (granted) code = receive.request.fault;
        peer_->complete_receive(receive, send, code);
    } else if (!granted) {
        peer_->report(AsyncEventKind::RemoteWriteProtection, CompletedOperation::RdmaWrite);
    }
    if (!granted) return remote_failure(CompletionCode::RemoteProtection);
    return code == CompletionCode::Success ? Outcome{} : remote_failure(CompletionCode::RemoteOperation);
}

Endpoint::Outcome Endpoint::read(const PostedSend& send) {
    if (!peer_->grants(send.request, send.bytes)) {
        peer_->report(AsyncEventKind::RemoteReadProtection, CompletedOperation::RdmaRead);
        return {.code = CompletionCode::RemoteProtection, .breaks = true};
    }
    scatter(bytes_at(send.request.remote, send.bytes), send.pieces);
    return {};
}

Endpoint::Outcome Endpoint::exchange(const PostedSend& send) {
    const SendRequest& request = send.request;
    if (request.remote.address % 8 != 0 || !peer_->grants(request, send.bytes)) {
        peer_->report(AsyncEventKind::RemoteWriteProtection, CompletedOperation::RdmaWrite);
        return {.code = CompletionCode::RemoteProtection, .breaks = true};
    }
    const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(request.remote.address));
    std::uint64_t old = request.compare;
    if (request.opcode == Opcode::FetchAdd)
        old = word.fetch_add(request.add);
    else
        word.compare_exchange_strong(old, request.swap);
    scatter(std::as_bytes(std::span(&old, 1)), send.pieces);
    return {};
}

/// Earlier requests are complete, so only the file has to be written.
Endpoint::Outcome Endpoint::flush(const PostedSend& send) {
    const SendRequest& request = send.request;
    if (!peer_->grants(request, request.flush_bytes)) {
        peer_->report(AsyncEventKind::RemoteWriteProtection, CompletedOperation::Flush);
        return {.code = CompletionCode::RemoteProtection, .breaks = reliable()};
    }
    if (request.flush_to == FlushTarget::Persistence && !persist(request.remote, request.flush_bytes))
        return {.code = CompletionCode::RemoteOperation, .breaks = reliable()};
    return {};
}

/// Binds a window.
Endpoint::Outcome Endpoint::show(const PostedSend& send) {
    if (send.window == nullptr) return {.code = CompletionCode::LocalFormat, .breaks = reliable()};
    if (!may_show(send)) return {.code = CompletionCode::LocalProtection, .breaks = reliable()};
    WindowState& window = *send.window;
    world().views.erase(std::exchange(window.in_force, 0));
    if (send.shown.length == 0 || window.gone) return {};
    window.in_force = send.request.remote.key;
    world().views[window.in_force] = {.region = static_cast<const Region*>(send.shown.region),
                                      .begin = reinterpret_cast<std::uintptr_t>(send.shown.address),
                                      .length = send.shown.length,
                                      .access = send.shown.access,
                                      .only_through = window.scope == WindowScope::Endpoint ? this : nullptr};
    return {};
}

bool Endpoint::may_show(const PostedSend& send) const noexcept {
    if (&send.window->domain != domain_) return false;
    if (send.shown.length == 0) return true;
    const auto& region = static_cast<const Region&>(*send.shown.region);
    return &region.domain() == domain_ &&
           region.view().holds(reinterpret_cast<std::uintptr_t>(send.shown.address), send.shown.length) &&
           (!send.shown.access.lets_peers_write() || (region.writable() && region.access().local_write));
}

/// Ends the bindings that only the peer of this endpoint can use.
void Endpoint::close_views() noexcept {
    std::erase_if(world().views, [this](const auto& item) { return item.second.only_through == this; });
}

/// Invalidates a window on request of the peer.
bool Endpoint::invalidate(std::uint32_t key) noexcept {
    const auto found = world().views.find(key);
    if (found == world().views.end() || found->second.only_through != this) return false;
    world().views.erase(found);
    return true;
}

/// Called if the peer has no receive posted (guide, sections 1.2.3 and 3.8.2).
Endpoint::Outcome Endpoint::no_receive(CompletedOperation operation) {
    const bool waits = reliable() && attributes_.receiver_not_ready == ReceiverNotReady::Wait;
    if (waits || peer_->shared_receives_ != nullptr) return {.waits = true};
    peer_->report(AsyncEventKind::ReceiveQueueEmpty, operation);
    return remote_failure(CompletionCode::RemoteOperation);
}

/// With Reliable Reception, failures at the peer are reported to the sender; with Reliable Delivery, only if requested.
Endpoint::Outcome Endpoint::remote_failure(CompletionCode code) const noexcept {
    const bool told = attributes_.reliability == Reliability::ReliableReception ||
                      (reliable() && attributes_.refused_write == RefusedWrite::Reported);
    return {.code = told ? code : CompletionCode::Success, .breaks = reliable()};
}

/// With a shared queue, a message also waits for room for its completion.
bool Endpoint::can_receive() const noexcept {
    if (shared_receives_ == nullptr) return !receives_.empty();
    return !shared_receives_->empty() && !receive_queue_->full();
}

PostedReceive Endpoint::take_receive() {
    if (shared_receives_ != nullptr) {
        ++outstanding_->receive;  // it now belongs to this endpoint
        return shared_receives_->take();
    }
    PostedReceive receive = std::move(receives_.front());
    receives_.pop_front();
    return receive;
}

std::uint64_t Endpoint::max_transfer_bytes() const noexcept {
    return attributes_.max_transfer_bytes != 0 ? attributes_.max_transfer_bytes
                                               : device_.attributes().max_transfer_bytes;
}

CompletionCode Endpoint::check(const PostedSend& send) const noexcept {
    const SendRequest& request = send.request;
    if (request.fault != CompletionCode::Success) return request.fault;
    const bool fetches = is_fetching_atomic(request.opcode);
    const bool reads = request.opcode == Opcode::RdmaRead || fetches;
    const bool atomic = request.opcode == Opcode::AtomicWrite;
    const bool flushes = request.opcode == Opcode::Flush;
    const bool invalidates = request.opcode == Opcode::SendInvalidate;
    if ((reads || invalidates) && !reliable()) return CompletionCode::LocalFormat;
    if (request.with_immediate && (reads || atomic || flushes || invalidates)) return CompletionCode::LocalFormat;
    if (flushes && !send.pieces.empty()) return CompletionCode::LocalFormat;
    if (atomic && request.remote.address % 8 != 0) return CompletionCode::LocalFormat;
    if ((atomic || fetches) && (send.bytes != 8 || send.pieces.size() != 1)) return CompletionCode::LocalLength;
    if (send.bytes > max_transfer_bytes()) return CompletionCode::LocalLength;
    for (const Sge& piece : send.pieces)
        if (!may_use(piece, reads, *domain_)) return CompletionCode::LocalProtection;
    return CompletionCode::Success;
}

CompletionCode Endpoint::check(const PostedReceive& receive, std::uint64_t needed) const noexcept {
    if (receive.request.fault != CompletionCode::Success) return receive.request.fault;
    const auto& domain = shared_receives_ != nullptr ? shared_receives_->domain : *domain_;
    std::uint64_t left = needed;  // only the memory that the message fills is checked
    for (Sge piece : receive.pieces) {
        piece.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece.length, left));
        left -= piece.length;
        if (!may_use(piece, true, domain)) return CompletionCode::LocalProtection;
    }
    return receive.bytes < needed ? CompletionCode::LocalLength : CompletionCode::Success;
}

bool Endpoint::may_use(const Sge& piece, bool to_write, const backend::ProtectionDomain& domain) const noexcept {
    if (piece.length == 0) return true;
    const auto found = world().regions.find(piece.key);
    if (found == world().regions.end()) return false;
    const Region& region = *found->second;
    return &region.device() == &device_ && &region.domain() == &domain &&
           (!to_write || (region.writable() && region.access().local_write)) &&
           region.view().holds(reinterpret_cast<std::uintptr_t>(piece.address), piece.length);
}

/// Reports whether this endpoint allows the request of its peer.
bool Endpoint::grants(const SendRequest& request, std::uint64_t bytes) const noexcept {
    const auto found = world().regions.find(request.remote.key);
    const auto shown = world().views.find(request.remote.key);
    if (found == world().regions.end() && shown == world().views.end()) return false;
    const View view = found != world().regions.end() ? found->second->view() : shown->second;
    const Region& region = *view.region;
    const bool may_read = view.access.remote_read && attributes_.access.remote_read;
    const bool may_write = view.access.remote_write && attributes_.access.remote_write;
    const bool may_exchange = view.access.remote_atomic && attributes_.access.remote_atomic;
    const bool allowed = request.opcode == Opcode::RdmaRead   ? may_read
                         : request.opcode == Opcode::Flush    ? may_read || may_write
                         : is_fetching_atomic(request.opcode) ? may_exchange && region.writable()
                                                              : may_write && region.writable();
    return allowed && (view.only_through == nullptr || view.only_through == this) && &region.device() == &device_ &&
           &region.domain() == domain_ && view.holds(request.remote.address, bytes);
}

void Endpoint::flush_sends() {
    std::erase(world().waiting, this);
    for (const PostedSend& send : sends_) complete_send(send, CompletionCode::Flushed);
    sends_.clear();
    left_to_drain_.reset();
}

void Endpoint::flush_receives() {
    for (const PostedReceive& receive : receives_) complete_receive(receive, PostedSend{}, CompletionCode::Flushed);
    receives_.clear();
}

void Endpoint::complete_send(const PostedSend& send, CompletionCode code) {
    if (code == CompletionCode::Success && !send.request.signaled) {
        --outstanding_->send;
        return;
    }
    send_queue_->push({.context = send.request.context,
                       .endpoint_context = context_,
                       .bytes = code == CompletionCode::Success ? static_cast<std::uint32_t>(send.bytes) : 0,
                       .operation = operation_of(send.request.opcode),
                       .code = code},
                      outstanding_);
}

void Endpoint::complete_receive(const PostedReceive& receive, const PostedSend& message, CompletionCode code) {
    const bool success = code == CompletionCode::Success;
    const bool invalidated = success && message.request.opcode == Opcode::SendInvalidate;
    receive_queue_->push(
        {.context = receive.request.context,
         .endpoint_context = context_,
         .bytes = success ? static_cast<std::uint32_t>(message.bytes) : 0,
         .immediate = !success      ? 0
                      : invalidated ? message.request.remote.key
                                    : message.request.immediate,
         .operation = message.request.opcode == Opcode::RdmaWrite ? CompletedOperation::ReceiveRdmaWrite
                                                                  : CompletedOperation::Receive,
         .code = code,
         .with_immediate = success && message.request.with_immediate,
         .invalidated = invalidated},
        outstanding_, message.request.solicited);
}

void Endpoint::report(AsyncEventKind kind, CompletedOperation operation) noexcept {
    device_.report({.kind = kind, .endpoint_context = context_, .completion_queue_context = 0, .operation = operation});
}

}  // namespace viaduct::testing::fake
