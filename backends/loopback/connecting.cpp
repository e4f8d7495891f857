// SPDX-License-Identifier: BSD-3-Clause
// The active side of connection setup: sends a request to a listener, or meets a peer, until there is an answer or the
// deadline passes.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/loopback/device.hpp"
#include "backends/loopback/endpoint.hpp"
#include "backends/loopback/listener.hpp"
#include "backends/loopback/local_listeners.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/reserve.hpp"
#include "core/base/address_text.hpp"
#include "core/base/outcome.hpp"
#include "core/base/retry.hpp"
#include "core/base/wait_until.hpp"
#include "core/explain.hpp"
#include "core/log.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {
namespace {

/// The number of times in a row that a connector may lose the race for its peer name before it pauses.
constexpr int peer_tries = 64;

/// How long after the deadline an answer may arrive if the listener has already accepted or refused.
constexpr std::chrono::milliseconds answer_grace{100};

/// How often listeners may hang up on a request before it pauses each time. Some listen for one request at a time,
/// which is not the next one if several wait.
constexpr unsigned hang_ups = 32;
constexpr std::chrono::milliseconds hang_up_pause{1};

const Status dropped(Code::Unreachable, "the server dropped the request");

/// How long the thread that connects spins for the answer: twice as long as other waits, because the listener has to
/// wake up first.
std::chrono::nanoseconds answer_spin_time() noexcept { return 2 * spin_time(); }

}  // namespace

struct Connection::Attempt {
    explicit Attempt(const ConnectParameters& wanted) noexcept
        : parameters(wanted), retry(wanted), peer_to_peer(wanted.model == ConnectParameters::Model::PeerToPeer) {}

    const ConnectParameters parameters;
    Retry retry;
    const bool peer_to_peer;
    bool pausing = false;      // the next call starts another attempt
    bool was_dropped = false;  // a server has dropped the request
    bool has_spun = false;
    unsigned may_hang_up = hang_ups;
    bool watches = false;  // the agent watches the socket
    pid_t peer_process = 0;
    Deadline answer_by = Deadline::never();  // deadline for an answer that was given but has not arrived

    // Peer-to-peer model, if this side was first: connecting peers, and requests that belong to another pair.
    std::optional<PendingConnections> pending;
    bool resting = false;  // they are accepted when the system may have resources again
    std::vector<std::unique_ptr<ConnectionRequest>> deferred;
};

Connection::Connection(Device& device, std::shared_ptr<EndpointRef> owner) noexcept
    : device_(device), owner_(std::move(owner)), role_(0) {}

Connection::Connection(Device& device, unsigned role) noexcept : device_(device), role_(role) {}

Connection::~Connection() {
    end_attempt();
    if (socket_) device_.agent().unwatch(socket_.get());
    if (numbered_) device_.remove_connection(number_);
}

Status Connection::connect(const ConnectParameters& parameters) {
    owner_->mutex.assume_held();  // by the endpoint, which calls this
    attempt_ = std::make_unique<Attempt>(parameters);
    return attempt();
}

Status Connection::attempt() {
    drop_socket();
    attempt_->pausing = false;  // now, because the listener may hang up on the request, which starts the next attempt
    const Status status = attempt_->peer_to_peer ? connect_peer() : ask_listener();
    if (status.ok() && attempt_ != nullptr && !attempt_->pausing)
        device_.agent().call_at(attempt_->parameters.deadline, *this);
    if (status.code() != Code::NoListener) return status;
    if (attempt_->retry.is_over())
        return attempt_->was_dropped ? dropped : missing_listener(attempt_->parameters.remote);
    ask_again();
    return {};
}

void Connection::ask_again() {
    attempt_->pausing = true;
    device_.agent().call_at(attempt_->retry.next(), *this);
}

Status Connection::ask_listener() {
    if (const Status status = make_offer(); !status.ok()) return status;
    auto socket = connect_to_service(attempt_->parameters.remote);
    return socket.ok() ? send_request(std::move(*socket)) : socket.status();
}

