// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/listener.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <thread>

#include "backends/loopback/device.hpp"
#include "backends/loopback/endpoint.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/reserve.hpp"
#include "core/base/address_text.hpp"
#include "core/explain.hpp"
#include "core/log.hpp"

namespace viaduct::loopback {
namespace {

constexpr std::size_t max_pending = 4096;
constexpr int answer_tries = 10;
constexpr std::chrono::milliseconds answer_pause{1};

/// Refuses a request that this process has no resources for.
void turn_away(int socket, const Status& why) noexcept {
    const HandshakeMessage message = make_handshake(MessageType::NoResources, {}, {}, {});
    (void)send_message(socket, &message, sizeof message, {});
    log(LogLevel::Info, "a request of process %d was refused: %s", peer_process(socket), Reason(why).c_str());
}

}  // namespace

// ---- Requests ----------------------------------------------------------------------------------------------------

ConnectionRequest::ConnectionRequest(UniqueSocket socket, Handshake handshake,
                                     std::shared_ptr<Connection> connection) noexcept
    : socket_(std::move(socket)), handshake_(std::move(handshake)), connection_(std::move(connection)) {}

/// If the requester cannot be told of a refusal, the handshake word tells it what the hang-up means.
Result<std::unique_ptr<ConnectionRequest>> ConnectionRequest::take(Device& device, UniqueSocket socket,
                                                                   Handshake handshake) {
    const auto failed = [&](const Status& status) {
        if (status.code() == Code::NoResources) turn_away(socket.get(), status);
        return status;
    };
    auto connection = Connection::take(device, handshake.descriptors.all().front());
    if (!connection.ok()) return failed(connection.status());
    const auto peer_descriptors = handshake.descriptors.all().subspan(1);
    const pid_t process = peer_process(socket.get());
    if (const Status status = (*connection)->set_peer(handshake, peer_descriptors, process); !status.ok())
        return failed(status);
    handshake.descriptors.close();
    std::unique_ptr<ConnectionRequest> request(
        new ConnectionRequest(std::move(socket), std::move(handshake), std::move(*connection)));
    // Last, because a request that is taken and then lost would leave the requester without an answer.
    if (!request->connection_->advance(wire::Handshake::Offered, wire::Handshake::Taken))
        return Status(Code::TimedOut, "the requester has given up");
    return request;
}

/// Allows the requester to distinguish a dropped request from a dead process.
ConnectionRequest::~ConnectionRequest() {
    if (connection_ == nullptr) return;
    connection_->advance(wire::Handshake::Taken, refused_ ? wire::Handshake::Refused : wire::Handshake::Abandoned);
}

Status ConnectionRequest::accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept {
    return support::guarded([&]() -> Status {
        auto& own = static_cast<Endpoint&>(endpoint);
        const LockGuard answering(mutex_);
        const LockGuard lock(own.ref()->mutex);
        if (!own.is_idle()) return {Code::InvalidState, "the endpoint is not idle"};
        return accept_locked(own, private_data, {.kind = ConnectionEventKind::Established});
    });
}

Status ConnectionRequest::accept_locked(Endpoint& endpoint, const PrivateData& private_data,
                                        const ConnectionEvent& established) {
    if (connection_ == nullptr) return {Code::TimedOut, "the request was already answered"};
    if (const Status status = connection_->take_number(); !status.ok()) return status;
    HandshakeMessage message = make_handshake(MessageType::Accepted, connection_->instance_info(endpoint),
                                              endpoint.attributes(), private_data);
    set_bytes(message.local_service, answered_by_.span());
    auto handed = connection_->descriptors_for(connection_->peer().process());
    if (!handed.ok()) return handed.status();
    const bool hung_up = has_hung_up(socket_.get());
    if (const Status status = connection_->open(socket_, endpoint.ref()); !status.ok()) return status;
    const bool gone = hung_up || connection_->peer().is_gone();  // if it is gone later, the agent ends the connection
    endpoint.advertise(*connection_);
    if (gone || !connection_->advance(wire::Handshake::Taken, wire::Handshake::Accepted)) {
        endpoint.withdraw_credits();
        const bool gave_up = connection_->handshake() == wire::Handshake::Abandoned;
        connection_.reset();
        return {Code::TimedOut, gave_up ? "the requester has given up" : "the requester's process has ended"};
    }
    // The connection is established from here on. If the requester dies now, the hang-up of the socket reports it.
    const std::shared_ptr<Connection> connection = std::move(connection_);
    connection->set_answer_due(true);
    endpoint.establish(connection, established);
    if (answer(*connection, message, *handed))
        connection->set_answer_due(false);
    else
        endpoint.request_break();
    return {};
}

/// Called after the local events, because the peer may cause further events as soon as it gets the message. Retries
/// briefly if the system is out of memory. Returns false on failure; the peer then only sees that the connection ends.
bool ConnectionRequest::answer(Connection& connection, const HandshakeMessage& message,
                               std::span<const int> descriptors) noexcept {
    for (int tries = 0; tries < answer_tries; ++tries) {
        if (connection.send(message, descriptors).code() != Code::NoResources) return true;
        std::this_thread::sleep_for(answer_pause);
    }
    return false;
}

Status ConnectionRequest::refuse(const HandshakeMessage& message) noexcept {
    const LockGuard answering(mutex_);
    if (connection_ == nullptr) return {};
    refused_ = true;
    const Status sent = send_message(socket_.get(), &message, sizeof message, {});
    if (sent.code() == Code::NoResources) return sent;  // a requester that is gone needs no answer
    connection_->advance(wire::Handshake::Taken, wire::Handshake::Refused);
    connection_.reset();
    return {};
}

// ---- Listeners ---------------------------------------------------------------------------------------------------

Result<PendingConnections> PendingConnections::create(UniqueSocket listening) noexcept {
    PendingConnections pending;
    pending.epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    if (!pending.epoll_) return Status::from_errno(errno, "epoll_create1");
    pending.reserve_ = support::open_reserve();
    if (!pending.reserve_) return Status::from_errno(errno, "open of /dev/null");
    epoll_event event{.events = EPOLLIN, .data = {.fd = listening.get()}};
    if (epoll_ctl(pending.epoll_.get(), EPOLL_CTL_ADD, listening.get(), &event) != 0)
        return Status::from_errno(errno, "epoll_ctl");
    pending.listening_ = std::move(listening);
    return pending;
}

/// Returns the request of a peer, or nothing if it hung up or sent an invalid message.
std::optional<PendingConnections::Request> PendingConnections::request_of(UniqueSocket socket,
                                                                          Result<Handshake>& handshake) {
    if (!handshake.ok() || handshake->hung_up || handshake->type != MessageType::Connect) return std::nullopt;
    if (handshake->incomplete) {
        handshake->descriptors.close();
        turn_away(socket.get(), support::lack_of_descriptors);
        return std::nullopt;
    }
    return Request{std::move(socket), std::move(*handshake)};
}

/// Accepts a connection. Usually its request is already there. If not, next() waits for it.
Result<std::optional<PendingConnections::Request>> PendingConnections::admit() {
    if (!reserve_) reserve_ = support::open_reserve();  // another thread may have taken its place
    auto socket = accept_from(listening_.get());
    if (socket.status().sys_errno() == EMFILE && reserve_) return turn_next_away();
    if (!socket.ok()) return socket.status();
    auto handshake = receive_handshake(socket->get());
    const Code code = handshake.status().code();
    if (code != Code::WouldBlock && code != Code::NoResources) return request_of(std::move(*socket), handshake);
    if (accepted_.size() >= max_pending) return std::optional<Request>();
    const int fd = socket->get();
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return Status::from_errno(errno, "epoll_ctl");
    accepted_.emplace(fd, std::move(*socket));
    return std::optional<Request>();
}

/// Without descriptors, the peer would wait in the queue, and the listener would be readable all the time.
Status PendingConnections::turn_next_away() noexcept {
    reserve_.reset();
    Status status(Code::WouldBlock, "a request was refused");
    if (const auto socket = accept_from(listening_.get()); socket.ok())
        turn_away(socket.value().get(), support::lack_of_descriptors);
    else
        status = socket.status();
    reserve_ = support::open_reserve();  // in the place of the socket, which is closed
    return status;
}

Result<PendingConnections::Request> PendingConnections::next() {
    epoll_event event{};
    while (epoll_wait(epoll_.get(), &event, 1, 0) == 1) {
        if (event.data.fd == listening_.get()) {
            auto admitted = admit();
            if (admitted.ok() && *admitted) return std::move(**admitted);
            if (!admitted.ok() && admitted.status().code() != Code::WouldBlock) return admitted.status();
            continue;
        }
        auto handshake = receive_handshake(event.data.fd);
        if (!handshake.ok() && handshake.status().code() == Code::WouldBlock) continue;
        if (handshake.status().code() == Code::NoResources) return handshake.status();  // the message is still queued
        const auto found = accepted_.find(event.data.fd);
        UniqueSocket socket = std::move(found->second);
        accepted_.erase(found);
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
        if (auto request = request_of(std::move(socket), handshake)) return std::move(*request);
    }
    return Status(Code::WouldBlock, "no request is pending", accepted_.empty() ? 0 : EINPROGRESS);
}

namespace {

/// Several listeners are allowed, but they may be servers that do not know of each other. Throws std::bad_alloc.
Result<UniqueSocket> first_free_place(const Address& local) {
    for (std::uint32_t place = 0; place < max_listeners; ++place) {
        auto socket = listen_on(service_name(local, place));
        if (!socket.ok() && socket.status().code() == Code::Busy) continue;
        if (socket.ok() && place != 0)
            log(LogLevel::Info, "%s already has a listener; clients are served by either", text_of(local).c_str());
        return socket;
    }
    return Status(Code::NoResources, "too many listeners on one service");
}

/// Returns the first place if no place is in use. Throws std::bad_alloc.
Result<UniqueSocket> only_place(const Address& local) {
    auto first = listen_on(service_name(local, 0));
    for (std::uint32_t place = 1; place < max_listeners && first.ok(); ++place)
        if (auto other = listen_on(service_name(local, place)); !other.ok()) return other.status();
    return first;
}

}  // namespace

Result<std::unique_ptr<viaduct::Listener>> Listener::create(Device& device, const Address& local, Sharing sharing) {
    auto socket = sharing == Sharing::Exclusive ? only_place(local) : first_free_place(local);
    if (socket.status().code() == Code::Busy)
        return Status(Code::Busy, explain("%s already has a listener", text_of(local).c_str()));
    if (!socket.ok()) return socket.status();
    auto pending = PendingConnections::create(std::move(*socket));
    if (!pending.ok()) return pending.status();
    return std::unique_ptr<viaduct::Listener>(new Listener(device, std::move(*pending)));
}

Result<Owned<viaduct::ConnectionRequest>> Listener::next_request() noexcept {
    return support::guarded([&]() -> Result<Owned<viaduct::ConnectionRequest>> {
        const LockGuard lock(mutex_);
        while (true) {
            auto peer = pending_.next();
            if (!peer.ok()) return peer.status();
            auto request = ConnectionRequest::take(device_, std::move(peer->first), std::move(peer->second));
            if (request.ok()) return Owned<viaduct::ConnectionRequest>(std::move(*request));
        }
    });
}

}  // namespace viaduct::loopback
