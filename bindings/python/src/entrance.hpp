// SPDX-License-Identifier: BSD-3-Clause
// How threads of the libraries enter Python.
#pragma once

#include <condition_variable>
#include <mutex>

#include "occupancy.hpp"

namespace viaduct::python {

/// Counts the threads in the library that are inside Python or wait for it. They must have left before Python exits.
class Entrance {
public:
    /// Admits the current thread, with the GIL, during its lifetime. False: Python has exited.
    class Visit {
    public:
        Visit();
        ~Visit();
        Visit(const Visit&) = delete;
        Visit& operator=(const Visit&) = delete;
        explicit operator bool() const noexcept { return inside_; }

    private:
        const Callback callback_;
        const bool inside_;
        PyGILState_STATE state_{};
    };

    /// Stops admitting threads and waits until all have left. Requires the GIL and releases it meanwhile.
    static void close();
    static bool is_closed();

private:
    static bool enter();
    static void leave();

    static std::mutex mutex;  // guards the members below
    static std::condition_variable changed;
    static int visitors;
    static bool closed;
};

}  // namespace viaduct::python
