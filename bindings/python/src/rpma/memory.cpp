// SPDX-License-Identifier: BSD-3-Clause
// Registered memory, and descriptors of remote memory.
#include "calls.hpp"

void viaduct::python::rpma::bind_memory(py::module_& module) {
    bind_output(module, "rpma_mr_reg", &rpma_mr_reg, "peer", "ptr", "size", "usage");
    bind_delete(module, "rpma_mr_dereg", &rpma_mr_dereg, "mr");
    bind_getter(module, "rpma_mr_get_descriptor_size", &rpma_mr_get_descriptor_size, "mr");
    bind_getter(module, "rpma_mr_get_ptr", &rpma_mr_get_ptr, "mr");
    bind_getter(module, "rpma_mr_get_size", &rpma_mr_get_size, "mr");
    bind_descriptor(module, "rpma_mr_get_descriptor", &rpma_mr_get_descriptor_size, &rpma_mr_get_descriptor, "mr");
    bind_call<takes_long>(module, "rpma_mr_advise", &rpma_mr_advise, "mr", "offset", "len", "advice", "flags");

    bind_from_descriptor(module, "rpma_mr_remote_from_descriptor", &rpma_mr_remote_from_descriptor);
    bind_delete(module, "rpma_mr_remote_delete", &rpma_mr_remote_delete, "mr");
    bind_getter(module, "rpma_mr_remote_get_size", &rpma_mr_remote_get_size, "mr");
    bind_getter(module, "rpma_mr_remote_get_flush_type", &rpma_mr_remote_get_flush_type, "mr");
}
