// SPDX-License-Identifier: BSD-3-Clause
#include "constants.hpp"

#include "raw.hpp"

void viaduct::python::define_constants(py::module_& module) {
    static const Constant constants[] = {
#include "vipl_constants.inc"
    };
    define(module, constants);
}
