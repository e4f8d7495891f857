// SPDX-License-Identifier: BSD-3-Clause
// libibverbs and librdmacm, which are loaded where there are RDMA devices. Within viaduct::verbs, the names of their
// functions are those of pointers, which hide the functions; load_rdma_core() sets them. What is inline in the headers
// and calls functions that are not must not be used.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

// Macros that lead to such inline functions.
#undef ibv_query_port
#undef ibv_reg_mr

// clang-format off
#define VIADUCT_LIBIBVERBS(DO) \
    DO(ibv_ack_async_event) DO(ibv_ack_cq_events) DO(ibv_alloc_pd) DO(ibv_close_device) DO(ibv_create_comp_channel) \
    DO(ibv_create_cq) DO(ibv_create_qp) DO(ibv_create_srq) DO(ibv_dealloc_pd) DO(ibv_dereg_mr) \
    DO(ibv_destroy_comp_channel) DO(ibv_destroy_cq) DO(ibv_destroy_qp) DO(ibv_destroy_srq) DO(ibv_event_type_str) \
    DO(ibv_fork_init) DO(ibv_free_device_list) DO(ibv_get_async_event) DO(ibv_get_cq_event) DO(ibv_get_device_list) \
    DO(ibv_get_device_name) DO(ibv_modify_qp) DO(ibv_modify_srq) DO(ibv_open_device) DO(ibv_query_device) \
    DO(ibv_query_port) DO(ibv_query_qp) DO(ibv_query_srq) DO(ibv_reg_mr) DO(ibv_resize_cq) \
    DO(ibv_wc_status_str)
#define VIADUCT_LIBRDMACM(DO) \
    DO(rdma_accept) DO(rdma_ack_cm_event) DO(rdma_bind_addr) DO(rdma_connect) DO(rdma_create_event_channel) \
    DO(rdma_create_id) DO(rdma_destroy_event_channel) DO(rdma_destroy_id) DO(rdma_disconnect) DO(rdma_establish) \
    DO(rdma_event_str) DO(rdma_get_cm_event) DO(rdma_init_qp_attr) DO(rdma_listen) DO(rdma_migrate_id) \
    DO(rdma_notify) DO(rdma_reject) DO(rdma_resolve_addr) DO(rdma_resolve_route)
// clang-format on

namespace viaduct::verbs {

#define VIADUCT_POINTER(NAME) extern decltype(&::NAME) NAME;  // NOLINT(bugprone-macro-parentheses): it is declared
VIADUCT_LIBIBVERBS(VIADUCT_POINTER)
VIADUCT_LIBRDMACM(VIADUCT_POINTER)
#undef VIADUCT_POINTER

/// Loads the libraries unless they have been loaded. False if they are absent or lack a function; the reason has been
/// logged.
bool load_rdma_core() noexcept;

}  // namespace viaduct::verbs
