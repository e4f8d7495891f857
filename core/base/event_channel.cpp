// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/event_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>

namespace viaduct {

int ReadableFlag::fd() noexcept {
    if (!fd_) fd_ = UniqueFd(eventfd(set_ ? 1 : 0, EFD_CLOEXEC));
    return fd_.get();
}

void ReadableFlag::set(bool wanted) noexcept {
    if (wanted == set_) return;
    set_ = wanted;
    if (!fd_) return;
    eventfd_t value = 1;
    if (wanted) {
        eventfd_write(fd_.get(), value);
        return;
    }
    // Reads only what set() wrote. If the program has read it, a read would block.
    pollfd look{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&look, 1, 0) == 1) eventfd_read(fd_.get(), &value);
}

Status await_readable(int fd) noexcept {
    const bool patient = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
    pollfd waiter{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiter, 1, patient ? -1 : 0);
    if (ready == 1) return {};
    return {Code::WouldBlock, "no event is pending", ready == 0 ? EAGAIN : errno};
}

bool await_readable(int fd, const Deadline& deadline) noexcept {
    pollfd waiter{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&waiter, 1, deadline.poll_timeout_ms()) == 1;
}

}  // namespace viaduct
