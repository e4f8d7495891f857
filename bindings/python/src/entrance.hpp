// SPDX-License-Identifier: BSD-3-Clause
// How threads of the libraries enter Python.
#pragma once

#include <atomic>

#include "occupancy.hpp"

namespace viaduct::python {

/// The threads in the library that are inside Python or wait for it must have left before Python exits.
class Entrance {
public:
    /// Admits the current thread, with the GIL, during its lifetime. False: Python has exited.
    class Visit {
    public:
        Visit() : inside_(!is_closed()) {
            if (inside_) state_ = PyGILState_Ensure();
        }
        ~Visit() {
            if (inside_) PyGILState_Release(state_);
        }
        Visit(const Visit&) = delete;
        Visit& operator=(const Visit&) = delete;
        explicit operator bool() const noexcept { return inside_; }

    private:
        const Callback callback_;
        const bool inside_;
        PyGILState_STATE state_{};
    };

    /// Stops admitting threads and waits until all have left. Requires the GIL and releases it meanwhile.
    static void close() {
        const GilReleased released;
        closed = true;
        Callback::await_none();
    }
    static bool is_closed() noexcept { return closed; }

private:
    static inline std::atomic<bool> closed{false};
};

}  // namespace viaduct::python