/// Both peers try to bind the same name. The first one succeeds and waits; the other one fails and connects to it.
Status Connection::connect_peer() {
    const std::string name = peer_name(attempt_->parameters.local.host, attempt_->parameters.remote.host,
                                       attempt_->parameters.remote.service);
    for (int tries = 0; tries < peer_tries; ++tries) {
        auto listening = listen_on(name);
        if (listening.ok()) {
            auto pending = PendingConnections::create(std::move(*listening));
            if (!pending.ok()) return pending.status();
            attempt_->pending = std::move(*pending);
            return device_.agent().watch(attempt_->pending->fd(), shared_from_this());
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

Status Connection::make_offer() {
    if (numbered_) return {};
    auto segment = device_.spare_segment().take();
    if (!segment.ok()) return segment.status();
    mapping_ = std::move(segment->mapping);
    segment_fd_ = std::move(segment->fd);
    if (const Status status = take_number(); !status.ok()) return status;
    device_.add_connection(self());
    return {};
}

/// Called right after the socket was connected, because that wakes the listener.
Status Connection::send_request(UniqueSocket socket) {
    Endpoint& endpoint = *owner_->endpoint;
    endpoint.advertise(*this);
    HandshakeMessage message = make_handshake(MessageType::Connect, instance_info(endpoint), endpoint.attributes(),
                                              attempt_->parameters.private_data);
    set_bytes(message.local_host, attempt_->parameters.local.host.span());
    set_bytes(message.local_service, attempt_->parameters.local.service.span());
    set_bytes(message.remote_host, attempt_->parameters.remote.host.span());
    attempt_->peer_process = peer_process(socket.get());
    auto handed = descriptors_for(attempt_->peer_process);
    if (!handed.ok()) return handed.status();
    const std::array<int, 4> descriptors{segment_fd(), (*handed)[0], (*handed)[1], (*handed)[2]};
    if (const Status status = send_message(socket.get(), &message, sizeof message, descriptors);
        !status.ok() && status.code() != Code::SystemError) {
        if (status.sys_errno() != ETOOMANYREFS || attempt_->retry.is_over()) return status;
        ask_again();  // listeners may take requests in a moment
        return {};
    }
    // If the listener closed meanwhile, the socket is hung up; read_answer() detects that and tries again.
    socket_ = std::move(socket);
    if (is_answered_soon()) {
        bool read = true;
        run_step([&]() VIADUCT_REQUIRES(owner_->mutex) { read = read_answer(); });
        if (read) return {};
    }
    const Status status = device_.agent().watch(socket_.get(), shared_from_this());
    attempt_->watches = status.ok();
    return status;
}

/// Spins for the answer, so that it wakes neither the agent nor a thread that waits for the event. Only the first
/// request spins, because read_answer() may send another one. If answers are late, some of the next attempts do not
/// spin.
bool Connection::is_answered_soon() noexcept {
    if (std::exchange(attempt_->has_spun, true) || device_.agent().is_this_thread() ||
        attempt_->peer_process == getpid() || !device_.answer_spin().is_worthwhile())
        return false;
    device_.spare_segment().prepare();
    pollfd answer{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const auto spin_end = std::min(Deadline::after(answer_spin_time()), attempt_->parameters.deadline);
    bool answered = false;
    while (!answered && !spin_end.passed()) answered = poll(&answer, 1, 0) != 0;
    device_.answer_spin().answered(answered);
    return answered;
}

/// Called while the agent watches the socket of the request, or for those of peers.
void Connection::go_on(int fd) noexcept {
    run_step([&]() VIADUCT_REQUIRES(owner_->mutex) {
        if (attempt_->pending && fd == attempt_->pending->fd())
            take_peer_requests();
        else if (socket_ && fd == socket_.get())
            (void)read_answer();
    });
}

template <class Step>
void Connection::run_step(Step step) noexcept {
    const Status status = support::guarded([&]() VIADUCT_UNCHECKED { step(); });
    if (status.ok()) return;
    log(LogLevel::Error, "out of memory while connecting");
    if (attempt_ != nullptr) fail(status);
}

/// Returns false if there is none.
bool Connection::read_answer() {
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

void Connection::answered(Handshake& answer) {
    switch (answer.type) {
        case MessageType::Accepted: return established_with(answer);
        case MessageType::Rejected:
            return finish({.kind = ConnectionEventKind::Rejected,
                           .private_data = answer.private_data,
                           .why = explain("process %d rejected the request", attempt_->peer_process)});
        case MessageType::NoListener:
            return fail({Code::NoListener,
                         explain("process %d closed the listener or refused the request", attempt_->peer_process)});
        case MessageType::NoResources: return server_lacks_resources();
        case MessageType::Conflict:
            return finish(conflict(compatible(owner_->endpoint->attributes(), answer.attributes), answer.attributes));
        case MessageType::Connect:
        case MessageType::MapRequest:
        case MessageType::MapReply: break;
    }
    answer_hung_up();  // what the peer has sent is not valid here
}

/// The server may have resources again in a moment.
void Connection::server_lacks_resources() {
    if (attempt_->retry.is_over())
        return fail({Code::Unreachable,
                     explain("process %d has too few free descriptors (RLIMIT_NOFILE) or too little memory for another "
                             "connection",
                             attempt_->peer_process)});
    drop_socket();
    ask_again();
}

/// The listener was closed or its process died. The state of the handshake determines the outcome.
void Connection::answer_hung_up() {
    drop_socket();
    if (attempt_->peer_to_peer && !advance(wire::Handshake::Taken, wire::Handshake::Offered))
        advance(wire::Handshake::Abandoned, wire::Handshake::Offered);
    if (handshake() == wire::Handshake::Offered) {
        if (attempt_->may_hang_up != 0) {
            --attempt_->may_hang_up;
            if (const Status status = attempt(); !status.ok()) fail(status);
        } else {
            attempt_->pausing = true;
            device_.agent().call_at(std::min(Deadline::after(hang_up_pause), attempt_->parameters.deadline), *this);
        }
        return;
    }
    switch (handshake()) {
        case wire::Handshake::Abandoned:  // dropped without an answer, so wait for the deadline (guide, section 3.3.4)
            if (attempt_->parameters.ends_if_dropped) {  // but the server may be back in a moment
                attempt_->was_dropped = true;
                if (attempt_->retry.is_over() || !advance(wire::Handshake::Abandoned, wire::Handshake::Offered))
                    return fail(dropped);
                return ask_again();
            }
            if (!attempt_->parameters.deadline.infinite()) return;
            [[fallthrough]];
        case wire::Handshake::Offered:
        case wire::Handshake::Taken:  // the process that took it is gone
            return fail({Code::NoListener, "the process that took the request ended without an answer"});
        case wire::Handshake::Accepted:
        case wire::Handshake::Refused: break;  // answered, but the message was lost with the listener
    }
    fail({Code::Unreachable, "the peer answered, but ended before its answer arrived"});
}

void Connection::established_with(Handshake& handshake) {
    ConnectionEvent event{.kind = ConnectionEventKind::Established,
                          .remote = handshake.attributes,
                          .remote_address = attempt_->parameters.remote,
                          .private_data = handshake.private_data};
    if (!handshake.local.service.empty()) event.remote_address.service = handshake.local.service;
    Status status = set_peer(handshake, handshake.descriptors.all(), attempt_->peer_process);
    handshake.descriptors.close();
    // If the peer has already disconnected, this thread ends the connection, so that the agent need not wake up. To
    // receive the last messages it needs the serving lock, and it must not wait for that with the owner's mutex held.
    if (!device_.serving().try_lock_shared()) return begin(event, status, false);
    const SharedLock serving(device_.serving(), std::adopt_lock);
    begin(event, status, status.ok() && has_hung_up(socket_.get()));
}

void Connection::begin(const ConnectionEvent& event, Status status, bool hung_up) {
    if (status.ok() && !hung_up && !attempt_->watches)
        status = device_.agent().watch(socket_.get(), shared_from_this());
    if (!status.ok()) return fail(status);
    if (peer_->is_gone()) shutdown(socket_.get(), SHUT_RDWR);  // which was noticed before this connection was with it
    segment_fd_.reset();
    end_attempt();
    owner_->endpoint->establish(self(), event);
    if (hung_up) owner_->endpoint->peer_hung_up(*this);
}

/// A peer cannot be accepted, for instance as the system has no memory for that. Its socket stays readable, so the
/// agent does not look at it for a moment.
void Connection::rest() {
    device_.agent().call_at(attempt_->retry.next(), *this);
    device_.agent().pause(attempt_->pending->fd(), true);
    attempt_->resting = true;
}

void Connection::take_peer_requests() {
    while (true) {
        auto accepted = attempt_->pending->next();
        if (accepted.status().code() == Code::WouldBlock) return;
        if (!accepted.ok()) return rest();
        auto request = ConnectionRequest::take(device_, std::move(accepted->first), std::move(accepted->second));
        if (!request.ok()) continue;
        ConnectionRequest& peer = **request;
        if (!(peer.remote_address().host == attempt_->parameters.remote.host) ||
            !(peer.remote_host_asked_for() == attempt_->parameters.local.host)) {
            attempt_->deferred.push_back(
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
        if (peer.accept_locked(own, attempt_->parameters.private_data, event).ok()) return end_attempt();
    }
}

void Connection::on_deadline() noexcept {
    const LockGuard lock(owner_->mutex);
    if (attempt_ != nullptr) run_step([this]() VIADUCT_REQUIRES(owner_->mutex) { check_time(); });
}

/// Asks or looks again, or ends the attempt if the deadline has passed.
void Connection::check_time() {
    const bool late = attempt_->parameters.deadline.passed();
    if (std::exchange(attempt_->resting, false) && !late) {
        device_.agent().pause(attempt_->pending->fd(), false);
        return device_.agent().call_at(attempt_->parameters.deadline, *this);
    }
    if (attempt_->pausing && !(late && (attempt_->peer_to_peer || attempt_->may_hang_up == 0))) {
        owner_->endpoint->count_retry();
        if (const Status status = attempt(); !status.ok()) fail(status);
        return;
    }
    if (!late) return;
    const bool asked{socket_};
    const bool untaken = !asked || advance(wire::Handshake::Offered, wire::Handshake::Abandoned);
    const bool answer_coming = !untaken && !advance(wire::Handshake::Taken, wire::Handshake::Abandoned);
    if (answer_coming && may_still_answer()) return;
    if (answer_coming) close(true);  // if the peer accepted, it sees a disconnect
    finish({.kind = ConnectionEventKind::TimedOut, .why = describe_time_out(untaken)});
}

/// Called after the deadline if the handshake word says that the listener has answered.
bool Connection::may_still_answer() noexcept try {
    if (attempt_->answer_by.infinite()) {
        attempt_->answer_by = Deadline::after(answer_grace);
        device_.agent().call_at(attempt_->answer_by, *this);
    }
    return !attempt_->answer_by.passed();
} catch (const std::bad_alloc&) {
    return false;
}

const char* Connection::describe_time_out(bool untaken) const noexcept {
    const Address& remote = attempt_->parameters.remote;
    if (attempt_->peer_to_peer)
        return explain("%s did not connect to %s within the time", text_of(remote.host).c_str(),
                       text_of(remote.service).c_str());
    return explain("the listener on %s %s within the time", text_of(remote).c_str(),
                   untaken ? "did not take the request" : "took the request and did not answer");
}

void Connection::fail(const Status& status) noexcept { finish(failed_attempt(status)); }

void Connection::finish(const ConnectionEvent& event) noexcept {
    Endpoint& own = *owner_->endpoint;
    own.withdraw_credits();
    drop_socket();
    end_attempt();
    own.attempt_failed(event);
}

void Connection::abandon() noexcept {
    owner_->mutex.assume_held();  // by the endpoint, which calls this
    if (numbered_ && !advance(wire::Handshake::Offered, wire::Handshake::Abandoned) &&
        !advance(wire::Handshake::Taken, wire::Handshake::Abandoned))
        close(true);  // accepted at the same time: the peer sees a disconnect
    owner_->endpoint->withdraw_credits();
    drop_socket();
    end_attempt();
}

void Connection::drop_socket() noexcept {
    if (!socket_) return;
    device_.agent().unwatch(socket_.get());
    shutdown(socket_.get(), SHUT_RDWR);  // takes effect even if a child of _Fork(3) has the descriptor
    socket_.reset();
    if (attempt_ != nullptr) attempt_->watches = false;
}

void Connection::end_attempt() noexcept {
    const auto ended = std::exchange(attempt_, nullptr);
    if (ended == nullptr) return;
    device_.agent().cancel(*this);
    if (ended->pending) device_.agent().unwatch(ended->pending->fd());
}

}  // namespace viaduct::loopback
