// SPDX-License-Identifier: BSD-3-Clause
// The calls that are forwarded to the provider of their first handle. The provider checks all other arguments.
#include "api/udat/registry/dispatch.hpp"

using namespace viaduct::dat;

namespace {

using Table = DAT_PROVIDER;

// The error subtype if the first handle is invalid. For the calls on an EVD, there is one subtype for all kinds of
// EVDs.
constexpr auto Pz = DAT_INVALID_HANDLE_PZ;
constexpr auto Lmr = DAT_INVALID_HANDLE_LMR;
constexpr auto Rmr = DAT_INVALID_HANDLE_RMR;
constexpr auto Ep = DAT_INVALID_HANDLE_EP;
constexpr auto Srq = DAT_INVALID_HANDLE_SRQ;
constexpr auto Psp = DAT_INVALID_HANDLE_PSP;
constexpr auto Rsp = DAT_INVALID_HANDLE_RSP;
constexpr auto Csp = DAT_INVALID_HANDLE_CSP;
constexpr auto Cr = DAT_INVALID_HANDLE_CR;
constexpr auto Evd = DAT_INVALID_HANDLE_EVD_REQUEST;
constexpr auto Cno = DAT_INVALID_HANDLE_CNO;

}  // namespace

// ---- Adapters and any object

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR* ia_attr,
                        DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR* provider_attr) {
    return call_ia(__func__, &Table::ia_query_func, ia, async_evd, ia_mask, ia_attr, provider_mask, provider_attr);
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context) {
    return call_any(__func__, &Table::set_consumer_context_func, handle, context);
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT* context) {
    return call_any(__func__, &Table::get_consumer_context_func, handle, context);
}

DAT_RETURN dat_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE* type) {
    return call_any(__func__, &Table::get_handle_type_func, handle, type);
}

// ---- Protection zones

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE* pz) {
    return call_ia(__func__, &Table::pz_create_func, ia, pz);
}

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* param) {
    return call<Pz>(__func__, &Table::pz_query_func, pz, mask, param);
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz) { return call<Pz>(__func__, &Table::pz_free_func, pz); }

// ---- Memory regions

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr) { return call<Lmr>(__func__, &Table::lmr_free_func, lmr); }

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* segments, DAT_VLEN num_segments) {
    return call_ia(__func__, &Table::lmr_sync_rdma_read_func, ia, segments, num_segments);
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* segments, DAT_VLEN num_segments) {
    return call_ia(__func__, &Table::lmr_sync_rdma_write_func, ia, segments, num_segments);
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
                          DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_LMR_HANDLE* lmr,
                          DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_length,
                          DAT_VADDR* registered_address) {
    return call_ia(__func__, &Table::lmr_create_func, ia, mem_type, region, length, pz, privileges, va_type, lmr,
                   lmr_context, rmr_context, registered_length, registered_address);
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param) {
    return call<Lmr>(__func__, &Table::lmr_query_func, lmr, mask, param);
}

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE* rmr) {
    return call<Pz>(__func__, &Table::rmr_create_func, pz, rmr);
}

DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE* rmr) {
    return call<Pz>(__func__, &Table::rmr_create_for_ep_func, pz, rmr);
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* param) {
    return call<Rmr>(__func__, &Table::rmr_query_func, rmr, mask, param);
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr) { return call<Rmr>(__func__, &Table::rmr_free_func, rmr); }

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET* lmr_triplet,
                        DAT_MEM_PRIV_FLAGS mem_priv, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
                        DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* rmr_context) {
    return call<Rmr>(__func__, &Table::rmr_bind_func, rmr, lmr, lmr_triplet, mem_priv, va_type, ep, cookie, flags,
                     rmr_context);
}

// ---- Endpoints

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE cookie,
                            DAT_COMPLETION_FLAGS flags) {
    return call<Ep>(__func__, &Table::ep_post_recv_func, ep, num_segments, local_iov, cookie, flags);
}

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE cookie,
                            DAT_COMPLETION_FLAGS flags) {
    return call<Ep>(__func__, &Table::ep_post_send_func, ep, num_segments, local_iov, cookie, flags);
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov,
                                  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
    return call<Ep>(__func__, &Table::ep_post_rdma_write_func, ep, num_segments, local_iov, cookie, remote, flags);
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov,
                                 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
    return call<Ep>(__func__, &Table::ep_post_rdma_read_func, ep, num_segments, local_iov, cookie, remote, flags);
}

DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET* local, DAT_DTO_COOKIE cookie,
                                        const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
    return call<Ep>(__func__, &Table::ep_post_rdma_read_to_rmr_func, ep, local, cookie, remote, flags);
}

DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov,
                                            DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
                                            DAT_RMR_CONTEXT rmr_context) {
    return call<Ep>(__func__, &Table::ep_post_send_with_invalidate_func, ep, num_segments, local_iov, cookie, flags,
                    invalidate, rmr_context);
}

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
                         DAT_EVD_HANDLE connect_evd, const DAT_EP_ATTR* attributes, DAT_EP_HANDLE* ep) {
    return call_ia(__func__, &Table::ep_create_func, ia, pz, recv_evd, request_evd, connect_evd, attributes, ep);
}

DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
                                  DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq,
                                  const DAT_EP_ATTR* attributes, DAT_EP_HANDLE* ep) {
    return call_ia(__func__, &Table::ep_create_with_srq_func, ia, pz, recv_evd, request_evd, connect_evd, srq,
                   attributes, ep);
}

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM* param) {
    return call<Ep>(__func__, &Table::ep_query_func, ep, mask, param);
}

DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* param) {
    return call<Ep>(__func__, &Table::ep_modify_func, ep, mask, param);
}

DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep, DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle, DAT_BOOLEAN* request_idle) {
    return call<Ep>(__func__, &Table::ep_get_status_func, ep, state, recv_idle, request_idle);
}

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep) { return call<Ep>(__func__, &Table::ep_reset_func, ep); }

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep) { return call<Ep>(__func__, &Table::ep_free_func, ep); }

DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep, DAT_COUNT* nbufs_allocated, DAT_COUNT* bufs_alloc_span) {
    return call<Ep>(__func__, &Table::ep_recv_query_func, ep, nbufs_allocated, bufs_alloc_span);
}

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep, DAT_COUNT soft_high_watermark, DAT_COUNT hard_high_watermark) {
    return call<Ep>(__func__, &Table::ep_set_watermark_func, ep, soft_high_watermark, hard_high_watermark);
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR remote_ia_address, DAT_CONN_QUAL remote_conn_qual,
                          DAT_TIMEOUT timeout, DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos,
                          DAT_CONNECT_FLAGS flags) {
    return call<Ep>(__func__, &Table::ep_connect_func, ep, remote_ia_address, remote_conn_qual, timeout,
                    private_data_size, private_data, qos, flags);
}

DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE connected_ep, DAT_TIMEOUT timeout,
                              DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos) {
    return call<Ep>(__func__, &Table::ep_dup_connect_func, ep, connected_ep, timeout, private_data_size, private_data,
                    qos);
}

DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR remote_ia_address, DAT_TIMEOUT timeout,
                                 DAT_COUNT private_data_size, const DAT_PVOID private_data) {
    return call<Ep>(__func__, &Table::ep_common_connect_func, ep, remote_ia_address, timeout, private_data_size,
                    private_data);
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags) {
    return call<Ep>(__func__, &Table::ep_disconnect_func, ep, flags);
}

// ---- Shared receive queues

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR* attributes, DAT_SRQ_HANDLE* srq) {
    return call_ia(__func__, &Table::srq_create_func, ia, pz, attributes, srq);
}

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM* param) {
    return call<Srq>(__func__, &Table::srq_query_func, srq, mask, param);
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT max_recv_dtos) {
    return call<Srq>(__func__, &Table::srq_resize_func, srq, max_recv_dtos);
}

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT low_watermark) {
    return call<Srq>(__func__, &Table::srq_set_lw_func, srq, low_watermark);
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov,
                             DAT_DTO_COOKIE cookie) {
    return call<Srq>(__func__, &Table::srq_post_recv_func, srq, num_segments, local_iov, cookie);
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq) { return call<Srq>(__func__, &Table::srq_free_func, srq); }

