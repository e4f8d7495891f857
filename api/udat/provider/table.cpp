// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/table.hpp"

namespace viaduct::dat {
namespace {

/// Adds the check of the handle to a call that trusts it.
template <auto call, DAT_RETURN invalid>
struct Checking;
template <class... Arguments, DAT_RETURN (*call)(DAT_HANDLE, Arguments...), DAT_RETURN invalid>
struct Checking<call, invalid> {
    static DAT_RETURN function(DAT_HANDLE handle, Arguments... arguments) {
        return HandleArena::instance().holds(handle) ? call(handle, arguments...) : invalid;
    }
};

}  // namespace

ProviderTables make_tables(const char* ia_name) noexcept {
    DAT_PROVIDER table{};
    table.device_name = ia_name;
    table.ia_open_func = calls::ia_open;
    table.ia_query_func = calls::ia_query;
    table.ia_close_func = calls::ia_close;
    table.set_consumer_context_func = calls::set_consumer_context;
    table.get_consumer_context_func = calls::get_consumer_context;
    table.get_handle_type_func = calls::get_handle_type;
    table.cno_create_func = calls::cno_create;
    table.cno_modify_agent_func = calls::cno_modify_agent;
    table.cno_query_func = calls::cno_query;
    table.cno_free_func = calls::cno_free;
    table.cno_wait_func = calls::cno_wait;
    table.cr_query_func = calls::cr_query;
    table.cr_accept_func = calls::cr_accept;
    table.cr_reject_func = calls::cr_reject;
    table.cr_handoff_func = calls::cr_handoff;
    table.evd_create_func = calls::evd_create;
    table.evd_query_func = calls::evd_query;
    table.evd_modify_cno_func = calls::evd_modify_cno;
    table.evd_enable_func = calls::evd_enable;
    table.evd_disable_func = calls::evd_disable;
    table.evd_wait_func = calls::evd_wait;
    table.evd_resize_func = calls::evd_resize;
    table.evd_post_se_func = calls::evd_post_se;
    table.evd_dequeue_func = calls::evd_dequeue;
    table.evd_free_func = calls::evd_free;
    table.ep_create_func = calls::ep_create;
    table.ep_query_func = calls::ep_query;
    table.ep_modify_func = calls::ep_modify;
    table.ep_connect_func = calls::ep_connect;
    table.ep_dup_connect_func = calls::ep_dup_connect;
    table.ep_disconnect_func = calls::ep_disconnect;
    table.ep_post_send_func = calls::ep_post_send;
    table.ep_post_recv_func = calls::ep_post_recv;
    table.ep_post_rdma_read_func = calls::ep_post_rdma_read;
    table.ep_post_rdma_write_func = calls::ep_post_rdma_write;
    table.ep_get_status_func = calls::ep_get_status;
    table.ep_free_func = calls::ep_free;
    table.lmr_create_func = calls::lmr_create;
    table.lmr_query_func = calls::lmr_query;
    table.lmr_free_func = calls::lmr_free;
    table.rmr_create_func = calls::rmr_create;
    table.rmr_query_func = calls::rmr_query;
    table.rmr_bind_func = calls::rmr_bind;
    table.rmr_free_func = calls::rmr_free;
    table.psp_create_func = calls::psp_create;
    table.psp_query_func = calls::psp_query;
    table.psp_free_func = calls::psp_free;
    table.rsp_create_func = calls::rsp_create;
    table.rsp_query_func = calls::rsp_query;
    table.rsp_free_func = calls::rsp_free;
    table.pz_create_func = calls::pz_create;
    table.pz_query_func = calls::pz_query;
    table.pz_free_func = calls::pz_free;
    table.psp_create_any_func = calls::psp_create_any;
    table.ep_reset_func = calls::ep_reset;
    table.evd_set_unwaitable_func = calls::evd_set_unwaitable;
    table.evd_clear_unwaitable_func = calls::evd_clear_unwaitable;
    table.lmr_sync_rdma_read_func = calls::lmr_sync_rdma_read;
    table.lmr_sync_rdma_write_func = calls::lmr_sync_rdma_write;
    table.ep_create_with_srq_func = calls::ep_create_with_srq;
    table.ep_recv_query_func = calls::ep_recv_query;
    table.ep_set_watermark_func = calls::ep_set_watermark;
    table.srq_create_func = calls::srq_create;
    table.srq_free_func = calls::srq_free;
    table.srq_post_recv_func = calls::srq_post_recv;
    table.srq_query_func = calls::srq_query;
    table.srq_resize_func = calls::srq_resize;
    table.srq_set_lw_func = calls::srq_set_lw;
    table.csp_create_func = calls::csp_create;
    table.csp_query_func = calls::csp_query;
    table.csp_free_func = calls::csp_free;
    table.ep_common_connect_func = calls::ep_common_connect;
    table.rmr_create_for_ep_func = calls::rmr_create_for_ep;
    table.ep_post_send_with_invalidate_func = calls::ep_post_send_with_invalidate;
    table.ep_post_rdma_read_to_rmr_func = calls::ep_post_rdma_read_to_rmr;
    table.cno_fd_create_func = calls::cno_fd_create;
    table.cno_trigger_func = calls::cno_trigger;
    table.ia_ha_related_func = calls::ia_ha_related;
    table.handle_extendedop_func = calls::extended_op;
    ProviderTables tables{.checking = table, .trusting = table};
    constexpr DAT_RETURN invalid_ep = invalid_handle(DAT_INVALID_HANDLE_EP);
    tables.checking.ep_post_send_func = Checking<calls::ep_post_send, invalid_ep>::function;
    tables.checking.ep_post_recv_func = Checking<calls::ep_post_recv, invalid_ep>::function;
    tables.checking.ep_post_rdma_read_func = Checking<calls::ep_post_rdma_read, invalid_ep>::function;
    tables.checking.ep_post_rdma_write_func = Checking<calls::ep_post_rdma_write, invalid_ep>::function;
    tables.checking.srq_post_recv_func =
        Checking<calls::srq_post_recv, invalid_handle(DAT_INVALID_HANDLE_SRQ)>::function;
    tables.checking.evd_dequeue_func = Checking<calls::evd_dequeue, error(DAT_INVALID_HANDLE)>::function;
    return tables;
}

}  // namespace viaduct::dat
