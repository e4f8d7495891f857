// SPDX-License-Identifier: BSD-3-Clause
// viaduct._rpma: a thin layer over the functions and constants of librpma. viaduct/rpma implements the classes for
// users.
#include "calls.hpp"
#include "constants.hpp"

PYBIND11_MODULE(_rpma, module) {
    using namespace viaduct::python::rpma;
    static const viaduct::python::Constant constants[] = {
#include "rpma_constants.inc"
    };
    define(module, constants);
    module.def(
        "rpma_err_2str", [](Int ret) { return rpma_err_2str(ret); }, pybind11::arg("ret"));
    bind_output(module, "rpma_utils_get_ibv_context", &rpma_utils_get_ibv_context, "addr", "type");
    bind_output(module, "rpma_utils_ibv_context_is_odp_capable", &rpma_utils_ibv_context_is_odp_capable, "ibv_ctx");
    bind_output(module, "rpma_peer_new", &rpma_peer_new, "ibv_ctx");
    bind_delete(module, "rpma_peer_delete", &rpma_peer_delete, "peer");
    bind_configurations(module);
    bind_memory(module);
    bind_connections(module);
    bind_operations(module);
    bind_log(module);
}
