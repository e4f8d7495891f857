// SPDX-License-Identifier: BSD-3-Clause
// Unix sockets in the abstract namespace.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace viaduct {

/// The address of a name, which is given without the leading NUL. Longer names are cut off.
class AbstractAddress {
public:
    explicit AbstractAddress(std::string_view name) noexcept {
        address_.sun_family = AF_UNIX;
        const std::size_t size = std::min(name.size(), sizeof address_.sun_path - 1);
        std::memcpy(address_.sun_path + 1, name.data(), size);
        size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
    }

    const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
    socklen_t size() const noexcept { return size_; }

private:
    sockaddr_un address_{};
    socklen_t size_ = 0;
};

/// The process at the other end of a connection, as the kernel reports it. Process 0: outside this PID namespace.
inline ucred credentials_of(int socket) noexcept {
    ucred credentials{.pid = 0, .uid = static_cast<uid_t>(-1), .gid = static_cast<gid_t>(-1)};
    socklen_t size = sizeof credentials;
    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
    return credentials;
}

}  // namespace viaduct
