// SPDX-License-Identifier: BSD-3-Clause
// Calls of librpma that wait on a descriptor. In C they have no timeout; here they do.
#pragma once

#include <fcntl.h>

#include "calls.hpp"

namespace viaduct::python::rpma {

/// Returns the descriptor of an object and makes it non-blocking, so that the library never waits on it: if several
/// threads take from it, one may find nothing although the descriptor was readable.
template <class Object>
int fd_of(const char* name, int (*call)(const Object*, int*), Handle object) {
    const int fd = output_of<int>(
        name, [=](int* out) { return quick({.used = {object}}, [=] { return call(pointer<Object>(object), out); }); });
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    return fd;
}

/// Makes a call, and repeats it whenever the descriptor is readable, until the result differs from `nothing` or the
/// timeout expires. The call is also repeated every 100 ms, because closing the descriptor in another thread does not
/// wake the wait.
template <class Call>
int call_when_readable(int fd, int nothing, Seconds timeout, Call call) {
    constexpr int slice_ms = 100;
    const Deadline end = deadline_after(timeout);
    while (true) {
        const int result = call();
        if (result != nothing || end.passed()) return result;
        wait_readable(fd, (end.infinite() ? slice_ms : std::min(end.poll_timeout_ms(), slice_ms)) / 1000.0);
    }
}

}  // namespace viaduct::python::rpma
