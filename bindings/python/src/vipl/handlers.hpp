// SPDX-License-Identifier: BSD-3-Clause
// Functions of Python that the library calls from its own threads.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "raw.hpp"

namespace viaduct::python {

/// The threads that are inside Python or wait for it, though they are none of Python's: at its end they have to be out.
class Entrance {
public:
    /// Lets the calling thread in, with the GIL, while it lives; false: Python has ended.
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

    /// Lets nobody in any more and waits until all are out. Needs the GIL, and gives it up meanwhile.
    static void close();
    static bool is_closed();

private:
    static bool enter();
    static void leave();

    static std::mutex mutex;  // guards what follows
    static std::condition_variable changed;
    static int visitors;
    static bool closed;
};

/// A handler and the context it is called with. References to objects of Python: to be touched with the GIL alone.
struct Handler {
    py::object function;
    py::object context;
};

/// Who is still to be called. What the library cancels it does not tell: the handlers of an object are dropped when it
/// ends. Guarded by the GIL.
class Handlers {
public:
    /// Notes which NIC a VI or a completion queue is on.
    void add_owner(Handle owner, Handle nic) { nics_[owner] = nic; }

    /// Keeps a handler of a VI or a completion queue until it is taken; it is the context that the library gets.
    Handler* keep(Handle owner, Handler handler);
    Handler take(void* handler);

    void drop_owner(Handle owner);
    void drop_nic(Handle nic);

    /// The handler of a NIC's errors. It stays where it is as long as the NIC.
    Handler& errors_of(Handle nic) { return errors_[nic]; }

private:
    struct Kept {
        Handle owner;
        std::unique_ptr<Handler> handler;
    };

    std::unordered_map<void*, Kept> kept_;
    std::unordered_map<Handle, Handle> nics_;
    std::unordered_map<Handle, Handler> errors_;
};

/// The one table. It is never freed: at the end of the process its references have nobody to give them back to.
Handlers& handlers();

/// Calls a function of Python; what it raises goes to sys.unraisablehook. Needs the GIL.
template <class... Arguments>
void call_handler(const Handler& handler, Arguments... arguments) {
    try {
        handler.function(handler.context, arguments...);
    } catch (py::error_already_set& error) {
        error.discard_as_unraisable(handler.function);
    }
}

}  // namespace viaduct::python
