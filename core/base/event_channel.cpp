// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/event_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include <cerrno>

#include "core/base/wait_until.hpp"
#include "core/base/waiting.hpp"

namespace viaduct {

int ReadableFlag::fd() noexcept {
    if (!fd_) fd_ = UniqueFd(eventfd(set_ ? 1 : 0, EFD_CLOEXEC));
    return fd_.get();
}

void ReadableFlag::set(bool wanted) noexcept {
    if (wanted == set_) return;
    set_ = wanted;
    if (!fd_) return;
    const CancellationHold hold;
    eventfd_t value = 1;
    if (wanted) {
        eventfd_write(fd_.get(), value);
        return;
    }
    // If the program has read what set() wrote, there is nothing to wait for.
    iovec into{.iov_base = &value, .iov_len = sizeof value};
    if (::preadv2(fd_.get(), &into, 1, -1, RWF_NOWAIT) >= 0 || errno == EAGAIN) return;
    pollfd look{.fd = fd_.get(), .events = POLLIN, .revents = 0};  // before Linux 5.8
    if (::poll(&look, 1, 0) == 1) eventfd_read(fd_.get(), &value);
}

bool blocks(int fd) noexcept { return (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0; }

namespace {

bool spin_until_readable(int fd, const Deadline& deadline, EventPoller& poller) {
    return poll_soon(deadline, poller, [fd] { return await_readable(fd, Deadline::now()); });
}

}  // namespace

Status await_readable(int fd) {
    switch (sleep_until_readable({&fd, 1}, blocks(fd) ? Deadline::never() : Deadline::now())) {
        case Woken::Ready: return {};
        case Woken::Late: return {Code::WouldBlock, "no event is pending", EAGAIN};
        case Woken::Signal: return {Code::WouldBlock, "a signal ended the wait", EINTR};
        case Woken::Closed: break;
    }
    return {Code::InvalidState, closed_while_waiting};
}

bool await_readable(int fd, const Deadline& deadline) {
    return sleep_until_readable({&fd, 1}, deadline) == Woken::Ready;
}

Status await_readable_soon(int fd, EventPoller& poller) {
    if (blocks(fd) && spin_until_readable(fd, Deadline::never(), poller)) return {};
    return await_readable(fd);
}

bool await_readable_soon(int fd, const Deadline& deadline, EventPoller& poller) {
    return spin_until_readable(fd, deadline, poller) || await_readable(fd, deadline);
}

}  // namespace viaduct
