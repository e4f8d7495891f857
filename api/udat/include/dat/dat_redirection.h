/*
 * dat_redirection.h - the calls of <dat/dat.h> as macros and as types
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * These macros originally called the provider of the first argument directly, bypassing the registry. Here they are
 * the calls themselves, because providers implement DAT 2.0.
 */
#ifndef DAT1_DAT_REDIRECTION_H
#define DAT1_DAT_REDIRECTION_H 1

#include <dat/udat.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dat_provider DAT_PROVIDER; /* <dat/udat_redirection.h> */

#define DAT_IA_QUERY dat_ia_query
#define DAT_SET_CONSUMER_CONTEXT dat_set_consumer_context
#define DAT_GET_CONSUMER_CONTEXT dat_get_consumer_context
#define DAT_GET_HANDLE_TYPE dat_get_handle_type
#define DAT_CR_QUERY dat_cr_query
#define DAT_CR_ACCEPT dat_cr_accept
#define DAT_CR_REJECT dat_cr_reject
#define DAT_CR_HANDOFF dat_cr_handoff
#define DAT_EVD_QUERY dat_evd_query
#define DAT_EVD_RESIZE dat_evd_resize
#define DAT_EVD_POST_SE dat_evd_post_se
#define DAT_EVD_DEQUEUE dat_evd_dequeue
#define DAT_EVD_FREE dat_evd_free
#define DAT_EP_CREATE dat_ep_create
#define DAT_EP_CREATE_WITH_SRQ dat_ep_create_with_srq
#define DAT_EP_QUERY dat_ep_query
#define DAT_EP_MODIFY dat_ep_modify
#define DAT_EP_CONNECT dat_ep_connect
#define DAT_EP_DUP_CONNECT dat_ep_dup_connect
#define DAT_EP_DISCONNECT dat_ep_disconnect
#define DAT_EP_POST_SEND dat_ep_post_send
#define DAT_EP_POST_RECV dat_ep_post_recv
#define DAT_EP_POST_RDMA_READ dat_ep_post_rdma_read
#define DAT_EP_POST_RDMA_WRITE dat_ep_post_rdma_write
#define DAT_EP_GET_STATUS dat_ep_get_status
#define DAT_EP_FREE dat_ep_free
#define DAT_EP_RESET dat_ep_reset
#define DAT_EP_RECV_QUERY dat_ep_recv_query
#define DAT_EP_SET_WATERMARK dat_ep_set_watermark
#define DAT_LMR_QUERY dat_lmr_query
#define DAT_LMR_FREE dat_lmr_free
#define DAT_LMR_SYNC_RDMA_READ dat_lmr_sync_rdma_read
#define DAT_LMR_SYNC_RDMA_WRITE dat_lmr_sync_rdma_write
#define DAT_RMR_CREATE dat_rmr_create
#define DAT_RMR_QUERY dat_rmr_query
#define DAT_RMR_BIND dat_rmr_bind
#define DAT_RMR_FREE dat_rmr_free
#define DAT_PSP_CREATE dat_psp_create
#define DAT_PSP_CREATE_ANY dat_psp_create_any
#define DAT_PSP_QUERY dat_psp_query
#define DAT_PSP_FREE dat_psp_free
#define DAT_RSP_CREATE dat_rsp_create
#define DAT_RSP_QUERY dat_rsp_query
#define DAT_RSP_FREE dat_rsp_free
#define DAT_PZ_CREATE dat_pz_create
#define DAT_PZ_QUERY dat_pz_query
#define DAT_PZ_FREE dat_pz_free
#define DAT_SRQ_CREATE dat_srq_create
#define DAT_SRQ_SET_LW dat_srq_set_lw
#define DAT_SRQ_FREE dat_srq_free
#define DAT_SRQ_QUERY dat_srq_query
#define DAT_SRQ_RESIZE dat_srq_resize
#define DAT_SRQ_POST_RECV dat_srq_post_recv

typedef DAT_RETURN (*DAT_IA_OPEN_FUNC)(const DAT_NAME_PTR ia_name, DAT_COUNT async_evd_min_qlen,
                                       DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia);
