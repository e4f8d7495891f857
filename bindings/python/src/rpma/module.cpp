// SPDX-License-Identifier: BSD-3-Clause
// viaduct._rpma: a thin layer over the functions and constants of librpma. viaduct/rpma implements the classes for
// users.
#include "calls.hpp"
#include "constants.hpp"

namespace viaduct::python::rpma {
namespace {

void bind_devices(py::module_& module) {
    module.def(
        "rpma_err_2str", [](Int ret) { return rpma_err_2str(ret); }, py::arg("ret"));
    module.def(
        "rpma_utils_get_ibv_context",
        [](const char* addr, Int type) {
            return output_of<ibv_context*>("rpma_utils_get_ibv_context", [=](ibv_context** context) {
                const GilReleased released;
                return rpma_utils_get_ibv_context(addr, static_cast<rpma_util_ibv_context_type>(type.value), context);
            });
        },
        py::arg("addr"), py::arg("type"));
    module.def(
        "rpma_utils_ibv_context_is_odp_capable",
        [](Handle context) {
            return output_of<int>("rpma_utils_ibv_context_is_odp_capable", [=](int* capable) {
                const GilReleased released;
                return rpma_utils_ibv_context_is_odp_capable(pointer<ibv_context>(context), capable);
            });
        },
        py::arg("ibv_ctx"));
    module.def(
        "rpma_peer_new",
        [](Handle context) {
            return output_of<rpma_peer*>("rpma_peer_new", [=](rpma_peer** peer) {
                const GilReleased released;
                return rpma_peer_new(pointer<ibv_context>(context), peer);
            });
        },
        py::arg("ibv_ctx"));
    bind_delete(module, "rpma_peer_delete", &rpma_peer_delete, "peer");
}

const Constant constants[] = {
#include "rpma_constants.inc"
};

}  // namespace

}  // namespace viaduct::python::rpma

PYBIND11_MODULE(_rpma, module) {
    using namespace viaduct::python::rpma;
    define(module, constants);
    bind_devices(module);
    bind_configurations(module);
    bind_memory(module);
    bind_connections(module);
    bind_operations(module);
    bind_log(module);
}
