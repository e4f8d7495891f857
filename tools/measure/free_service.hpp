// SPDX-License-Identifier: BSD-3-Clause
// A service number for a server that is told to its clients, rather than known to them.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include "core/base/unique_fd.hpp"
#include "tools/measure/api.hpp"
#include "tools/measure/error.hpp"

namespace viaduct::measure {

/// A number that no other FreeService of this host has while this one lives: that of a TCP port, which the system gives
/// out once.
class FreeService {
public:
    /// Throws Error.
    FreeService() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        socklen_t length = sizeof address;
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        // The backend tcp listens on the port of a service, which this option permits. The system does not give out a
        // port twice, with or without it.
        const int on = 1;
        (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (::bind(socket_.get(), any, length) != 0 || ::getsockname(socket_.get(), any, &length) != 0)
            throw Error("no free service number");
        number_ = ntohs(address.sin_port);
    }

    std::uint16_t number() const noexcept { return number_; }
    Service service() const noexcept { return service_of(number_); }

private:
    UniqueFd socket_;
    std::uint16_t number_ = 0;
};

}  // namespace viaduct::measure
