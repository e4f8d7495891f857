// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/control_socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/settings.hpp"
#include "core/base/socket_address.hpp"

namespace viaduct::ofi {
namespace {

constexpr int backlog = 1024;

template <class Value>
void set_option(int fd, int level, int option, Value value) noexcept {
    (void)setsockopt(fd, level, option, &value, sizeof value);  // an option that the system lacks is not needed
}

/// Makes the system notice within the time of VIADUCT_OFI_TIMEOUT_MS that a host does not answer any more. It looks at
/// the time only when it sends a probe, so that the limit is one interval less.
void prepare(int fd) noexcept {
    static const int timeout_ms = static_cast<int>(number_setting(ofi_timeout_setting).value_or(10000));
    constexpr int probes = 4;
    const int interval_s = std::max(1, timeout_ms / 1000 / (probes + 1));
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, std::max(1000, timeout_ms - 1000 * interval_s));
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, interval_s);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, probes);
}

socklen_t size_of(const SocketAddress& address) noexcept {
    return address.storage.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

Result<Socket> create(const SocketAddress& address) noexcept {
    Socket fd(UniqueFd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
    if (!fd) return Status::from_errno(errno, "socket");
    return fd;
}

}  // namespace

Result<ControlSocket> ControlSocket::connect(const Policy& policy, const HostAddress& from, const HostAddress& to,
                                             std::uint16_t port) {
    SocketAddress source(from, 0);
    SocketAddress target(to, port);
    if (!target.valid() || source.storage.ss_family != target.storage.ss_family)
        return Status(Code::Unreachable, "the address is of another family than that of the device");
    auto fd = create(source);
    if (!fd.ok()) return fd.status();
    set_option(fd->get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    if (bind(fd->get(), source.get(), size_of(source)) != 0)
        return errno == EADDRNOTAVAIL ? Status(Code::Unreachable, "the address of the device is gone", errno)
                                      : Status::from_errno(errno, "bind");
    prepare(fd->get());
    if (::connect(fd->get(), target.get(), size_of(target)) != 0 && errno != EINPROGRESS) {
        const Status status = Status::from_errno(errno, "connect");
        if (status.sys_errno() == ECONNREFUSED) return Status(Code::NoListener, "nothing listens on the port", errno);
        // EINVAL: the host cannot be reached from the loopback address.
        if (status.code() == Code::NoResources) return status;
        return Status(Code::Unreachable, "there is no route to the host", status.sys_errno());
    }
    return ControlSocket(std::move(*fd), policy, Role::Requester);
}

Result<Socket> ControlSocket::listen(const HostAddress& at, std::uint16_t port) noexcept {
    SocketAddress address(at, port);
    auto fd = create(address);
    if (!fd.ok()) return fd;
    set_option(fd->get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(fd->get(), address.get(), size_of(address)) != 0 || ::listen(fd->get(), backlog) != 0)
        return errno == EADDRINUSE ? Status(Code::Busy, "another process uses the port of the service", errno)
                                   : Status::from_errno(errno, "bind");
    return fd;
}

Result<ControlSocket> ControlSocket::accept(const Policy& policy, int listening) {
    Socket fd(UniqueFd(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
    if (!fd) {
        const bool none = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
        return none ? Status(Code::WouldBlock, "no connection is pending") : Status::from_errno(errno, "accept4");
    }
    prepare(fd.get());
    return ControlSocket(std::move(fd), policy, Role::Responder);
}

int ControlSocket::error() const noexcept {
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

HostAddress ControlSocket::peer_host() const noexcept {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (getpeername(fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    return host_of(reinterpret_cast<const sockaddr*>(&address));
}

Result<std::optional<control::Message>> ControlSocket::receive() noexcept {
    while (true) {
        const auto frame = reader_->next();
        if (!frame.ok()) return frame.status();
        if (frame.value()) {
            auto message = session_.open(*frame.value());
            if (!message.ok()) return message.status();
            return std::optional(message.value());
        }
        const auto space = reader_->space();
        const ssize_t count = recv(fd(), space.data(), space.size(), 0);
        if (count == 0) return Status(Code::Unreachable, "the peer has closed the socket");
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<control::Message>();
        if (count < 0) return Status(Code::Unreachable, "the peer cannot be reached", errno);
        reader_->add(static_cast<std::size_t>(count));
    }
}

bool ControlSocket::has_hung_up() const noexcept {
    pollfd end{.fd = fd(), .events = POLLRDHUP, .revents = 0};
    return poll(&end, 1, 0) == 1;
}

/// Messages are few and small, so that the socket has room for them.
Status ControlSocket::send(const control::Message& message) noexcept {
    const auto frame = session_.seal(message);
    if (!frame.ok()) return frame.status();
    const auto bytes = frame.value().bytes();
    const ssize_t sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(bytes.size())) return {};
    return {Code::Unreachable, "the peer cannot be reached", errno};
}

bool ControlSocket::discard(std::size_t& budget) noexcept {
    std::array<std::byte, 4096> waste;
    while (budget != 0) {
        const ssize_t count = recv(fd(), waste.data(), std::min(waste.size(), budget), 0);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count < 0 && errno == EAGAIN;
        budget -= static_cast<std::size_t>(count);
    }
    return false;
}

}  // namespace viaduct::ofi
