// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/settings.hpp"
#include "core/base/socket_address.hpp"

namespace viaduct::tcp {
namespace {

template <class Value>
void set_option(int fd, int level, int option, Value value) noexcept {
    (void)setsockopt(fd, level, option, &value, sizeof value);  // an option that the system lacks is not needed
}

/// Makes the system notice within the time of VIADUCT_TCP_TIMEOUT_MS that a host does not answer any more. It looks at
/// the time only when it sends a probe, so that the limit is one interval less. With the second probe, after 2 s, an
/// idle connection can end at the earliest. The socket is connected: the limit would end an attempt to connect, too,
/// for which each program has a time of its own.
void prepare(int fd) noexcept {
    static const int timeout_ms = static_cast<int>(number_setting(tcp_timeout_setting).value_or(10000));
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
    Socket fd(UniqueSocket::made_by(
        [&] { return socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }));
    if (!fd) return Status::from_errno(errno, "socket");
    return fd;
}

}  // namespace

Result<Socket> Socket::connect(const HostAddress& from, const HostAddress& to, std::uint16_t port) noexcept {
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
    if (::connect(fd->get(), target.get(), size_of(target)) != 0 && errno != EINPROGRESS) {
        const Status status = Status::from_errno(errno, "connect");
        if (status.sys_errno() == ECONNREFUSED) return Status(Code::NoListener, "nothing listens on the port", errno);
        // EINVAL: the host cannot be reached from the loopback address.
        if (status.code() == Code::NoResources) return status;
        return Status(Code::Unreachable, "there is no route to the host", status.sys_errno());
    }
    return fd;
}

Result<Socket> Socket::listen(const HostAddress& at, std::uint16_t port) noexcept {
    SocketAddress address(at, port);
    auto fd = create(address);
    if (!fd.ok()) return fd;
    set_option(fd->get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(fd->get(), address.get(), size_of(address)) != 0 || ::listen(fd->get(), Socket::backlog) != 0)
        return errno == EADDRINUSE ? Status(Code::Busy, "another process uses the port of the service", errno)
                                   : Status::from_errno(errno, "bind");
    return fd;
}

Result<Socket> Socket::accept(int listening) noexcept {
    Socket fd(
        UniqueSocket::made_by([&] { return accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); }));
    if (!fd) {
        const bool none = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
        return none ? Status(Code::WouldBlock, "no connection is pending") : Status::from_errno(errno, "accept4");
    }
    prepare(fd.get());
    return fd;
}

int Socket::finish_connecting() noexcept {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
    if (error == 0) prepare(get());
    return error;
}

namespace {

sockaddr_storage name_by(int (*function)(int, sockaddr*, socklen_t*) noexcept, int fd) noexcept {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    return function(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? address : sockaddr_storage{};
}

}  // namespace

bool Socket::is_connected_to_itself() noexcept {
    const sockaddr_storage own = name_by(&getsockname, get()), other = name_by(&getpeername, get());
    if (own.ss_family == AF_UNSPEC || std::memcmp(&own, &other, sizeof own) != 0) return false;
    set_option(get(), SOL_SOCKET, SO_LINGER, linger{.l_onoff = 1, .l_linger = 0});
    return true;
}

HostAddress Socket::peer_host() const noexcept {
    const sockaddr_storage address = name_by(&getpeername, get());
    return address.ss_family == AF_UNSPEC ? HostAddress{} : host_of(reinterpret_cast<const sockaddr*>(&address));
}

}  // namespace viaduct::tcp