typedef __typeof__(dat_ia_openv)* DAT_IA_OPENV_FUNC;
typedef __typeof__(dat_ia_close)* DAT_IA_CLOSE_FUNC;
typedef __typeof__(dat_ia_query)* DAT_IA_QUERY_FUNC;
typedef __typeof__(dat_set_consumer_context)* DAT_SET_CONSUMER_CONTEXT_FUNC;
typedef __typeof__(dat_get_consumer_context)* DAT_GET_CONSUMER_CONTEXT_FUNC;
typedef __typeof__(dat_get_handle_type)* DAT_GET_HANDLE_TYPE_FUNC;
typedef __typeof__(dat_cr_query)* DAT_CR_QUERY_FUNC;
typedef __typeof__(dat_cr_accept)* DAT_CR_ACCEPT_FUNC;
typedef __typeof__(dat_cr_reject)* DAT_CR_REJECT_FUNC;
typedef __typeof__(dat_cr_handoff)* DAT_CR_HANDOFF_FUNC;
typedef __typeof__(dat_evd_query)* DAT_EVD_QUERY_FUNC;
typedef __typeof__(dat_evd_resize)* DAT_EVD_RESIZE_FUNC;
typedef __typeof__(dat_evd_post_se)* DAT_EVD_POST_SE_FUNC;
typedef __typeof__(dat_evd_dequeue)* DAT_EVD_DEQUEUE_FUNC;
typedef __typeof__(dat_evd_free)* DAT_EVD_FREE_FUNC;
typedef __typeof__(dat_ep_create)* DAT_EP_CREATE_FUNC;
typedef __typeof__(dat_ep_create_with_srq)* DAT_EP_CREATE_WITH_SRQ_FUNC;
typedef __typeof__(dat_ep_query)* DAT_EP_QUERY_FUNC;
typedef __typeof__(dat_ep_modify)* DAT_EP_MODIFY_FUNC;
typedef __typeof__(dat_ep_connect)* DAT_EP_CONNECT_FUNC;
typedef __typeof__(dat_ep_dup_connect)* DAT_EP_DUP_CONNECT_FUNC;
typedef __typeof__(dat_ep_disconnect)* DAT_EP_DISCONNECT_FUNC;
typedef __typeof__(dat_ep_post_send)* DAT_EP_POST_SEND_FUNC;
typedef __typeof__(dat_ep_post_recv)* DAT_EP_POST_RECV_FUNC;
typedef __typeof__(dat_ep_post_rdma_read)* DAT_EP_POST_RDMA_READ_FUNC;
typedef __typeof__(dat_ep_post_rdma_write)* DAT_EP_POST_RDMA_WRITE_FUNC;
typedef __typeof__(dat_ep_get_status)* DAT_EP_GET_STATUS_FUNC;
typedef __typeof__(dat_ep_free)* DAT_EP_FREE_FUNC;
typedef __typeof__(dat_ep_reset)* DAT_EP_RESET_FUNC;
typedef __typeof__(dat_ep_recv_query)* DAT_EP_RECV_QUERY_FUNC;
typedef __typeof__(dat_ep_set_watermark)* DAT_EP_SET_WATERMARK_FUNC;
typedef __typeof__(dat_lmr_query)* DAT_LMR_QUERY_FUNC;
typedef __typeof__(dat_lmr_free)* DAT_LMR_FREE_FUNC;
typedef __typeof__(dat_lmr_sync_rdma_read)* DAT_LMR_SYNC_RDMA_READ_FUNC;
typedef __typeof__(dat_lmr_sync_rdma_write)* DAT_LMR_SYNC_RDMA_WRITE_FUNC;
typedef __typeof__(dat_rmr_create)* DAT_RMR_CREATE_FUNC;
typedef __typeof__(dat_rmr_query)* DAT_RMR_QUERY_FUNC;
typedef __typeof__(dat_rmr_bind)* DAT_RMR_BIND_FUNC;
typedef __typeof__(dat_rmr_free)* DAT_RMR_FREE_FUNC;
typedef __typeof__(dat_psp_create)* DAT_PSP_CREATE_FUNC;
typedef __typeof__(dat_psp_create_any)* DAT_PSP_CREATE_ANY_FUNC;
typedef __typeof__(dat_psp_query)* DAT_PSP_QUERY_FUNC;
typedef __typeof__(dat_psp_free)* DAT_PSP_FREE_FUNC;
typedef __typeof__(dat_rsp_create)* DAT_RSP_CREATE_FUNC;
typedef __typeof__(dat_rsp_query)* DAT_RSP_QUERY_FUNC;
typedef __typeof__(dat_rsp_free)* DAT_RSP_FREE_FUNC;
typedef __typeof__(dat_pz_create)* DAT_PZ_CREATE_FUNC;
typedef __typeof__(dat_pz_query)* DAT_PZ_QUERY_FUNC;
typedef __typeof__(dat_pz_free)* DAT_PZ_FREE_FUNC;
typedef __typeof__(dat_srq_create)* DAT_SRQ_CREATE_FUNC;
typedef __typeof__(dat_srq_set_lw)* DAT_SRQ_SET_LW_FUNC;
typedef __typeof__(dat_srq_free)* DAT_SRQ_FREE_FUNC;
typedef __typeof__(dat_srq_query)* DAT_SRQ_QUERY_FUNC;
typedef __typeof__(dat_srq_resize)* DAT_SRQ_RESIZE_FUNC;
typedef __typeof__(dat_srq_post_recv)* DAT_SRQ_POST_RECV_FUNC;

#ifdef __cplusplus
}
#endif

#endif
