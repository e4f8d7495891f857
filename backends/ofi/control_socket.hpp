// SPDX-License-Identifier: BSD-3-Clause
// A TCP socket for control messages. It never blocks.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <optional>

#include "backends/ofi/control.hpp"
#include "backends/ofi/session.hpp"
#include "core/address.hpp"
#include "core/base/fork.hpp"
#include "core/base/unique_fd.hpp"
#include "core/status.hpp"

namespace viaduct::ofi {

/// Owns the descriptor of a socket, which forked children close.
class Socket {
public:
    Socket() noexcept = default;
    explicit Socket(UniqueFd fd) noexcept : fd_(std::move(fd)), in_children_(fd_.get()) {}
    Socket(Socket&&) noexcept = default;
    Socket& operator=(Socket&& other) noexcept {
        close();
        fd_ = std::move(other.fd_);
        in_children_ = std::move(other.in_children_);
        return *this;
    }
    ~Socket() { close(); }

    int get() const noexcept { return fd_.get(); }
    explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
    void close() noexcept {
        in_children_.reset();
        fd_.reset();
    }

private:
    UniqueFd fd_;
    ClosedInChildren in_children_;
};

class ControlSocket {
public:
    ControlSocket() noexcept = default;
    /// Starts to connect from an address of this host. The socket becomes writable when it is connected or has failed;
    /// see error(). The policy must outlive the socket. Unreachable: there is no route. NoListener: nothing listens.
    /// Throws std::bad_alloc.
    static Result<ControlSocket> connect(const Policy& policy, const HostAddress& from, const HostAddress& to,
                                         std::uint16_t port);

    /// Listens at an address of this host. Busy: the port is in use.
    static Result<Socket> listen(const HostAddress& at, std::uint16_t port) noexcept;

    /// Accepts a connection. WouldBlock: there is none. Throws std::bad_alloc.
    static Result<ControlSocket> accept(const Policy& policy, int listening);

    int fd() const noexcept { return fd_.get(); }
    explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
    void close() noexcept { fd_.close(); }

    /// Returns the error number of the attempt to connect; 0: it is connected.
    int error() const noexcept;

    HostAddress peer_host() const noexcept;

    /// Returns the next message, or nothing if none has arrived. Unreachable: the peer has closed the socket or is not
    /// reachable any more. InvalidParameter, Unsupported: the peer does not speak the protocol. PermissionDenied: the
    /// peer is not authentic, or does not accept this side.
    Result<std::optional<control::Message>> receive() noexcept;

    /// Reports whether the peer has closed the socket. Keeps what has arrived.
    bool has_hung_up() const noexcept;

    Status send(const control::Message& message) noexcept;

    /// Tells the peer that no more messages follow. The socket still receives.
    void finish_sending() noexcept { shutdown(fd(), SHUT_WR); }

    /// Discards what has arrived, and subtracts its size from the budget. Returns whether more may come: false if the
    /// peer has closed the socket or the budget is used up.
    bool discard(std::size_t& budget) noexcept;

private:
    ControlSocket(Socket fd, const Policy& policy, Role own)
        : fd_(std::move(fd)), reader_(std::make_unique<control::FrameReader>()), session_(policy, own) {}

    Socket fd_;
    std::unique_ptr<control::FrameReader> reader_;
    Session session_;
};

}  // namespace viaduct::ofi
