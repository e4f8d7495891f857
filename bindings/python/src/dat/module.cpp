// SPDX-License-Identifier: BSD-3-Clause
// viaduct._dat: every call of DAT 2.0 and of its InfiniBand extension under its C name.
#include <dat2/dat_registry.h>

#include "constants.hpp"
#include "dat.hpp"

PYBIND11_MODULE(_dat, module) {
    using namespace viaduct::python::dat;
    static const viaduct::python::Constant constants[] = {
#include "dat_constants.inc"
    };
    define(module, constants);
    add_adapters(module);
    add_memory(module);
    add_events(module);
    add_notification(module);
    add_endpoints(module);
    add_transfers(module);
    add_service_points(module);
    add_extensions(module);
}
