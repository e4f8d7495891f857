// SPDX-License-Identifier: BSD-3-Clause
#include "constants.hpp"

#include <dat2/dat_registry.h>

#include "dat.hpp"

void viaduct::python::dat::add_constants(py::module_& module) {
    static const Constant constants[] = {
#include "dat_constants.inc"
    };
    define(module, constants);
}
