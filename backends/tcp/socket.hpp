// SPDX-License-Identifier: BSD-3-Clause
// TCP sockets, which never block.
#pragma once

#include <utility>

#include "core/base/unique_socket.hpp"
#include "viaduct/address.hpp"
#include "viaduct/status.hpp"

namespace viaduct::tcp {

class Socket : public UniqueSocket {
public:
    Socket() noexcept = default;
    explicit Socket(UniqueSocket made) noexcept : UniqueSocket(std::move(made)) {}

    /// Starts to connect from an address of this host. The socket becomes writable when it is connected or has failed;
    /// see finish_connecting(). Unreachable: there is no route. NoListener: nothing listens.
    static Result<Socket> connect(const HostAddress& from, const HostAddress& to, std::uint16_t port) noexcept;

    /// Listens at an address of this host. At most so many may wait to be accepted. Busy: the port is in use.
    static constexpr int backlog = 1024;
    static Result<Socket> listen(const HostAddress& at, std::uint16_t port) noexcept;

    /// Accepts a connection. WouldBlock: there is none.
    static Result<Socket> accept(int listening) noexcept;

    /// Returns the error number of the attempt to connect, once the socket is writable; 0: it is connected.
    int finish_connecting() noexcept;

    /// Whether the system has connected the socket to itself, because it has chosen the port to which it connects as
    /// its own. Such a connection is reset when it is closed, so that the port is free for a listener.
    bool is_connected_to_itself() noexcept;

    HostAddress peer_host() const noexcept;
};

}  // namespace viaduct::tcp
