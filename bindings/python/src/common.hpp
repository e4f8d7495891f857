// SPDX-License-Identifier: BSD-3-Clause
// Shared by the extension modules: raising exceptions and waiting.
#pragma once

#include <poll.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "viaduct/deadline.hpp"

namespace viaduct::python {

namespace py = pybind11;

/// A timeout in seconds, as in Python. None: no timeout.
using Seconds = std::optional<double>;

/// Releases the GIL during its lifetime. If the interpreter exits meanwhile, which can happen in daemon threads, the
/// GIL cannot be reacquired, and Python would unwind the thread through code that does not support that. In this case
/// the thread sleeps until the process has exited.
class GilReleased {
public:
    GilReleased() noexcept : state_(PyEval_SaveThread()) {}
    ~GilReleased() {
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {
            while (true) ::pause();
        }
    }
    GilReleased(const GilReleased&) = delete;
    GilReleased& operator=(const GilReleased&) = delete;

private:
    PyThreadState* const state_;
};

/// Text for C as an argument, which exists as long as the argument. Raises ValueError if it contains a NUL, where C
/// would see its end.
struct Text {
    const char* c_str() const noexcept { return value; }
    char* data() const noexcept { return const_cast<char*>(value); }

    const char* value = "";
};

/// For functions that may block: they run without the GIL.
using WithoutGil = py::call_guard<GilReleased>;

/// Makes a call without the GIL. Requires the GIL.
template <class Call>
auto without_gil(Call call) {
    const GilReleased released;
    return call();
}

/// Over shared memory, a post copies its data. Copying more bytes than this takes longer than releasing the GIL.
constexpr std::size_t quick_length = 64UL * 1024;

/// Reports whether the pieces together are longer than that.
template <class Piece, class Length>
bool are_long(const std::vector<Piece>& pieces, Length Piece::*length) noexcept {
    std::uint64_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.*length;
    return bytes > quick_length;
}

/// Returns the timeout. Throws ValueError if it is not a number. Requires the GIL.
inline Seconds checked(Seconds timeout) {
    if (timeout && std::isnan(*timeout)) throw py::value_error("the timeout is not a number");
    return timeout;
}

/// Returns the end of a timeout. Throws ValueError if that is not a number. Requires the GIL.
inline Deadline deadline_after(Seconds timeout) {
    if (!checked(timeout)) return Deadline::never();
    return Deadline::after(std::chrono::duration<double>(std::max(*timeout, 0.0)));
}

/// Returns a timeout in a unit, rounded up; `forever` if there is none. Throws ValueError like deadline_after().
template <class Number>
Number units_of(Seconds timeout, double units_per_second, Number forever) {
    if (!checked(timeout)) return forever;
    const double longest = std::min(static_cast<double>(forever - 1), 1e15);  // milliseconds: thirty thousand years
    return static_cast<Number>(std::clamp(std::ceil(*timeout * units_per_second), 0.0, longest));
}

/// Throws the exception for a failed call. The function `error_of(call, what...)` of `module` ("viaduct.vipl.errors")
/// creates it. Requires the GIL.
template <class... What>
[[noreturn]] void raise_error(const char* module, const char* call, const What&... what) {
    const py::object error = py::module_::import(module).attr("error_of")(call, what...);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw py::error_already_set();
}

/// Waits so that Ctrl-C can interrupt it. Calls `attempt(std::chrono::milliseconds)` until it returns true, in slices
/// of at most 100 ms, without the GIL, and runs Python's signal handlers between the slices. An exception of a handler
/// ends the wait; a signal that merely interrupts an attempt does not. Returns false on timeout. Requires the GIL.
/// `attempt` must not throw Python exceptions.
template <class Attempt>
bool wait_in_slices(Seconds timeout, Attempt attempt) {
    constexpr int slice_ms = 100;
    const Deadline end = deadline_after(timeout);
    while (true) {
        const int left_ms = end.infinite() ? slice_ms : std::min(end.poll_timeout_ms(), slice_ms);
        if (without_gil([&] { return attempt(std::chrono::milliseconds{left_ms}); })) return true;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (end.passed()) return false;
    }
}

/// Waits like this until the descriptor is readable. Returns false on timeout.
inline bool wait_readable(int fd, Seconds timeout) {
    return wait_in_slices(timeout, [fd](std::chrono::milliseconds slice) {
        pollfd waiter{.fd = fd, .events = POLLIN, .revents = 0};
        return ::poll(&waiter, 1, static_cast<int>(slice.count())) > 0;
    });
}

}  // namespace viaduct::python

template <>
struct pybind11::detail::type_caster<viaduct::python::Text> {
    PYBIND11_TYPE_CASTER(viaduct::python::Text, const_name("str"));

    bool load(handle source, bool) {
        ssize_t length = 0;
        if (PyUnicode_Check(source.ptr())) {
            value.value = PyUnicode_AsUTF8AndSize(source.ptr(), &length);
        } else if (PyBytes_Check(source.ptr())) {
            value.value = PyBytes_AS_STRING(source.ptr());
            length = PyBytes_GET_SIZE(source.ptr());
        } else {
            return false;
        }
        if (value.value == nullptr) throw error_already_set();
        if (std::string_view(value.value, static_cast<std::size_t>(length)).find('\0') != std::string_view::npos)
            throw value_error("the text contains a NUL");
        return true;
    }
};
