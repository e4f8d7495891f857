// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/handshake.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "backends/loopback/layout.hpp"
#include "backends/support/attribute_codec.hpp"
#include "backends/support/services.hpp"

namespace viaduct::loopback {
namespace {

constexpr int backlog = 1024;

std::string hex(std::span<const std::uint8_t> bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
}

/// Names are at most 107 bytes long, which is not enough for a service of 64 bytes in hexadecimal.
std::string service_text(const Service& service) {
    if (service.size() <= 16) return hex(service.span());
    const std::uint64_t low = support::fingerprint(service);
    return fmt::format("x{:016x}{:016x}", support::fingerprint(service.span(), low), low);
}

/// Without the leading NUL of abstract names, which address_of() adds.
std::string socket_prefix() { return fmt::format("viaduct/{}/{}/", wire::version, geteuid()); }

socklen_t address_of(const std::string& name, sockaddr_un& address) noexcept {
    address = {};
    address.sun_family = AF_UNIX;
    const std::size_t size = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), size);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

ucred credentials_of(int socket) noexcept {
    ucred credentials{.pid = 0, .uid = static_cast<uid_t>(-1), .gid = static_cast<gid_t>(-1)};
    socklen_t size = sizeof credentials;
    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
    return credentials;
}

bool is_same_user(int socket) noexcept { return credentials_of(socket).uid == geteuid(); }

Result<UniqueFd> make_socket() noexcept {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
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
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (!descriptors.empty()) {
        header.msg_control = control.data();
        header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* item = CMSG_FIRSTHDR(&header);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(item), descriptors.data(), descriptors.size_bytes());
    }
    if (sendmsg(socket, &header, MSG_NOSIGNAL) < 0) return Status::from_errno(errno, "sendmsg to a peer");
    return {};
}

Result<Received> receive_message(int socket, void* message, std::size_t capacity) noexcept {
    iovec data{.iov_base = message, .iov_len = capacity};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    if (size < 0) {
        if (errno == EAGAIN || errno == EINTR) return Status(Code::WouldBlock, "no message yet");
        if (errno == ECONNRESET) return Received{};
        return Status::from_errno(errno, "recvmsg from a peer");
    }
    Received received;
    received.size = static_cast<std::size_t>(size);
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
    const std::size_t expected = message.type == MessageType::Connect    ? 4
                                 : message.type == MessageType::Accepted ? 3
                                                                         : 0;
    if (handshake.descriptors.size() != expected)
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

Result<UniqueFd> listen_on(const std::string& name) noexcept {
    auto socket = make_socket();
    if (!socket.ok()) return socket.status();
    sockaddr_un address;
    const socklen_t size = address_of(name, address);
    if (bind(socket->get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
        return errno == EADDRINUSE ? Status(Code::Busy, "the name is already in use")
                                   : Status::from_errno(errno, "bind");
    if (listen(socket->get(), backlog) != 0) return Status::from_errno(errno, "listen");
    return socket;
}

Result<UniqueFd> connect_to(const std::string& name) noexcept {
    auto socket = make_socket();
    if (!socket.ok()) return socket.status();
    sockaddr_un address;
    const socklen_t size = address_of(name, address);
    if (connect(socket->get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
        if (errno == ECONNREFUSED || errno == ENOENT || errno == EAGAIN)
            return Status(Code::NoListener, "there is no listener", errno);
        return Status::from_errno(errno, "connect");
    }
    if (!is_same_user(socket->get())) return Status(Code::NoListener, "the listener belongs to another user");
    return socket;
}

Result<UniqueFd> accept_from(int listener) noexcept {
    while (true) {
        UniqueFd socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket && is_same_user(socket.get())) return socket;
        if (socket) continue;
        if (errno == EAGAIN) return Status(Code::WouldBlock, "no connection is pending");
        if (errno != EINTR && errno != ECONNABORTED) return Status::from_errno(errno, "accept4");
    }
}

pid_t peer_process(int socket) noexcept { return credentials_of(socket).pid; }

}  // namespace viaduct::loopback
