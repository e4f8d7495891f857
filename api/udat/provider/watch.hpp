// SPDX-License-Identifier: BSD-3-Clause
// Waiting in the provider's threads.
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <system_error>

namespace viaduct::dat {

/// Adds a descriptor to an epoll(7) descriptor to wait until it is readable. It may already have been added. Throws
/// std::system_error.
inline void watch(int epoll, int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST)
        throw std::system_error(errno, std::generic_category());
}

}  // namespace viaduct::dat
