// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/table.hpp"

#include <type_traits>

#include "api/support/failure.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::dat {
namespace {

/// Adds the report of its failures to a call.
template <CallName name, auto call>
struct Reporting;
template <CallName name, class First, class... Arguments, DAT_RETURN (*call)(First, Arguments...)>
struct Reporting<name, call> {
    static DAT_RETURN function(First first, Arguments... arguments) {
        const CancellationHold hold;
        failure::clear();
        const DAT_RETURN result = call(first, arguments...);
        if (result == success) [[likely]]
            return success;
        if constexpr (std::is_same_v<First, DAT_HANDLE>)
            return report_failure(name.text, first, result);
        else
            return report_failure(name.text, DAT_HANDLE_NULL, result);
    }
};

/// Adds the check of the handle to a call that trusts it. Such a call reports its failures itself.
template <CallName name, auto call, DAT_RETURN_SUBTYPE invalid>
struct Checking;
template <CallName name, class... Arguments, DAT_RETURN (*call)(DAT_HANDLE, Arguments...), DAT_RETURN_SUBTYPE invalid>
struct Checking<name, call, invalid> {
    static DAT_RETURN function(DAT_HANDLE handle, Arguments... arguments) {
        return HandleArena::instance().holds(handle) ? call(handle, arguments...)
                                                     : report_failure(name.text, handle, invalid_handle(invalid));
    }
};

}  // namespace

