// SPDX-License-Identifier: BSD-3-Clause
// Configurations of peers, shared receive queues and connections.
#include "calls.hpp"

void viaduct::python::rpma::bind_configurations(py::module_& module) {
    bind_getter(module, "rpma_peer_cfg_new", &rpma_peer_cfg_new);
    bind_delete(module, "rpma_peer_cfg_delete", &rpma_peer_cfg_delete, "pcfg");
    bind_call(module, "rpma_peer_cfg_set_direct_write_to_pmem", &rpma_peer_cfg_set_direct_write_to_pmem, "pcfg",
              "supported");
    bind_getter(module, "rpma_peer_cfg_get_direct_write_to_pmem", &rpma_peer_cfg_get_direct_write_to_pmem, "pcfg");
    bind_getter(module, "rpma_peer_cfg_get_descriptor_size", &rpma_peer_cfg_get_descriptor_size, "pcfg");
    bind_descriptor(module, "rpma_peer_cfg_get_descriptor", &rpma_peer_cfg_get_descriptor_size,
                    &rpma_peer_cfg_get_descriptor, "pcfg");
    bind_from_descriptor(module, "rpma_peer_cfg_from_descriptor", &rpma_peer_cfg_from_descriptor);

    bind_getter(module, "rpma_srq_cfg_new", &rpma_srq_cfg_new);
    bind_delete(module, "rpma_srq_cfg_delete", &rpma_srq_cfg_delete, "cfg");
    bind_call(module, "rpma_srq_cfg_set_rq_size", &rpma_srq_cfg_set_rq_size, "cfg", "rq_size");
    bind_getter(module, "rpma_srq_cfg_get_rq_size", &rpma_srq_cfg_get_rq_size, "cfg");
    bind_call(module, "rpma_srq_cfg_set_rcq_size", &rpma_srq_cfg_set_rcq_size, "cfg", "rcq_size");
    bind_getter(module, "rpma_srq_cfg_get_rcq_size", &rpma_srq_cfg_get_rcq_size, "cfg");

    bind_getter(module, "rpma_conn_cfg_new", &rpma_conn_cfg_new);
    bind_delete(module, "rpma_conn_cfg_delete", &rpma_conn_cfg_delete, "cfg");
    bind_call(module, "rpma_conn_cfg_set_timeout", &rpma_conn_cfg_set_timeout, "cfg", "timeout_ms");
    bind_getter(module, "rpma_conn_cfg_get_timeout", &rpma_conn_cfg_get_timeout, "cfg");
    bind_call(module, "rpma_conn_cfg_set_cq_size", &rpma_conn_cfg_set_cq_size, "cfg", "cq_size");
    bind_getter(module, "rpma_conn_cfg_get_cq_size", &rpma_conn_cfg_get_cq_size, "cfg");
    bind_call(module, "rpma_conn_cfg_set_rcq_size", &rpma_conn_cfg_set_rcq_size, "cfg", "rcq_size");
    bind_getter(module, "rpma_conn_cfg_get_rcq_size", &rpma_conn_cfg_get_rcq_size, "cfg");
    bind_call(module, "rpma_conn_cfg_set_sq_size", &rpma_conn_cfg_set_sq_size, "cfg", "sq_size");
    bind_getter(module, "rpma_conn_cfg_get_sq_size", &rpma_conn_cfg_get_sq_size, "cfg");
    bind_call(module, "rpma_conn_cfg_set_rq_size", &rpma_conn_cfg_set_rq_size, "cfg", "rq_size");
    bind_getter(module, "rpma_conn_cfg_get_rq_size", &rpma_conn_cfg_get_rq_size, "cfg");
    bind_call(module, "rpma_conn_cfg_set_compl_channel", &rpma_conn_cfg_set_compl_channel, "cfg", "shared");
    bind_getter(module, "rpma_conn_cfg_get_compl_channel", &rpma_conn_cfg_get_compl_channel, "cfg");
    bind_getter(module, "rpma_conn_cfg_get_srq", &rpma_conn_cfg_get_srq, "cfg");
    bind_call(module, "rpma_conn_cfg_set_srq", &rpma_conn_cfg_set_srq, "cfg", "srq");
}
