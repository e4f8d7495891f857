// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/free_service.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "tools/measure/error.hpp"
#include "tools/measure/target.hpp"

namespace viaduct::measure {

FreeService::FreeService() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    // The backend tcp listens on the port of a service, which this option permits. The system does not give out a port
    // twice, with or without it.
    const int on = 1;
    (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket_.get(), any, length) != 0 || ::getsockname(socket_.get(), any, &length) != 0)
        throw Error("no free service number");
    number_ = ntohs(address.sin_port);
}

Service FreeService::service() const noexcept { return service_of(number_); }

}  // namespace viaduct::measure