// ---- Service points

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
                          DAT_PSP_HANDLE* psp) {
    return call_ia(__func__, &Table::psp_create_func, ia, conn_qual, evd, flags, psp);
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL* conn_qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
                              DAT_PSP_HANDLE* psp) {
    return call_ia(__func__, &Table::psp_create_any_func, ia, conn_qual, evd, flags, psp);
}

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* param) {
    return call<Psp>(__func__, &Table::psp_query_func, psp, mask, param);
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp) { return call<Psp>(__func__, &Table::psp_free_func, psp); }

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
                          DAT_RSP_HANDLE* rsp) {
    return call_ia(__func__, &Table::rsp_create_func, ia, conn_qual, ep, evd, rsp);
}

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param) {
    return call<Rsp>(__func__, &Table::rsp_query_func, rsp, mask, param);
}

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp) { return call<Rsp>(__func__, &Table::rsp_free_func, rsp); }

DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia, DAT_COMM* comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd,
                          DAT_CSP_HANDLE* csp) {
    return call_ia(__func__, &Table::csp_create_func, ia, comm, address, evd, csp);
}

DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM* param) {
    return call<Csp>(__func__, &Table::csp_query_func, csp, mask, param);
}

DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp) { return call<Csp>(__func__, &Table::csp_free_func, csp); }

// ---- Connection requests

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM* param) {
    return call<Cr>(__func__, &Table::cr_query_func, cr, mask, param);
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT private_data_size,
                         const DAT_PVOID private_data) {
    return call<Cr>(__func__, &Table::cr_accept_func, cr, ep, private_data_size, private_data);
}

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT private_data_size, const DAT_PVOID private_data) {
    return call<Cr>(__func__, &Table::cr_reject_func, cr, private_data_size, private_data);
}

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL handoff) {
    return call<Cr>(__func__, &Table::cr_handoff_func, cr, handoff);
}

// ---- Event dispatchers

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM* param) {
    return call<Evd>(__func__, &Table::evd_query_func, evd, mask, param);
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT evd_min_qlen) {
    return call<Evd>(__func__, &Table::evd_resize_func, evd, evd_min_qlen);
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT* event) {
    return call<Evd>(__func__, &Table::evd_post_se_func, evd, event);
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT* event) {
    return call<Evd>(__func__, &Table::evd_dequeue_func, evd, event);
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd) { return call<Evd>(__func__, &Table::evd_free_func, evd); }

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia, DAT_COUNT evd_min_qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
                          DAT_EVD_HANDLE* evd) {
    return call_ia(__func__, &Table::evd_create_func, ia, evd_min_qlen, cno, flags, evd);
}

DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event,
                        DAT_COUNT* n_more_events) {
    return call<Evd>(__func__, &Table::evd_wait_func, evd, timeout, threshold, event, n_more_events);
}

DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd) { return call<Evd>(__func__, &Table::evd_enable_func, evd); }

DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd) { return call<Evd>(__func__, &Table::evd_disable_func, evd); }

DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno) {
    return call<Evd>(__func__, &Table::evd_modify_cno_func, evd, cno);
}

DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd) {
    return call<Evd>(__func__, &Table::evd_set_unwaitable_func, evd);
}

DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd) {
    return call<Evd>(__func__, &Table::evd_clear_unwaitable_func, evd);
}

// ---- Notification objects

DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno) {
    return call_ia(__func__, &Table::cno_create_func, ia, agent, cno);
}

DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent) {
    return call<Cno>(__func__, &Table::cno_modify_agent_func, cno, agent);
}

DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
    return call<Cno>(__func__, &Table::cno_query_func, cno, mask, param);
}

DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd) {
    return call<Cno>(__func__, &Table::cno_wait_func, cno, timeout, evd);
}

DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno) { return call<Cno>(__func__, &Table::cno_free_func, cno); }

DAT_RETURN dat_cno_fd_create(DAT_IA_HANDLE ia, DAT_FD* fd, DAT_CNO_HANDLE* cno) {
    return call_ia(__func__, &Table::cno_fd_create_func, ia, fd, cno);
}

DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE* evd) {
    return call<Cno>(__func__, &Table::cno_trigger_func, cno, evd);
}
