// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/connection.hpp"

#include "backends/loopback/device.hpp"
#include "backends/loopback/endpoint.hpp"
#include "core/base/fence.hpp"
#include "core/log.hpp"

namespace viaduct::loopback {

Result<std::shared_ptr<Connection>> Connection::take(Device& device, const UniqueFd& segment) {
    if (!is_sealed_memfd(segment.get(), sizeof(wire::Segment)))
        return Status(Code::InvalidParameter, "invalid segment from a peer");
    auto mapping = Mapping::map(segment.get(), sizeof(wire::Segment), PROT_READ | PROT_WRITE);
    if (!mapping.ok()) return mapping.status();
    std::shared_ptr<Connection> connection(new Connection(device, 1));
    connection->mapping_ = std::move(*mapping);
    return connection;
}

Status Connection::take_number() {
    if (numbered_) return {};
    auto number = device_.take_number();
    if (!number.ok()) return number.status();
    number_ = *number;
    numbered_ = true;
    return {};
}

Status Connection::set_peer(const Handshake& handshake, std::span<UniqueFd> descriptors, pid_t process) {
    auto peer = device_.find_peer(handshake.instance, process, descriptors);
    if (!peer.ok()) return peer.status();
    peer_ = std::move(*peer);
    peer_number_ = handshake.instance.connection;
    peer_domain_ = handshake.instance.domain;
    remote_attributes_ = handshake.attributes;
    peer_shares_receives_ = handshake.instance.shared_receives != 0;
    asymmetric_ = Fence::available() && peer_->asymmetric_fences();
    return {};
}

Status Connection::open(UniqueSocket& socket, std::shared_ptr<EndpointRef> owner) {
    owner_ = std::move(owner);
    if (const Status status = device_.agent().watch(socket.get(), shared_from_this()); !status.ok()) return status;
    socket_ = std::move(socket);
    device_.add_connection(self());
    return {};
}

InstanceInfo Connection::instance_info(const Endpoint& endpoint) const noexcept {
    return {
        .instance_id = device_.instance_id(),
        .canary_address = device_.canary().address(),
        .connection = number_,
        .domain = endpoint.domain_id(),
        .asymmetric = Fence::available(),
        .shared_receives = endpoint.shares_receives(),
    };
}

Result<std::array<int, 3>> Connection::descriptors_for(pid_t process) {
    auto board = device_.doorbell().board_for(process);
    if (!board.ok()) return board.status();
    doorbell_ = std::move(*board);
    return std::array{doorbell_->memory_fd(), doorbell_->event_fd(), device_.regions().memory_fd()};
}

void Connection::request_mapping(std::uint32_t key) noexcept {
    const MapMessage request{.type = MessageType::MapRequest, .key = key, .base = 0, .length = 0, .offset = 0};
    // If the request is lost, the slower methods of access are used.
    (void)send_message(socket_.get(), &request, sizeof request, {});
}

bool Connection::serve() noexcept {
    const SharedLock serving(device_.serving());
    const LockGuard lock(owner_->mutex);
    Endpoint* endpoint = owner_->endpoint;
    return endpoint != nullptr && endpoint->serve(*this);
}

bool Connection::is_still_polled() noexcept {
    const LockGuard lock(owner_->mutex);
    return owner_->endpoint != nullptr && owner_->endpoint->is_still_polled(*this);
}

void Connection::hang_up(const Peer* gone) noexcept {
    const SharedLock serving(device_.serving());
    const LockGuard lock(owner_->mutex);
    if (gone != nullptr && peer_.get() != gone) return;
    if (owner_->endpoint != nullptr) owner_->endpoint->peer_hung_up(*this);
}

void Connection::answer_map_request(const MapMessage& request) {
    MapMessage reply{.type = MessageType::MapReply, .key = request.key, .base = 0, .length = 0, .offset = 0};
    const LockGuard lock(owner_->mutex);
    if (owner_->endpoint == nullptr || !socket_) return;
    const auto region = look_up(device_.regions().table(), request.key);
    if (!region || region->domain != owner_->endpoint->domain_id()) return;
    const auto file = device_.regions().backing(request.key);
    if (!file || !file->fd) return;
    reply.base = region->base;
    reply.length = region->length;
    reply.offset = file->offset;
    const int fd = file->fd.get();
    (void)send_message(socket_.get(), &reply, sizeof reply, {&fd, 1});
}

void Connection::on_readable(int fd) noexcept try {
    MapMessage message{};
    auto received = [&]() -> Result<Received> {
        const LockGuard lock(owner_->mutex);
        if (attempt_ != nullptr) {
            go_on(fd);
            return Status(Code::WouldBlock, "not connected yet");
        }
        if (socket_.get() != fd)
            return Status(Code::WouldBlock, "closed since");  // the number may belong to another
                                                              // descriptor now
        return receive_message(fd, &message, sizeof message);
    }();
    if (!received.ok() && received.status().code() == Code::WouldBlock) return;
    if (!received.ok() || received->size != sizeof message) return hang_up();
    if (message.type == MessageType::MapRequest) {
        answer_map_request(message);
    } else if (message.type == MessageType::MapReply && received->descriptors.size() == 1) {
        const auto stale = peer_->install(message, received->descriptors.all().front());
        if (!stale.empty()) device_.await_quiet_work_queues();
    }
} catch (const std::exception&) {
    log(LogLevel::Error, "out of memory while answering a peer");
}

}  // namespace viaduct::loopback
