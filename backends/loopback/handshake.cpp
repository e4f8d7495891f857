// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/handshake.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "backends/loopback/layout.hpp"
#include "backends/support/attribute_codec.hpp"
#include "backends/support/services.hpp"
#include "core/base/abstract_socket.hpp"
#include "core/base/hex.hpp"
#include "core/base/numbers.hpp"
#include "core/base/waiting.hpp"
#include "core/log.hpp"

namespace viaduct::loopback {
namespace {

constexpr int backlog = 1024;

template <std::size_t Capacity>
std::optional<Bytes<Capacity>> from_hex(std::string_view text) {
    std::array<std::uint8_t, Capacity> bytes{};
    if (text.size() % 2 != 0 || text.size() > 2 * Capacity) return std::nullopt;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const auto byte = whole_number<std::uint8_t>(text.substr(i, 2), 16);
        if (!byte) return std::nullopt;
        bytes.at(i / 2) = *byte;
    }
    return Bytes<Capacity>(std::span(bytes).first(text.size() / 2));
}

/// Removes the part before the next '/', which has to be a number, and the '/'.
std::optional<std::uint32_t> take_number(std::string_view& name) {
    std::uint32_t number = 0;
    if (!viaduct::take_number(name, number) || !take_text(name, "/")) return std::nullopt;
    return number;
}

constexpr std::string_view all_sockets = "viaduct/";

/// Without the leading NUL of abstract names, which AbstractAddress adds.
std::string socket_prefix() { return fmt::format("{}{}/{}/", all_sockets, wire::version, geteuid()); }

bool is_same_user(int socket) noexcept { return credentials_of(socket).uid == geteuid(); }

Result<UniqueSocket> make_socket() noexcept {
    auto socket =
        UniqueSocket::made_by([] { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
    if (!socket) return Status::from_errno(errno, "socket");
    return socket;
}

template <std::size_t Capacity>
bool get_bytes(const WireBytes& source, Bytes<Capacity>& target) noexcept {
    const std::uint32_t size = source.size;
    if (size > Capacity) return false;
    target = Bytes<Capacity>(std::span(source.bytes).first(size));
    return true;
}

bool get_attributes(const WireAttributes& source, EndpointAttributes& target) noexcept {
    const auto decoded = support::decode(
        {.flags = static_cast<std::uint8_t>(source.flags), .max_transfer_bytes = source.max_transfer_bytes});
    if (decoded) target = *decoded;
    return decoded.has_value();
}

}  // namespace

Status send_message(int socket, const void* message, std::size_t size, std::span<const int> descriptors) noexcept {
    iovec data{.iov_base = const_cast<void*>(message), .iov_len = size};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
    msghdr header{.msg_iov = &data, .msg_iovlen = 1};
    if (!descriptors.empty()) {
        header.msg_control = control.data();
        header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* item = CMSG_FIRSTHDR(&header);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(item), descriptors.data(), descriptors.size_bytes());
    }
    const CancellationHold hold;
    if (sendmsg(socket, &header, MSG_NOSIGNAL) < 0) return Status::from_errno(errno, "sendmsg to a peer");
    return {};
}

Result<Received> receive_message(int socket, void* message, std::size_t capacity) noexcept {
    iovec data{.iov_base = message, .iov_len = capacity};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
    msghdr header{.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.data(), .msg_controllen = control.size()};
    ssize_t size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    // The peer has closed the socket without having read everything. The system tells this once, before the last
    // messages of the peer, one of which may be its answer.
    if (size < 0 && errno == ECONNRESET) size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    if (size < 0) {
        if (errno == EAGAIN || errno == EINTR) return Status(Code::WouldBlock, "no message yet");
        if (errno == ECONNRESET) return Received{};
        return Status::from_errno(errno, "recvmsg from a peer");
    }
    Received received{.size = static_cast<std::size_t>(size), .incomplete = (header.msg_flags & MSG_CTRUNC) != 0};
    for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof fd);
            received.descriptors.add(fd);
        }
    }
    return received;
}

Result<Handshake> receive_handshake(int socket) noexcept {
    HandshakeMessage message{};
    auto received = receive_message(socket, &message, sizeof message);
    if (!received.ok()) return received.status();
    Handshake handshake;
    if (received->size == 0) {
        handshake.hung_up = true;
        return handshake;
    }
    if (received->size != sizeof message || message.magic != wire::magic || message.version != wire::version)
        return Status(Code::InvalidParameter, "the peer uses another version of the handshake");
    const bool sound = get_attributes(message.attributes, handshake.attributes) &&
                       get_bytes(message.local_host, handshake.local.host) &&
                       get_bytes(message.local_service, handshake.local.service) &&
                       get_bytes(message.remote_host, handshake.remote_host) &&
                       get_bytes(message.private_data, handshake.private_data) &&
                       message.instance.connection < wire::max_connections;
    if (!sound) return Status(Code::InvalidParameter, "malformed handshake from a peer");
    handshake.type = message.type;
    handshake.instance = message.instance;
    handshake.descriptors = std::move(received->descriptors);
    handshake.incomplete = received->incomplete;
    const std::size_t expected = message.type == MessageType::Connect    ? 4
                                 : message.type == MessageType::Accepted ? 3
                                                                         : 0;
    if (handshake.descriptors.size() != expected && !handshake.incomplete)
        return Status(Code::InvalidParameter, "handshake with the wrong number of descriptors");
    return handshake;
}

