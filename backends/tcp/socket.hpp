// SPDX-License-Identifier: BSD-3-Clause
// TCP sockets, which never block.
#pragma once

#include <utility>

#include "core/base/fork.hpp"
#include "core/base/unique_fd.hpp"
#include "viaduct/address.hpp"
#include "viaduct/status.hpp"

namespace viaduct::tcp {

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

    /// Starts to connect from an address of this host. The socket becomes writable when it is connected or has failed;
    /// see error(). Unreachable: there is no route. NoListener: nothing listens.
    static Result<Socket> connect(const HostAddress& from, const HostAddress& to, std::uint16_t port) noexcept;

    /// Listens at an address of this host. At most so many may wait to be accepted. Busy: the port is in use.
    static constexpr int backlog = 1024;
    static Result<Socket> listen(const HostAddress& at, std::uint16_t port) noexcept;

    /// Accepts a connection. WouldBlock: there is none.
    static Result<Socket> accept(int listening) noexcept;

    int get() const noexcept { return fd_.get(); }
    explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
    void close() noexcept {
        in_children_.reset();
        fd_.reset();
    }

    /// Returns the error number of the attempt to connect; 0: it is connected.
    int error() const noexcept;

    HostAddress peer_host() const noexcept;

private:
    UniqueFd fd_;
    ClosedInChildren in_children_;
};

}  // namespace viaduct::tcp
