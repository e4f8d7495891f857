// SPDX-License-Identifier: BSD-3-Clause
// What threads of the provider sleep on.
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <system_error>

namespace viaduct::dat {

/// Has an epoll(7) descriptor look whether another one is readable; it may do so already. Throws std::system_error.
inline void watch(int epoll, int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST)
        throw std::system_error(errno, std::generic_category());
}

}  // namespace viaduct::dat
