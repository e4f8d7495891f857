// SPDX-License-Identifier: BSD-3-Clause
// viaduct._vipl: the calls, structures and values of vipl.h, thin; viaduct/vipl makes of them what users see.
#include <cmath>

#include "handlers.hpp"

namespace viaduct::python {

VIP_ULONG to_milliseconds(Seconds timeout) {
    if (!checked(timeout)) return VIP_INFINITE;
    constexpr double longest = 1e15;  // milliseconds: some thirty thousand years
    return static_cast<VIP_ULONG>(std::ceil(std::clamp(*timeout * 1000, 0.0, longest)));
}

}  // namespace viaduct::python

PYBIND11_MODULE(_vipl, module) {
    using namespace viaduct::python;
    define_constants(module);
    define_structures(module);
    define_objects(module);
    define_connections(module);
    define_transfers(module);
    define_queries(module);
    // What is called last at the end of Python has to come first: this module of the package closes what is left then.
    py::module_::import("viaduct._lifetime");
    py::module_::import("atexit").attr("register")(py::cpp_function(&Entrance::close));
}