HandshakeMessage make_handshake(MessageType type, const InstanceInfo& instance, const EndpointAttributes& attributes,
                                const PrivateData& private_data) noexcept {
    HandshakeMessage message{};
    message.magic = wire::magic;
    message.version = wire::version;
    message.type = type;
    message.instance = instance;
    const support::EncodedAttributes encoded = support::encode(attributes);
    message.attributes = {.flags = encoded.flags, .max_transfer_bytes = encoded.max_transfer_bytes};
    set_bytes(message.private_data, private_data.span());
    return message;
}

void set_bytes(WireBytes& target, std::span<const std::uint8_t> bytes) noexcept {
    target.size = static_cast<std::uint32_t>(std::min(bytes.size(), target.bytes.size()));
    std::memcpy(target.bytes.data(), bytes.data(), target.size);
}

std::string service_name(const Address& address, std::uint32_t place) {
    return fmt::format("{}{}/{}/{}", socket_prefix(), hex(address.host.span()), service_text(address.service), place);
}

std::string peer_name(const Bytes<Address::max_host>& one, const Bytes<Address::max_host>& other,
                      const Bytes<Address::max_service>& service) {
    const std::pair<std::string, std::string> ends = std::minmax({hex(one.span()), hex(other.span())});
    return fmt::format("{}p2p/{}/{}/{}", socket_prefix(), ends.first, ends.second, service_text(service));
}

std::optional<ServiceName> parse_service_name(std::string_view name) {
    if (!take_text(name, all_sockets)) return std::nullopt;
    const auto version = take_number(name);
    const auto user = take_number(name);
    if (!version || !user) return std::nullopt;
    const std::size_t after_host = name.find('/');
    const std::size_t after_service =
        after_host == std::string_view::npos ? after_host : name.find('/', after_host + 1);
    if (after_service == std::string_view::npos) return std::nullopt;
    const auto host = from_hex<Address::max_host>(name.substr(0, after_host));
    if (!host) return std::nullopt;  // the name of a peer
    const std::string_view service = name.substr(after_host + 1, after_service - after_host - 1);
    return ServiceName{
        .version = *version,
        .user = *user,
        .address = {.host = *host, .service = from_hex<Address::max_service>(service).value_or(Service())},
        .service_text = std::string(service)};
}

/// Names are at most 107 bytes long, which is not enough for a service of 64 bytes in hexadecimal.
std::string service_text(const Service& service) {
    if (service.size() <= 16) return hex(service.span());
    const std::uint64_t low = support::fingerprint(service);
    return fmt::format("x{:016x}{:016x}", support::fingerprint(service.span(), low), low);
}

Result<UniqueSocket> listen_on(const std::string& name) noexcept {
    auto socket = make_socket();
    if (!socket.ok()) return socket.status();
    const AbstractAddress address(name);
    if (bind(socket->get(), address.get(), address.size()) != 0)
        return errno == EADDRINUSE ? Status(Code::Busy, "the name is already in use")
                                   : Status::from_errno(errno, "bind");
    if (listen(socket->get(), backlog) != 0) return Status::from_errno(errno, "listen");
    return socket;
}

Result<UniqueSocket> connect_to(const std::string& name) noexcept {
    auto socket = make_socket();
    if (!socket.ok()) return socket.status();
    const AbstractAddress address(name);
    if (connect(socket->get(), address.get(), address.size()) != 0) {
        if (errno == EAGAIN) return Status(Code::NoListener, "the listener's queue of requests is full");
        if (errno == ECONNREFUSED || errno == ENOENT) return Status(Code::NoListener, "there is no listener");
        return Status::from_errno(errno, "connect");
    }
    if (!is_same_user(socket->get())) return Status(Code::NoListener, "the listener belongs to another user");
    return socket;
}

Result<UniqueSocket> connect_to_service(const Address& listener) {
    auto socket = connect_to(service_name(listener, 0));
    for (std::uint32_t place = 1; place < max_listeners && socket.status().code() == Code::NoListener; ++place)
        socket = connect_to(service_name(listener, place));
    return socket;
}

Result<UniqueSocket> accept_from(int listener) noexcept {
    while (true) {
        auto socket =
            UniqueSocket::made_by([&] { return accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
        if (socket && is_same_user(socket.get())) return socket;
        if (socket) {
            const ucred peer = credentials_of(socket.get());
            log(LogLevel::Info, "loopback: process %d of user %u was refused: only user %u can connect", peer.pid,
                peer.uid, geteuid());
            continue;
        }
        if (errno == EAGAIN) return Status(Code::WouldBlock, "no connection is pending");
        if (errno != EINTR && errno != ECONNABORTED) return Status::from_errno(errno, "accept4");
    }
}

pid_t peer_process(int socket) noexcept { return credentials_of(socket).pid; }

bool has_hung_up(int socket) noexcept {
    pollfd look{.fd = socket, .events = POLLIN | POLLRDHUP, .revents = 0};
    return ::poll(&look, 1, 0) == 1 && (look.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

}  // namespace viaduct::loopback
