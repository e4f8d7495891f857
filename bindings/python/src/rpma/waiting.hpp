// SPDX-License-Identifier: BSD-3-Clause
// Calls of librpma that wait on a descriptor until there is something. They have no time-out; here they have.
#pragma once

#include <fcntl.h>
#include <poll.h>

#include "calls.hpp"

namespace viaduct::python::rpma {

/// The descriptor of an object. From now on the library never waits on it itself: where several threads take from it,
/// one of them may find nothing though it was readable.
template <class Object>
int fd_of(const char* name, int (*call)(const Object*, int*), Handle object) {
    const int fd = output_of<int>(
        name, [=](int* out) { return quick({.used = {object}}, [=] { return call(pointer<Object>(object), out); }); });
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    return fd;
}

/// Makes a call, and again whenever the descriptor is readable, until it returns something else than `nothing` or the
/// time-out has passed. It is also made every 100 ms, since a descriptor that another thread closes wakes nobody.
template <class Call>
int call_when_readable(int fd, int nothing, Seconds timeout, Call call) {
    using Clock = std::chrono::steady_clock;
    constexpr double slice = 0.1;
    const auto start = Clock::now();
    checked(timeout);
    while (true) {
        const int result = call();
        if (result != nothing) return result;
        const double passed = std::chrono::duration<double>(Clock::now() - start).count();
        if (timeout && passed >= *timeout) return result;
        wait_in_slices(timeout ? std::min(slice, *timeout - passed) : slice, [fd](std::chrono::milliseconds duration) {
            pollfd waiter{.fd = fd, .events = POLLIN, .revents = 0};
            return ::poll(&waiter, 1, static_cast<int>(duration.count())) > 0;
        });
    }
}

}  // namespace viaduct::python::rpma