ProviderTables make_tables(const char* ia_name) noexcept {
    DAT_PROVIDER table{};
    table.device_name = ia_name;
    table.ia_open_func = Reporting<"dat_ia_openv", calls::ia_open>::function;
    table.ia_query_func = Reporting<"dat_ia_query", calls::ia_query>::function;
    table.ia_close_func = Reporting<"dat_ia_close", calls::ia_close>::function;
    table.set_consumer_context_func = Reporting<"dat_set_consumer_context", calls::set_consumer_context>::function;
    table.get_consumer_context_func = Reporting<"dat_get_consumer_context", calls::get_consumer_context>::function;
    table.get_handle_type_func = Reporting<"dat_get_handle_type", calls::get_handle_type>::function;
    table.cno_create_func = Reporting<"dat_cno_create", calls::cno_create>::function;
    table.cno_modify_agent_func = Reporting<"dat_cno_modify_agent", calls::cno_modify_agent>::function;
    table.cno_query_func = Reporting<"dat_cno_query", calls::cno_query>::function;
    table.cno_free_func = Reporting<"dat_cno_free", calls::cno_free>::function;
    table.cno_wait_func = Reporting<"dat_cno_wait", calls::cno_wait>::function;
    table.cr_query_func = Reporting<"dat_cr_query", calls::cr_query>::function;
    table.cr_accept_func = Reporting<"dat_cr_accept", calls::cr_accept>::function;
    table.cr_reject_func = Reporting<"dat_cr_reject", calls::cr_reject>::function;
    table.cr_handoff_func = Reporting<"dat_cr_handoff", calls::cr_handoff>::function;
    table.evd_create_func = Reporting<"dat_evd_create", calls::evd_create>::function;
    table.evd_query_func = Reporting<"dat_evd_query", calls::evd_query>::function;
    table.evd_modify_cno_func = Reporting<"dat_evd_modify_cno", calls::evd_modify_cno>::function;
    table.evd_enable_func = Reporting<"dat_evd_enable", calls::evd_enable>::function;
    table.evd_disable_func = Reporting<"dat_evd_disable", calls::evd_disable>::function;
    table.evd_wait_func = Reporting<"dat_evd_wait", calls::evd_wait>::function;
    table.evd_resize_func = Reporting<"dat_evd_resize", calls::evd_resize>::function;
    table.evd_post_se_func = Reporting<"dat_evd_post_se", calls::evd_post_se>::function;
    table.evd_dequeue_func = calls::evd_dequeue;
    table.evd_free_func = Reporting<"dat_evd_free", calls::evd_free>::function;
    table.ep_create_func = Reporting<"dat_ep_create", calls::ep_create>::function;
    table.ep_query_func = Reporting<"dat_ep_query", calls::ep_query>::function;
    table.ep_modify_func = Reporting<"dat_ep_modify", calls::ep_modify>::function;
    table.ep_connect_func = Reporting<"dat_ep_connect", calls::ep_connect>::function;
    table.ep_dup_connect_func = Reporting<"dat_ep_dup_connect", calls::ep_dup_connect>::function;
    table.ep_disconnect_func = Reporting<"dat_ep_disconnect", calls::ep_disconnect>::function;
    table.ep_post_send_func = calls::ep_post_send;
    table.ep_post_recv_func = calls::ep_post_recv;
    table.ep_post_rdma_read_func = calls::ep_post_rdma_read;
    table.ep_post_rdma_write_func = calls::ep_post_rdma_write;
    table.ep_get_status_func = Reporting<"dat_ep_get_status", calls::ep_get_status>::function;
    table.ep_free_func = Reporting<"dat_ep_free", calls::ep_free>::function;
    table.lmr_create_func = Reporting<"dat_lmr_create", calls::lmr_create>::function;
    table.lmr_query_func = Reporting<"dat_lmr_query", calls::lmr_query>::function;
    table.lmr_free_func = Reporting<"dat_lmr_free", calls::lmr_free>::function;
    table.rmr_create_func = Reporting<"dat_rmr_create", calls::rmr_create>::function;
    table.rmr_query_func = Reporting<"dat_rmr_query", calls::rmr_query>::function;
    table.rmr_bind_func = Reporting<"dat_rmr_bind", calls::rmr_bind>::function;
    table.rmr_free_func = Reporting<"dat_rmr_free", calls::rmr_free>::function;
    table.psp_create_func = Reporting<"dat_psp_create", calls::psp_create>::function;
    table.psp_query_func = Reporting<"dat_psp_query", calls::psp_query>::function;
    table.psp_free_func = Reporting<"dat_psp_free", calls::psp_free>::function;
    table.rsp_create_func = Reporting<"dat_rsp_create", calls::rsp_create>::function;
    table.rsp_query_func = Reporting<"dat_rsp_query", calls::rsp_query>::function;
    table.rsp_free_func = Reporting<"dat_rsp_free", calls::rsp_free>::function;
    table.pz_create_func = Reporting<"dat_pz_create", calls::pz_create>::function;
    table.pz_query_func = Reporting<"dat_pz_query", calls::pz_query>::function;
    table.pz_free_func = Reporting<"dat_pz_free", calls::pz_free>::function;
    table.psp_create_any_func = Reporting<"dat_psp_create_any", calls::psp_create_any>::function;
    table.ep_reset_func = Reporting<"dat_ep_reset", calls::ep_reset>::function;
    table.evd_set_unwaitable_func = Reporting<"dat_evd_set_unwaitable", calls::evd_set_unwaitable>::function;
    table.evd_clear_unwaitable_func = Reporting<"dat_evd_clear_unwaitable", calls::evd_clear_unwaitable>::function;
    table.lmr_sync_rdma_read_func = Reporting<"dat_lmr_sync_rdma_read", calls::lmr_sync_rdma_read>::function;
    table.lmr_sync_rdma_write_func = Reporting<"dat_lmr_sync_rdma_write", calls::lmr_sync_rdma_write>::function;
    table.ep_create_with_srq_func = Reporting<"dat_ep_create_with_srq", calls::ep_create_with_srq>::function;
    table.ep_recv_query_func = Reporting<"dat_ep_recv_query", calls::ep_recv_query>::function;
    table.ep_set_watermark_func = Reporting<"dat_ep_set_watermark", calls::ep_set_watermark>::function;
    table.srq_create_func = Reporting<"dat_srq_create", calls::srq_create>::function;
    table.srq_free_func = Reporting<"dat_srq_free", calls::srq_free>::function;
    table.srq_post_recv_func = calls::srq_post_recv;
    table.srq_query_func = Reporting<"dat_srq_query", calls::srq_query>::function;
    table.srq_resize_func = Reporting<"dat_srq_resize", calls::srq_resize>::function;
    table.srq_set_lw_func = Reporting<"dat_srq_set_lw", calls::srq_set_lw>::function;
    table.csp_create_func = Reporting<"dat_csp_create", calls::csp_create>::function;
    table.csp_query_func = Reporting<"dat_csp_query", calls::csp_query>::function;
    table.csp_free_func = Reporting<"dat_csp_free", calls::csp_free>::function;
    table.ep_common_connect_func = Reporting<"dat_ep_common_connect", calls::ep_common_connect>::function;
    table.rmr_create_for_ep_func = Reporting<"dat_rmr_create_for_ep", calls::rmr_create_for_ep>::function;
    table.ep_post_send_with_invalidate_func =
        Reporting<"dat_ep_post_send_with_invalidate", calls::ep_post_send_with_invalidate>::function;
    table.ep_post_rdma_read_to_rmr_func =
        Reporting<"dat_ep_post_rdma_read_to_rmr", calls::ep_post_rdma_read_to_rmr>::function;
    table.cno_fd_create_func = Reporting<"dat_cno_fd_create", calls::cno_fd_create>::function;
    table.cno_trigger_func = Reporting<"dat_cno_trigger", calls::cno_trigger>::function;
    table.ia_ha_related_func = calls::ia_ha_related;
    table.handle_extendedop_func = calls::extended_op;
    ProviderTables tables{.checking = table, .trusting = table};
    tables.checking.ep_post_send_func =
        Checking<"dat_ep_post_send", calls::ep_post_send, DAT_INVALID_HANDLE_EP>::function;
    tables.checking.ep_post_recv_func =
        Checking<"dat_ep_post_recv", calls::ep_post_recv, DAT_INVALID_HANDLE_EP>::function;
    tables.checking.ep_post_rdma_read_func =
        Checking<"dat_ep_post_rdma_read", calls::ep_post_rdma_read, DAT_INVALID_HANDLE_EP>::function;
    tables.checking.ep_post_rdma_write_func =
        Checking<"dat_ep_post_rdma_write", calls::ep_post_rdma_write, DAT_INVALID_HANDLE_EP>::function;
    tables.checking.srq_post_recv_func =
        Checking<"dat_srq_post_recv", calls::srq_post_recv, DAT_INVALID_HANDLE_SRQ>::function;
    tables.checking.evd_dequeue_func = Checking<"dat_evd_dequeue", calls::evd_dequeue, DAT_NO_SUBTYPE>::function;
    return tables;
}

}  // namespace viaduct::dat
