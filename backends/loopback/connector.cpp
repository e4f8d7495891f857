// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/connector.hpp"

#include <poll.h>
#include <unistd.h>

#include <thread>

#include "backends/loopback/device.hpp"
#include "backends/loopback/endpoint.hpp"
#include "backends/loopback/local_listeners.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/reserve.hpp"
#include "core/base/address_text.hpp"
#include "core/base/outcome.hpp"
#include "core/base/settings.hpp"
#include "core/log.hpp"
#include "core/reason.hpp"

namespace viaduct::loopback {
namespace {

/// The number of times in a row that a connector may lose the race for its peer name before it pauses.
constexpr int peer_tries = 64;

/// How long after the deadline an answer may arrive if the listener has already accepted or refused.
constexpr std::chrono::milliseconds answer_grace{100};

const Status dropped(Code::Unreachable, "the server dropped the request");

/// How long the thread that connects spins for the answer: twice as long as other waits, because the listener has to
/// wake up first.
std::chrono::microseconds spin_time() {
    static const unsigned usual =
        number_setting(spin_setting).value_or(std::thread::hardware_concurrency() > 1 ? 50 : 0);
    return std::chrono::microseconds(2 * usual);
}

}  // namespace

Connector::Connector(Endpoint& endpoint, const ConnectParameters& parameters) noexcept
    : device_(endpoint.device()), owner_(endpoint.ref()), parameters_(parameters), retry_(parameters) {}

Connector::~Connector() { stop(); }

Result<std::shared_ptr<Connector>> Connector::start(Endpoint& endpoint, const ConnectParameters& parameters) {
    std::shared_ptr<Connector> connector(new Connector(endpoint, parameters));
    if (const Status status = connector->attempt(); !status.ok()) {
        endpoint.withdraw_credits();
        return status;
    }
    if (!connector->has_ended()) connector->device_.agent().call_at(parameters.deadline, connector);
    return connector;
}

Status Connector::attempt() {
    socket_.reset();
    pending_.reset();
    asks_again_ = false;  // now, because the listener may hang up on the request, which starts the next attempt
    if (peer_to_peer()) return connect_peer();
    const Status status = ask_listener();
    if (status.code() != Code::NoListener) return status;
    if (retry_.is_over()) return was_dropped_ ? dropped : missing_listener(parameters_.remote);
    ask_again();
    return {};
}

void Connector::ask_again() {
    asks_again_ = true;
    device_.agent().call_at(retry_.next(), shared_from_this());
}

Status Connector::ask_listener() {
    if (const Status status = make_offer(); !status.ok()) return status;
    for (std::uint32_t place = 0; place < max_listeners; ++place) {
        auto socket = connect_to(service_name(parameters_.remote, place));
        if (!socket.ok() && socket.status().code() == Code::NoListener) continue;
        if (!socket.ok()) return socket.status();
        return send_request(std::move(*socket));
    }
    return {Code::NoListener, "there is no listener on that service"};
}

/// Both peers try to bind the same name. The first one succeeds and waits; the other one fails and connects to it.
Status Connector::connect_peer() {
    const std::string name = peer_name(parameters_.local.host, parameters_.remote.host, parameters_.remote.service);
    for (int tries = 0; tries < peer_tries; ++tries) {
        auto listening = listen_on(name);
        if (listening.ok()) {
            auto pending = PendingConnections::create(std::move(*listening));
            if (!pending.ok()) return pending.status();
            pending_ = std::move(*pending);
            return device_.agent().watch(pending_->fd(), shared_from_this());
        }
        if (listening.status().code() != Code::Busy) return listening.status();
        if (const Status status = make_offer(); !status.ok()) return status;
        auto socket = connect_to(name);
        if (socket.ok()) return send_request(std::move(*socket));
        if (socket.status().code() != Code::NoListener) return socket.status();
    }
    ask_again();
    return {};
}

Status Connector::make_offer() {
    if (offered_ != nullptr) return {};
    auto offered = Connection::offer(device_, owner_);
    if (!offered.ok()) return offered.status();
    offered_ = std::move(*offered);
    return {};
}

/// Called right after the socket was connected, because that wakes the listener.
Status Connector::send_request(UniqueFd socket) {
    Endpoint& endpoint = *owner_->endpoint;
    endpoint.advertise(*offered_);
    HandshakeMessage message = make_handshake(MessageType::Connect, offered_->instance_info(endpoint),
                                              endpoint.attributes(), parameters_.private_data);
    set_bytes(message.local_host, parameters_.local.host.span());
    set_bytes(message.local_service, parameters_.local.service.span());
    set_bytes(message.remote_host, parameters_.remote.host.span());
    peer_process_ = peer_process(socket.get());
    auto handed = offered_->descriptors_for(peer_process_);
    if (!handed.ok()) return handed.status();
    const std::array<int, 4> descriptors{offered_->segment_fd(), (*handed)[0], (*handed)[1], (*handed)[2]};
    if (const Status status = send_message(socket.get(), &message, sizeof message, descriptors);
        !status.ok() && status.code() != Code::SystemError)
        return status;
    // If the listener closed meanwhile, the socket is hung up; read_answer() detects that and tries again.
    socket_ = std::move(socket);
    if (is_answered_soon()) {
        bool read = true;
        run_step([&] { read = read_answer(); });
        if (read) return {};
    }
    return device_.agent().watch(socket_.get(), shared_from_this());
}

/// Spins for the answer, so that it wakes neither the agent nor a thread that waits for the event. Only the first
/// request spins, because read_answer() may send another one. If answers are late, some of the next attempts do not
/// spin.
bool Connector::is_answered_soon() noexcept {
    if (std::exchange(has_spun_, true) || device_.agent().is_this_thread() || peer_process_ == getpid() ||
        !device_.answer_spin().is_worthwhile())
        return false;
    device_.spare_segment().prepare();
    pollfd answer{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const auto spin_end = std::min(Deadline::after(spin_time()), parameters_.deadline);
    bool answered = false;
    while (!answered && !spin_end.passed()) answered = poll(&answer, 1, 0) != 0;
    device_.answer_spin().answered(answered);
    return answered;
}

void Connector::on_readable(int fd) noexcept {
    const auto self = shared_from_this();  // keeps this object alive, because the endpoint drops its reference when the
                                           // attempt ends
    const std::lock_guard lock(owner_->mutex);
    if (endpoint() == nullptr) return;
    run_step([&] {
        if (pending_ && fd == pending_->fd())
            take_peer_requests();
        else if (socket_ && fd == socket_.get())
            (void)read_answer();
    });
}

template <class Step>
void Connector::run_step(Step step) noexcept {
    const Status status = support::guarded([&] {
        step();
        return Status();
    });
    if (status.ok()) return;
    log(LogLevel::Error, "out of memory while connecting");
    if (endpoint() != nullptr) fail(status);
}

/// Returns false if there is none.
bool Connector::read_answer() {
    auto answer = receive_handshake(socket_.get());
    if (answer.status().code() == Code::WouldBlock) return false;
    if (answer.status().code() == Code::NoResources)
        fail(answer.status());
    else if (answer.ok() && answer->incomplete)
        fail(support::lack_of_descriptors);
    else if (!answer.ok() || answer->hung_up)
        answer_hung_up();
    else
        answered(*answer);
    return true;
}

void Connector::answered(Handshake& answer) {
    switch (answer.type) {
        case MessageType::Accepted: return established_with(answer);
        case MessageType::Rejected:
            return finish({.kind = ConnectionEventKind::Rejected,
                           .private_data = answer.private_data,
                           .why = explain("process %d rejected the request", peer_process_)});
        case MessageType::NoListener:
            return fail(
                {Code::NoListener, explain("process %d closed the listener or refused the request", peer_process_)});
        case MessageType::NoResources: return server_lacks_resources();
        case MessageType::Conflict:
            return finish(conflict(compatible(owner_->endpoint->attributes(), answer.attributes), answer.attributes));
        case MessageType::Connect:
        case MessageType::MapRequest:
        case MessageType::MapReply: return answer_hung_up();  // not valid here
    }
}

/// The server may have resources again in a moment.
void Connector::server_lacks_resources() {
    if (retry_.is_over())
        return fail({Code::Unreachable,
                     explain("process %d has too few free descriptors (RLIMIT_NOFILE) or too little memory for another "
                             "connection",
                             peer_process_)});
    device_.agent().unwatch(socket_.get());
    socket_.reset();
    ask_again();
}

/// The listener was closed or its process died. The state of the handshake determines the outcome.
void Connector::answer_hung_up() {
    device_.agent().unwatch(socket_.get());
    socket_.reset();
    if (peer_to_peer() && !offered_->advance(wire::Handshake::Taken, wire::Handshake::Offered))
        offered_->advance(wire::Handshake::Abandoned, wire::Handshake::Offered);
    if (offered_->handshake() == wire::Handshake::Offered) {
        if (const Status status = attempt(); !status.ok()) fail(status);
        return;
    }
    switch (offered_->handshake()) {
        case wire::Handshake::Abandoned:  // dropped without an answer, so wait for the deadline (guide, section 3.3.4)
            if (parameters_.ends_if_dropped) {  // but the server may be back in a moment
                was_dropped_ = true;
                if (retry_.is_over() || !offered_->advance(wire::Handshake::Abandoned, wire::Handshake::Offered))
                    return fail(dropped);
                return ask_again();
            }
            if (!parameters_.deadline.infinite()) return;
            [[fallthrough]];
        case wire::Handshake::Offered:
        case wire::Handshake::Taken:  // the process that took it is gone
            return fail({Code::NoListener, "the process that took the request ended without an answer"});
        case wire::Handshake::Accepted:
        case wire::Handshake::Refused: break;  // answered, but the message was lost with the listener
    }
    fail({Code::Unreachable, "the peer answered, but ended before its answer arrived"});
}

void Connector::established_with(Handshake& handshake) {
    ConnectionEvent event{.kind = ConnectionEventKind::Established,
                          .remote = handshake.attributes,
                          .remote_address = parameters_.remote,
                          .private_data = handshake.private_data};
    if (!handshake.local.service.empty()) event.remote_address.service = handshake.local.service;
    device_.agent().unwatch(socket_.get());
    Status status = offered_->set_peer(handshake, handshake.descriptors.all(), peer_process_);
    handshake.descriptors.close();
    // If the peer has already disconnected, this thread ends the connection, so that the agent need not wake up. To
    // receive the last messages it needs the serving lock, and it must not wait for that with the owner's mutex held.
    const std::shared_lock serving(device_.serving(), std::try_to_lock);
    const bool hung_up = status.ok() && serving && has_hung_up(socket_.get());
    if (hung_up)
        offered_->open_hung_up(socket_);
    else if (status.ok())
        status = offered_->open(socket_, offered_);
    if (!status.ok()) return fail(status);
    const std::shared_ptr<Connection> connection = std::exchange(offered_, nullptr);
    owner_->endpoint->establish(connection);
    finish(event);
    if (hung_up) owner_->endpoint->peer_hung_up(*connection);
}

void Connector::take_peer_requests() {
    while (true) {
        auto accepted = pending_->next();
        if (!accepted.ok()) return;
        auto request = ConnectionRequest::take(device_, std::move(accepted->first), std::move(accepted->second));
        if (!request.ok()) continue;
        ConnectionRequest& peer = **request;
        if (!(peer.remote_address().host == parameters_.remote.host) ||
            !(peer.remote_host_asked_for() == parameters_.local.host)) {
            deferred_.push_back(
                std::move(*request));  // the same hosts in the opposite order: it may bind when this attempt is done
            continue;
        }
        ConnectionEvent event{.kind = ConnectionEventKind::Established,
                              .remote = peer.remote_attributes(),
                              .remote_address = peer.remote_address(),
                              .private_data = peer.private_data()};
        Endpoint& own = *owner_->endpoint;
        if (const Status status = compatible(own.attributes(), event.remote); !status.ok()) {
            (void)peer.conflict(own.attributes());  // if this fails, the requester may meet another peer
            return finish(conflict(status, event.remote));
        }
        if (peer.accept_locked(own, parameters_.private_data, event).ok()) return stop();
    }
}

void Connector::on_deadline() noexcept {
    const auto self = shared_from_this();
    const std::lock_guard lock(owner_->mutex);
    if (endpoint() != nullptr) run_step([this] { check_time(); });
}

/// Asks again, or ends the attempt if the deadline has passed.
void Connector::check_time() {
    const bool late = parameters_.deadline.passed();
    if (asks_again_ && !(late && peer_to_peer())) {
        owner_->endpoint->count_retry();
        if (const Status status = attempt(); !status.ok()) fail(status);
        return;
    }
    if (!late) return;
    const bool asked = socket_ && offered_ != nullptr;
    const bool untaken = asked && offered_->advance(wire::Handshake::Offered, wire::Handshake::Abandoned);
    const bool answer_coming =
        asked && !untaken && !offered_->advance(wire::Handshake::Taken, wire::Handshake::Abandoned);
    if (answer_coming && may_still_answer()) return;
    if (answer_coming) offered_->close(true);  // if the peer accepted, it sees a disconnect
    finish({.kind = ConnectionEventKind::TimedOut, .why = describe_time_out(untaken)});
}

/// Called after the deadline if the handshake word says that the listener has answered.
bool Connector::may_still_answer() noexcept try {
    if (answer_by_.infinite()) {
        answer_by_ = Deadline::after(answer_grace);
        device_.agent().call_at(answer_by_, shared_from_this());
    }
    return !answer_by_.passed();
} catch (const std::bad_alloc&) {
    return false;
}

const char* Connector::describe_time_out(bool untaken) const noexcept {
    const Address& remote = parameters_.remote;
    if (peer_to_peer())
        return explain("%s did not connect to %s within the time", text_of(remote.host).c_str(),
                       text_of(remote.service).c_str());
    return explain("the listener on %s %s within the time", text_of(remote).c_str(),
                   untaken ? "did not take the request" : "took the request and did not answer");
}

void Connector::fail(const Status& status) noexcept { finish(failed_attempt(status)); }

void Connector::finish(const ConnectionEvent& event) noexcept {
    Endpoint* const own = owner_->endpoint;
    if (own != nullptr && event.kind != ConnectionEventKind::Established)
        own->withdraw_credits();  // before the offer is destroyed
    stop();
    if (own != nullptr) own->connecting_finished(event);
}

void Connector::abandon() noexcept {
    if (offered_ != nullptr && !offered_->advance(wire::Handshake::Offered, wire::Handshake::Abandoned) &&
        !offered_->advance(wire::Handshake::Taken, wire::Handshake::Abandoned))
        offered_->close(true);  // accepted at the same time: the peer sees a disconnect
    owner_->endpoint->withdraw_credits();
    stop();
}

void Connector::stop() noexcept {
    stopped_ = true;
    device_.agent().cancel_call(parameters_.deadline, weak_from_this());
    if (socket_) device_.agent().unwatch(socket_.get());
    if (pending_) device_.agent().unwatch(pending_->fd());
    socket_.reset();
    pending_.reset();
    deferred_.clear();
    offered_.reset();
}

}  // namespace viaduct::loopback
