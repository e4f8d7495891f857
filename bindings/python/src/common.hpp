// SPDX-License-Identifier: BSD-3-Clause
// What the extension modules share: how they raise, and how they wait.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

namespace viaduct::python {

namespace py = pybind11;

/// A time-out in seconds, as Python has them; none: for ever.
using Seconds = std::optional<double>;

/// Releases the GIL while it lives. Where the interpreter ends meanwhile, as it does under daemon threads, there is no
/// GIL to come back to, and Python would unwind the thread through code that cannot have that: the thread sleeps then
/// until the process has ended.
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

/// For functions that may block: they run without the GIL.
using WithoutGil = py::call_guard<GilReleased>;

/// The same time-out; one that is not a number is a ValueError. Needs the GIL.
inline Seconds checked(Seconds timeout) {
    if (timeout && std::isnan(*timeout)) throw py::value_error("the time-out is not a number");
    return timeout;
}

/// Throws an exception of Python. Needs the GIL.
[[noreturn]] inline void raise(const py::object& error) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw py::error_already_set();
}

/// Throws the exception for a failed call. `module` ("viaduct.vipl.errors") has the function that makes it:
/// `error_of(call, code)`. Needs the GIL.
[[noreturn]] inline void raise_error(const char* module, const char* call, long code) {
    raise(py::module_::import(module).attr("error_of")(call, code));
}

/// Waits so that Ctrl-C ends it: calls `attempt(std::chrono::milliseconds)` until it returns true, in slices of at most
/// 100 ms, without the GIL, and lets Python's signal handlers run in between. What a handler raises ends the wait; an
/// attempt that a signal cuts short does not. False: the time-out has passed. Needs the GIL. What `attempt` throws must
/// not be an exception of Python.
template <class Attempt>
bool wait_in_slices(Seconds timeout, Attempt attempt) {
    using Clock = std::chrono::steady_clock;
    using std::chrono::milliseconds;
    constexpr milliseconds slice{100};
    constexpr double longest = 1e9;  // seconds: longer ones do not fit the clock
    const auto start = Clock::now();
    const auto whole = std::chrono::duration<double>(std::clamp(checked(timeout).value_or(longest), 0.0, longest));
    while (true) {
        const auto left = std::chrono::ceil<milliseconds>(whole - (Clock::now() - start));
        bool done = false;
        {
            const GilReleased unlocked;
            done = attempt(std::clamp(left, milliseconds{0}, slice));
        }
        if (done) return true;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (Clock::now() - start >= whole) return false;
    }
}

}  // namespace viaduct::python
