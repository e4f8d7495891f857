// SPDX-License-Identifier: BSD-3-Clause
// Python functions that the library calls from its own threads.
#pragma once

#include <memory>
#include <unordered_map>

#include "entrance.hpp"
#include "raw.hpp"

namespace viaduct::python {

/// A handler and its context. They are references to Python objects and must be used only with the GIL held.
struct Handler {
    py::object function;
    py::object context;
};

/// The handlers that are still to be called. The library does not report cancelled handlers, so the handlers of an
/// object are dropped when it is destroyed. Guarded by the GIL.
class Handlers {
public:
    /// Records the NIC of a VI or completion queue.
    void add_owner(Handle owner, Handle nic) { nics_[owner] = nic; }

    /// Keeps a handler of a VI or completion queue until it is taken. The library gets it as the context.
    Handler* keep(Handle owner, Handler handler);
    Handler take(void* handler);

    void drop_owner(Handle owner);
    void drop_nic(Handle nic);

    /// Returns the handler of a NIC's errors. It is not moved as long as the NIC exists.
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

/// Returns the only table. It is never freed, because its references cannot be released when the process exits.
Handlers& handlers();

/// Calls a Python function. An exception is reported through sys.unraisablehook. Requires the GIL.
template <class... Arguments>
void call_handler(const Handler& handler, Arguments... arguments) {
    try {
        handler.function(handler.context, arguments...);
    } catch (py::error_already_set& error) {
        error.discard_as_unraisable(handler.function);
    }
}

}  // namespace viaduct::python
