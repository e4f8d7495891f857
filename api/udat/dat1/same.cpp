// SPDX-License-Identifier: BSD-3-Clause
// The calls that are the same in both releases except for the numeric values of their results.
#include "pass.hpp"

using namespace viaduct::dat1;

DAT_RETURN dat_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context) {
    return pass(dat2::dat2_set_consumer_context, handle, context);
}
DAT_RETURN dat_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT* context) {
    return pass(dat2::dat2_get_consumer_context, handle, context);
}
DAT_RETURN dat_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE* type) {
    return pass(dat2::dat2_get_handle_type, handle, type);
}

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE* pz) { return pass(dat2::dat2_pz_create, ia, pz); }
DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* param) {
    return pass(dat2::dat2_pz_query, pz, mask, param);
}
DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz) { return pass(dat2::dat2_pz_free, pz); }

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE* rmr) { return pass(dat2::dat2_rmr_create, pz, rmr); }
DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr) { return pass(dat2::dat2_rmr_free, rmr); }

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR remote_address, DAT_CONN_QUAL remote_conn_qual,
                          DAT_TIMEOUT timeout, DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos,
                          DAT_CONNECT_FLAGS flags) {
    return pass(dat2::dat2_ep_connect, ep, remote_address, remote_conn_qual, timeout, private_data_size, private_data,
                qos, flags);
}
DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE connected_ep, DAT_TIMEOUT timeout,
                              DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos) {
    return pass(dat2::dat2_ep_dup_connect, ep, connected_ep, timeout, private_data_size, private_data, qos);
}
DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags) {
    return pass(dat2::dat2_ep_disconnect, ep, flags);
}
DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep) { return pass(dat2::dat2_ep_reset, ep); }
DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep) { return pass(dat2::dat2_ep_free, ep); }
DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep, DAT_COUNT* nbufs_allocated, DAT_COUNT* bufs_alloc_span) {
    return pass(dat2::dat2_ep_recv_query, ep, nbufs_allocated, bufs_alloc_span);
}
DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep, DAT_COUNT soft_high_watermark, DAT_COUNT hard_high_watermark) {
    return pass(dat2::dat2_ep_set_watermark, ep, soft_high_watermark, hard_high_watermark);
}

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR* attr, DAT_SRQ_HANDLE* srq) {
    return pass(dat2::dat2_srq_create, ia, pz, attr, srq);
}
DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT max_recv_dtos) {
    return pass(dat2::dat2_srq_resize, srq, max_recv_dtos);
}
DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT low_watermark) {
    return pass(dat2::dat2_srq_set_lw, srq, low_watermark);
}
DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq) { return pass(dat2::dat2_srq_free, srq); }

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
                          DAT_PSP_HANDLE* psp) {
    return pass(dat2::dat2_psp_create, ia, conn_qual, evd, flags, psp);
}
DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL* conn_qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
                              DAT_PSP_HANDLE* psp) {
    return pass(dat2::dat2_psp_create_any, ia, conn_qual, evd, flags, psp);
}
DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* param) {
    return pass(dat2::dat2_psp_query, psp, mask, param);
}
DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp) { return pass(dat2::dat2_psp_free, psp); }

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
                          DAT_RSP_HANDLE* rsp) {
    return pass(dat2::dat2_rsp_create, ia, conn_qual, ep, evd, rsp);
}
DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param) {
    return pass(dat2::dat2_rsp_query, rsp, mask, param);
}
DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp) { return pass(dat2::dat2_rsp_free, rsp); }

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM* param) {
    return pass(dat2::dat2_cr_query, cr, mask, param);
}
DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT private_data_size,
                         const DAT_PVOID private_data) {
    return pass(dat2::dat2_cr_accept, cr, ep, private_data_size, private_data);
}
DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL handoff) { return pass(dat2::dat2_cr_handoff, cr, handoff); }

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
                          DAT_EVD_HANDLE* evd) {
    return pass(dat2::dat2_evd_create, ia, min_qlen, cno, flags, evd);
}
DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM* param) {
    return pass(dat2::dat2_evd_query, evd, mask, param);
}
DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno) {
    return pass(dat2::dat2_evd_modify_cno, evd, cno);
}
DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd) { return pass(dat2::dat2_evd_enable, evd); }
DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd) { return pass(dat2::dat2_evd_disable, evd); }
DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd) { return pass(dat2::dat2_evd_set_unwaitable, evd); }
DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd) { return pass(dat2::dat2_evd_clear_unwaitable, evd); }
DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT min_qlen) { return pass(dat2::dat2_evd_resize, evd, min_qlen); }
DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd) { return pass(dat2::dat2_evd_free, evd); }

DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno) {
    return pass(dat2::dat2_cno_create, ia, agent, cno);
}
DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent) {
    return pass(dat2::dat2_cno_modify_agent, cno, agent);
}
DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd) {
    return pass(dat2::dat2_cno_wait, cno, timeout, evd);
}
DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno) { return pass(dat2::dat2_cno_free, cno); }
