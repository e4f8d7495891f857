// SPDX-License-Identifier: BSD-3-Clause
// viaduct._vipl: a thin layer over the calls, structures and constants of vipl.h. viaduct/vipl implements the classes
// for users.
#include "constants.hpp"
#include "handlers.hpp"

PYBIND11_MODULE(_vipl, module) {
    using namespace viaduct::python;
    static const Constant constants[] = {
#include "vipl_constants.inc"
    };
    define(module, constants);
    define_structures(module);
    define_objects(module);
    define_connections(module);
    define_transfers(module);
    define_queries(module);
    // Exit functions run in reverse order. This import registers the one that closes the remaining objects, which must
    // run last.
    py::module_::import("viaduct._lifetime");
    py::module_::import("atexit").attr("register")(py::cpp_function(&Entrance::close));
}
