/*
 * dat_ib_extensions.h - calls for the features of InfiniBand that are not part of DAT
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An adapter has the extension if its attribute extension_supported is DAT_EXTENSION_IB. Named attributes of the
 * provider describe the parts that it supports: each is one of the names below, with the value "TRUE". Calls of an
 * unsupported part return DAT_NOT_IMPLEMENTED. Viaduct supports immediate data, atomic operations and counters. It
 * does not support unreliable datagrams and collectives; their calls are declared so that programs which check for
 * them at run time compile.
 */
#ifndef DAT2_DAT_IB_EXTENSIONS_H
#define DAT2_DAT_IB_EXTENSIONS_H 1

#include <dat2/udat.h>

#define DAT_IB_EXTENSION_VERSION 209

/* ---- Named attributes -------------------------------------------------------------------------------------------- */

#define DAT_IB_ATTR_COUNTERS "DAT_COUNTERS"
#define DAT_IB_ATTR_FETCH_AND_ADD "DAT_IB_FETCH_AND_ADD"
#define DAT_IB_ATTR_CMP_AND_SWAP "DAT_IB_CMP_AND_SWAP"
#define DAT_IB_ATTR_IMMED_DATA "DAT_IB_IMMED_DATA"
#define DAT_IB_ATTR_UD "DAT_IB_UD"
#define DAT_IB_COLL_SET_CLOCK "DAT_COLL_SET_CLOCK"
#define DAT_IB_COLL_READ_CLOCK "DAT_COLL_READ_CLOCK"
#define DAT_IB_COLL_BROADCAST "DAT_COLL_BROADCAST"
#define DAT_IB_COLL_BARRIER "DAT_COLL_BARRIER"
#define DAT_IB_COLL_SCATTER "DAT_COLL_SCATTER"
#define DAT_IB_COLL_SCATTERV "DAT_COLL_SCATTERV"
#define DAT_IB_COLL_GATHER "DAT_COLL_GATHER"
#define DAT_IB_COLL_GATHERV "DAT_COLL_GATHERV"
#define DAT_IB_COLL_ALLGATHER "DAT_COLL_ALLGATHER"
#define DAT_IB_COLL_ALLGATHERV "DAT_COLL_ALLGATHERV"
#define DAT_IB_COLL_ALLTOALL "DAT_COLL_ALLTOALL"
#define DAT_IB_COLL_ALLTOALLV "DAT_COLL_ALLTOALLV"
#define DAT_IB_COLL_REDUCE "DAT_COLL_REDUCE"
#define DAT_IB_COLL_ALLREDUCE "DAT_COLL_ALLREDUCE"
#define DAT_IB_COLL_REDUCE_SCATTER "DAT_COLL_REDUCE_SCATTER"
#define DAT_IB_COLL_SCAN "DAT_COLL_SCAN"

/* ---- Operations and results -------------------------------------------------------------------------------------- */

/* The operations of dat_extension_op(). */
typedef enum dat_ib_op {
    DAT_IB_FETCH_AND_ADD_OP,
    DAT_IB_CMP_AND_SWAP_OP,
    DAT_IB_RDMA_WRITE_IMMED_OP,
    DAT_IB_UD_SEND_OP,
    DAT_IB_QUERY_COUNTERS_OP,
    DAT_IB_PRINT_COUNTERS_OP,
    DAT_IB_COLLECTIVE_CREATE_MEMBER_OP,
    DAT_IB_COLLECTIVE_FREE_MEMBER_OP,
    DAT_IB_COLLECTIVE_CREATE_GROUP_OP,
    DAT_IB_COLLECTIVE_FREE_GROUP_OP,
    DAT_IB_COLLECTIVE_SET_CLOCK_OP,
    DAT_IB_COLLECTIVE_READ_CLOCK_OP,
    DAT_IB_COLLECTIVE_SCATTER_OP,
    DAT_IB_COLLECTIVE_SCATTERV_OP,
    DAT_IB_COLLECTIVE_GATHER_OP,
    DAT_IB_COLLECTIVE_GATHERV_OP,
    DAT_IB_COLLECTIVE_ALLGATHER_OP,
    DAT_IB_COLLECTIVE_ALLGATHERV_OP,
    DAT_IB_COLLECTIVE_ALLTOALL_OP,
    DAT_IB_COLLECTIVE_ALLTOALLV_OP,
    DAT_IB_COLLECTIVE_REDUCE_OP,
    DAT_IB_COLLECTIVE_ALLREDUCE_OP,
    DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP,
    DAT_IB_COLLECTIVE_SCAN_OP,
    DAT_IB_COLLECTIVE_BROADCAST_OP,
    DAT_IB_COLLECTIVE_BARRIER_OP,
    DAT_IB_START_COUNTERS_OP,
    DAT_IB_STOP_COUNTERS_OP,
    DAT_IB_UD_CM_FREE_OP,
    DAT_IB_UD_AH_FREE_OP,
    DAT_IB_OPEN_QUERY_OP = DAT_OPEN_EXTENSION_BASE,
    DAT_IB_CLOSE_QUERY_OP = DAT_CLOSE_EXTENSION_BASE
} DAT_IB_OP;

/* Types of results in addition to those of <dat2/dat_error.h>. */
typedef enum dat_ib_return { DAT_IB_ERR = DAT_EXTENSION_BASE, DAT_IB_COLLECTIVE_ERR } DAT_IB_RETURN;

/* The operation of a DTO completion event. */
typedef enum dat_ib_dtos {
    DAT_IB_DTO_RDMA_WRITE_IMMED = DAT_DTO_EXTENSION_BASE,
    DAT_IB_DTO_RECV_IMMED,
    DAT_IB_DTO_FETCH_ADD,
    DAT_IB_DTO_CMP_SWAP,
    DAT_IB_DTO_RECV_MSG_IMMED,
    DAT_IB_DTO_SEND_UD,
    DAT_IB_DTO_RECV_UD,
    DAT_IB_DTO_RECV_UD_IMMED,
    DAT_IB_DTO_COLLECTIVES
} DAT_IB_DTOS;

typedef enum dat_ib_handle_type {
    DAT_IB_HANDLE_TYPE_EXT = DAT_HANDLE_TYPE_EXTENSION_BASE,
    DAT_IB_HANDLE_TYPE_COLLECTIVE
} DAT_IB_HANDLE_TYPE;

typedef enum dat_ib_evd_extension_flags {
    DAT_IB_EVD_EXTENSION_FLAG = DAT_EVD_EXTENSION_BASE
} DAT_IB_EVD_EXTENSION_FLAGS;

typedef enum dat_ib_service_type { DAT_IB_SERVICE_TYPE_UD = DAT_SERVICE_TYPE_EXTENSION_BASE } DAT_IB_SERVICE_TYPE;

/* Allows peers to use the region in atomic operations. */
typedef enum dat_ib_mem_priv_flags {
    DAT_IB_MEM_PRIV_REMOTE_ATOMIC = DAT_MEM_PRIV_EXTENSION_BASE
} DAT_IB_MEM_PRIV_FLAGS;

/* ---- Events ------------------------------------------------------------------------------------------------------ */

typedef enum dat_ib_event_number {
    DAT_IB_DTO_EVENT = DAT_IB_EXTENSION_RANGE_BASE,
    DAT_IB_UD_CONNECTION_REQUEST_EVENT,
    DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
    DAT_IB_UD_CONNECTION_REJECT_EVENT,
    DAT_IB_UD_CONNECTION_ERROR_EVENT,
    DAT_IB_COLLECTIVE_EVENT
} DAT_IB_EVENT_NUMBER;

typedef enum dat_ib_ext_type {
    DAT_IB_FETCH_AND_ADD,
    DAT_IB_CMP_AND_SWAP,
    DAT_IB_RDMA_WRITE_IMMED,
    DAT_IB_RDMA_WRITE_IMMED_DATA,
    DAT_IB_RECV_IMMED_DATA,
    DAT_IB_UD_CONNECT_REQUEST,
    DAT_IB_UD_REMOTE_AH,
    DAT_IB_UD_PASSIVE_REMOTE_AH,
    DAT_IB_UD_SEND,
    DAT_IB_UD_RECV,
    DAT_IB_UD_CONNECT_REJECT,
    DAT_IB_UD_CONNECT_ERROR,
    DAT_IB_COLLECTIVE_CREATE_STATUS,
    DAT_IB_COLLECTIVE_CREATE_DATA,
    DAT_IB_COLLECTIVE_CLOCK_SET_STATUS,
    DAT_IB_COLLECTIVE_SCATTER_STATUS,
    DAT_IB_COLLECTIVE_SCATTERV_STATUS,
    DAT_IB_COLLECTIVE_GATHER_STATUS,
    DAT_IB_COLLECTIVE_GATHERV_STATUS,
    DAT_IB_COLLECTIVE_ALLGATHER_STATUS,
    DAT_IB_COLLECTIVE_ALLGATHERV_STATUS,
    DAT_IB_COLLECTIVE_ALLTOALL_STATUS,
    DAT_IB_COLLECTIVE_ALLTOALLV_STATUS,
    DAT_IB_COLLECTIVE_REDUCE_STATUS,
    DAT_IB_COLLECTIVE_ALLREDUCE_STATUS,
    DAT_IB_COLLECTIVE_REDUCE_SCATTER_STATUS,
    DAT_IB_COLLECTIVE_SCAN_STATUS,
    DAT_IB_COLLECTIVE_BROADCAST_STATUS,
    DAT_IB_COLLECTIVE_BARRIER_STATUS
} DAT_IB_EXT_TYPE;

typedef enum dat_ib_status { DAT_OP_SUCCESS = DAT_SUCCESS, DAT_IB_OP_ERR, DAT_IB_COLL_COMP_ERR } DAT_IB_STATUS;

typedef DAT_HANDLE DAT_IB_COLLECTIVE_HANDLE;

typedef struct dat_ib_collective_event_data {
    DAT_HANDLE handle;
    DAT_CONTEXT context;
} DAT_IB_COLLECTIVE_EVENT_DATA;

/* The destination or the source of a datagram. */
typedef struct dat_ib_addr_handle {
    struct ibv_ah* ah;
    DAT_UINT32 qpn;
    DAT_SOCK_ADDR6 ia_addr;
} DAT_IB_ADDR_HANDLE;

typedef struct dat_ib_immed_data {
    DAT_UINT32 data;
} DAT_IB_IMMED_DATA;

/* The contents of event_extension_data in DAT_EVENT for events of this extension. */
typedef struct dat_ib_extension_event_data {
    DAT_IB_EXT_TYPE type;
    DAT_IB_STATUS status;
    union {
        DAT_IB_IMMED_DATA immed;
    } val;
    union {
        DAT_IB_ADDR_HANDLE remote_ah;
        DAT_IB_COLLECTIVE_EVENT_DATA coll;
    };
    DAT_CONTEXT context;
} DAT_IB_EXTENSION_EVENT_DATA;

/* ---- RDMA writes with immediate data, atomic operations on eight bytes ------------------------------------------- */

#define dat_ib_post_fetch_and_add(ep, add, local, cookie, remote, flags)                                         \
    dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_FETCH_AND_ADD_OP, (DAT_UINT64)(add), (DAT_LMR_TRIPLET*)(local), \
                     (cookie), (DAT_RMR_TRIPLET*)(remote), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_post_cmp_and_swap(ep, compare, swap, local, cookie, remote, flags)                            \
    dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_CMP_AND_SWAP_OP, (DAT_UINT64)(compare), (DAT_UINT64)(swap), \
                     (DAT_LMR_TRIPLET*)(local), (cookie), (DAT_RMR_TRIPLET*)(remote), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_post_rdma_write_immed(ep, size, local, cookie, remote, immediate, flags)                             \
    dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_RDMA_WRITE_IMMED_OP, (DAT_COUNT)(size), (DAT_LMR_TRIPLET*)(local), \
                     (cookie), (DAT_RMR_TRIPLET*)(remote), (DAT_UINT32)(immediate), (DAT_COMPLETION_FLAGS)(flags))

/* ---- Unreliable datagrams ---------------------------------------------------------------------------------------- */

#define dat_ib_post_recv_ud dat_ep_post_recv
#define dat_ib_post_send_ud(ep, segments, local, ah, cookie, flags)                                            \
    dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_UD_SEND_OP, (DAT_COUNT)(segments), (DAT_LMR_TRIPLET*)(local), \
                     (DAT_IB_ADDR_HANDLE*)(ah), (cookie), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_ud_cm_free(ep, cm) dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_UD_CM_FREE_OP, (cm))
#define dat_ib_ud_ah_free(ep, ah) dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_UD_AH_FREE_OP, (DAT_IB_ADDR_HANDLE*)(ah))

/* ---- Attributes of an adapter without opening it ----------------------------------------------------------------- */

#define dat_ib_open_query(name, ia, ia_mask, ia_attr, provider_mask, provider_attr)                                 \
    dat_extension_op((DAT_HANDLE)(NULL), DAT_IB_OPEN_QUERY_OP, (const DAT_NAME_PTR)(name), (DAT_HANDLE*)(ia),       \
                     (DAT_IA_ATTR_MASK)(ia_mask), (DAT_IA_ATTR*)(ia_attr), (DAT_PROVIDER_ATTR_MASK)(provider_mask), \
                     (DAT_PROVIDER_ATTR*)(provider_attr))
#define dat_ib_close_query(ia) dat_extension_op((DAT_HANDLE)(ia), DAT_IB_CLOSE_QUERY_OP)

/* ---- Counters ---------------------------------------------------------------------------------------------------- */

#define dat_ib_query_counters(handle, counter, counters, reset)                                               \
    dat_extension_op((DAT_HANDLE)(handle), DAT_IB_QUERY_COUNTERS_OP, (int)(counter), (DAT_UINT64*)(counters), \
                     (int)(reset))
#define dat_ib_print_counters(handle, counter, reset) \
    dat_extension_op((DAT_HANDLE)(handle), DAT_IB_PRINT_COUNTERS_OP, (int)(counter), (int)(reset))
#define dat_ib_start_counter(handle, type) \
    dat_extension_op((DAT_HANDLE)(handle), DAT_IB_START_COUNTERS_OP, (DAT_IA_COUNTER_TYPE)(type))
#define dat_ib_stop_counter(handle, type) \
    dat_extension_op((DAT_HANDLE)(handle), DAT_IB_STOP_COUNTERS_OP, (DAT_IA_COUNTER_TYPE)(type))

/* Older names of the same attributes. */
#define DAT_ATTR_COUNTERS DAT_IB_ATTR_COUNTERS
#define DAT_QUERY_COUNTERS_OP DAT_IB_QUERY_COUNTERS_OP
#define DAT_PRINT_COUNTERS_OP DAT_IB_PRINT_COUNTERS_OP
#define dat_query_counters dat_ib_query_counters
#define dat_print_counters dat_ib_print_counters

/* The counters of an adapter, an endpoint and an EVD. The last value of each enumeration means all counters. */
typedef enum dat_ia_counters {
    DCNT_IA_PZ_CREATE,
    DCNT_IA_PZ_FREE,
    DCNT_IA_LMR_CREATE,
    DCNT_IA_LMR_FREE,
    DCNT_IA_RMR_CREATE,
    DCNT_IA_RMR_FREE,
    DCNT_IA_PSP_CREATE,
    DCNT_IA_PSP_CREATE_ANY,
    DCNT_IA_PSP_FREE,
    DCNT_IA_RSP_CREATE,
    DCNT_IA_RSP_FREE,
    DCNT_IA_EVD_CREATE,
    DCNT_IA_EVD_FREE,
    DCNT_IA_EP_CREATE,
    DCNT_IA_EP_FREE,
    DCNT_IA_SRQ_CREATE,
    DCNT_IA_SRQ_FREE,
    DCNT_IA_SP_CR,
    DCNT_IA_SP_CR_ACCEPTED,
    DCNT_IA_SP_CR_REJECTED,
    DCNT_IA_MEM_ALLOC,
    DCNT_IA_MEM_ALLOC_DATA,
    DCNT_IA_MEM_FREE,
    DCNT_IA_ASYNC_ERROR,
    DCNT_IA_ASYNC_QP_ERROR,
    DCNT_IA_ASYNC_CQ_ERROR,
    DCNT_IA_CM_LISTEN,
    DCNT_IA_CM_REQ_TX,
    DCNT_IA_CM_REQ_RX,
    DCNT_IA_CM_REP_TX,
    DCNT_IA_CM_REP_RX,
    DCNT_IA_CM_RTU_TX,
    DCNT_IA_CM_RTU_RX,
    DCNT_IA_CM_USER_REJ_TX,
    DCNT_IA_CM_USER_REJ_RX,
    DCNT_IA_CM_ACTIVE_EST,
    DCNT_IA_CM_PASSIVE_EST,
    DCNT_IA_CM_AH_REQ_TX,
    DCNT_IA_CM_AH_REQ_RX,
    DCNT_IA_CM_AH_RESOLVED,
    DCNT_IA_CM_DREQ_TX,
    DCNT_IA_CM_DREQ_RX,
    DCNT_IA_CM_DREP_TX,
    DCNT_IA_CM_DREP_RX,
    DCNT_IA_CM_MRA_TX,
    DCNT_IA_CM_MRA_RX,
    DCNT_IA_CM_REQ_FULLQ_POLL,
    DCNT_IA_CM_ERR,
    DCNT_IA_CM_ERR_REQ_FULLQ,
    DCNT_IA_CM_ERR_REQ_DUP,
    DCNT_IA_CM_ERR_REQ_RETRY,
    DCNT_IA_CM_ERR_REP_DUP,
    DCNT_IA_CM_ERR_REP_RETRY,
    DCNT_IA_CM_ERR_RTU_DUP,
    DCNT_IA_CM_ERR_RTU_RETRY,
    DCNT_IA_CM_ERR_REFUSED,
    DCNT_IA_CM_ERR_RESET,
    DCNT_IA_CM_ERR_TIMEOUT,
    DCNT_IA_CM_ERR_REJ_TX,
    DCNT_IA_CM_ERR_REJ_RX,
    DCNT_IA_CM_ERR_DREQ_DUP,
    DCNT_IA_CM_ERR_DREQ_RETRY,
    DCNT_IA_CM_ERR_DREP_DUP,
    DCNT_IA_CM_ERR_DREP_RETRY,
    DCNT_IA_CM_ERR_MRA_DUP,
    DCNT_IA_CM_ERR_MRA_RETRY,
    DCNT_IA_CM_ERR_UNEXPECTED,
    DCNT_IA_LNK_ERR_RCV,
    DCNT_IA_LNK_ERR_RCV_REM_PHYS,
    DCNT_IA_LNK_ERR_RCV_CONSTRAINT,
    DCNT_IA_LNK_ERR_XMT_DISCARDS,
    DCNT_IA_LNK_ERR_XMT_CONTRAINT,
    DCNT_IA_LNK_ERR_INTEGRITY,
    DCNT_IA_LNK_ERR_EXC_BUF_OVERRUN,
    DCNT_IA_LNK_WARN_RCV_SW_RELAY,
    DCNT_IA_LNK_WARN_XMT_WAIT,
    DCNT_IA_DIAG_ERR_RQ_RAE,
    DCNT_IA_DIAG_ERR_RQ_OOS,
    DCNT_IA_DIAG_ERR_RQ_RIRE,
    DCNT_IA_DIAG_ERR_RQ_UDSDPRD,
    DCNT_IA_DIAG_ERR_SQ_RAE,
    DCNT_IA_DIAG_ERR_SQ_OOS,
    DCNT_IA_DIAG_ERR_SQ_RIRE,
    DCNT_IA_DIAG_ERR_SQ_RREE,
    DCNT_IA_DIAG_ERR_SQ_TREE,
    DCNT_IA_ALL_COUNTERS
} DAT_IA_COUNTERS;

typedef enum dat_ep_counters {
    DCNT_EP_CONNECT,
    DCNT_EP_DISCONNECT,
    DCNT_EP_POST_SEND,
    DCNT_EP_POST_SEND_DATA,
    DCNT_EP_POST_SEND_UD,
    DCNT_EP_POST_SEND_UD_DATA,
    DCNT_EP_POST_RECV,
    DCNT_EP_POST_RECV_DATA,
    DCNT_EP_POST_WRITE,
    DCNT_EP_POST_WRITE_DATA,
    DCNT_EP_POST_WRITE_IMM,
    DCNT_EP_POST_WRITE_IMM_DATA,
    DCNT_EP_POST_READ,
    DCNT_EP_POST_READ_DATA,
    DCNT_EP_POST_CMP_SWAP,
    DCNT_EP_POST_FETCH_ADD,
    DCNT_EP_RECV,
    DCNT_EP_RECV_DATA,
    DCNT_EP_RECV_UD,
    DCNT_EP_RECV_UD_DATA,
    DCNT_EP_RECV_IMM,
    DCNT_EP_RECV_IMM_DATA,
    DCNT_EP_RECV_RDMA_IMM,
    DCNT_EP_RECV_RDMA_IMM_DATA,
    DCNT_EP_ALL_COUNTERS
} DAT_EP_COUNTERS;

typedef enum dat_evd_counters {
    DCNT_EVD_WAIT,
    DCNT_EVD_WAIT_BLOCKED,
    DCNT_EVD_WAIT_NOTIFY,
    DCNT_EVD_DEQUEUE,
    DCNT_EVD_DEQUEUE_FOUND,
    DCNT_EVD_DEQUEUE_NOT_FOUND,
    DCNT_EVD_DEQUEUE_POLL,
    DCNT_EVD_DEQUEUE_POLL_FOUND,
    DCNT_EVD_CONN_CALLBACK,
    DCNT_EVD_DTO_CALLBACK,
    DCNT_EVD_ALL_COUNTERS
} DAT_EVD_COUNTERS;

/* The counters of an adapter that can be started and stopped. */
typedef enum dat_ia_counter_type { DCNT_IA_CM, DCNT_IA_LNK, DCNT_IA_DIAG } DAT_IA_COUNTER_TYPE;

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

typedef void* DAT_IB_COLLECTIVE_MEMBER;
typedef unsigned int DAT_IB_COLLECTIVE_RANK;
typedef unsigned int DAT_IB_COLLECTIVE_ID;

typedef struct dat_ib_collective_group {
    int local_size;
    int local_rank;
    int* local_ranks;
    int external_size;
    int external_rank;
    int* external_ranks;
    int* intranode_table;
    int* internode_table;
    int is_comm_world;
} DAT_IB_COLLECTIVE_GROUP;

typedef enum dat_ib_collective_data_type {
    DAT_IB_COLLECTIVE_TYPE_INT8,
    DAT_IB_COLLECTIVE_TYPE_UINT8,
    DAT_IB_COLLECTIVE_TYPE_INT16,
    DAT_IB_COLLECTIVE_TYPE_UINT16,
    DAT_IB_COLLECTIVE_TYPE_INT32,
    DAT_IB_COLLECTIVE_TYPE_UINT32,
    DAT_IB_COLLECTIVE_TYPE_INT64,
    DAT_IB_COLLECTIVE_TYPE_UINT64,
    DAT_IB_COLLECTIVE_TYPE_FLOAT,
    DAT_IB_COLLECTIVE_TYPE_DOUBLE,
    DAT_IB_COLLECTIVE_TYPE_LONG_DOUBLE,
    DAT_IB_COLLECTIVE_TYPE_SHORT_INT,
    DAT_IB_COLLECTIVE_TYPE_2INT,
    DAT_IB_COLLECTIVE_TYPE_FLOAT_INT,
    DAT_IB_COLLECTIVE_TYPE_LONG_INT,
    DAT_IB_COLLECTIVE_TYPE_DOUBLE_INT
} DAT_IB_COLLECTIVE_DATA_TYPE;

typedef enum dat_ib_collective_reduce_data_op {
    DAT_IB_COLLECTIVE_REDUCE_OP_MAX,
    DAT_IB_COLLECTIVE_REDUCE_OP_MIN,
    DAT_IB_COLLECTIVE_REDUCE_OP_SUM,
    DAT_IB_COLLECTIVE_REDUCE_OP_PROD,
    DAT_IB_COLLECTIVE_REDUCE_OP_LAND,
    DAT_IB_COLLECTIVE_REDUCE_OP_BAND,
    DAT_IB_COLLECTIVE_REDUCE_OP_LOR,
    DAT_IB_COLLECTIVE_REDUCE_OP_BOR,
    DAT_IB_COLLECTIVE_REDUCE_OP_LXOR,
    DAT_IB_COLLECTIVE_REDUCE_OP_BXOR,
    DAT_IB_COLLECTIVE_REDUCE_OP_MAXLOC,
    DAT_IB_COLLECTIVE_REDUCE_OP_MINLOC
} DAT_IB_COLLECTIVE_REDUCE_DATA_OP;

#define dat_ib_collective_create_member(ia, progress_func, member, member_size)                       \
    dat_extension_op((DAT_IA_HANDLE)(ia), DAT_IB_COLLECTIVE_CREATE_MEMBER_OP, (void*)(progress_func), \
                     (DAT_IB_COLLECTIVE_MEMBER*)(member), (DAT_UINT32*)(member_size))
#define dat_ib_collective_free_member(ia, member) \
    dat_extension_op((DAT_IA_HANDLE)(ia), DAT_IB_COLLECTIVE_FREE_MEMBER_OP, (DAT_IB_COLLECTIVE_MEMBER)(member))
#define dat_ib_collective_create_group(members, group_size, self, group_id, group_info, evd, pz, context)            \
    dat_extension_op((DAT_EVD_HANDLE)(evd), DAT_IB_COLLECTIVE_CREATE_GROUP_OP, (DAT_IB_COLLECTIVE_MEMBER*)(members), \
                     (DAT_COUNT)(group_size), (DAT_IB_COLLECTIVE_RANK)(self), (DAT_IB_COLLECTIVE_ID)(group_id),      \
                     (DAT_IB_COLLECTIVE_GROUP*)(group_info), (DAT_PZ_HANDLE)(pz), (context))
#define dat_ib_collective_free_group(handle) \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_FREE_GROUP_OP)
#define dat_ib_collective_set_clock(handle, clock_value, context)                                                   \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_SET_CLOCK_OP, (DAT_UINT64)(clock_value), \
                     (context))
#define dat_ib_collective_read_clock(handle, clock_value) \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_READ_CLOCK_OP, (DAT_UINT64*)(clock_value))
#define dat_ib_collective_scatter(handle, send_buffer, send_size, recv_buffer, recv_size, root, context, flags)  \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_SCATTER_OP, (DAT_PVOID)(send_buffer), \
                     (DAT_COUNT)(send_size), (DAT_PVOID)(recv_buffer), (DAT_COUNT)(recv_size),                   \
                     (DAT_IB_COLLECTIVE_RANK)(root), (context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_scatterv(handle, send_buffer, send_sizes, displs, recv_buffer, recv_size, root, context,     \
                                   flags)                                                                              \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_SCATTERV_OP, (DAT_PVOID)(send_buffer),      \
                     (DAT_COUNT*)(send_sizes), (DAT_COUNT*)(displs), (DAT_PVOID)(recv_buffer), (DAT_COUNT)(recv_size), \
                     (DAT_IB_COLLECTIVE_RANK)(root), (context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_gather(handle, send_buffer, send_size, recv_buffer, recv_size, root, context, flags)  \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_GATHER_OP, (DAT_PVOID)(send_buffer), \
                     (DAT_COUNT)(send_size), (DAT_PVOID)(recv_buffer), (DAT_COUNT)(recv_size),                  \
                     (DAT_IB_COLLECTIVE_RANK)(root), (context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_gatherv(handle, send_buffer, send_size, recv_buffers, recv_sizes, displs, root, context, \
                                  flags)                                                                           \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_GATHERV_OP, (DAT_PVOID)(send_buffer),   \
                     (DAT_COUNT)(send_size), (DAT_PVOID)(recv_buffers), (DAT_COUNT*)(recv_sizes),                  \
                     (DAT_COUNT*)(displs), (DAT_IB_COLLECTIVE_RANK)(root), (context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_allgather(handle, send_buffer, send_size, recv_buffer, recv_size, context, flags)        \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_ALLGATHER_OP, (DAT_PVOID)(send_buffer), \
                     (DAT_COUNT)(send_size), (DAT_PVOID)(recv_buffer), (DAT_COUNT)(recv_size), (context),          \
                     (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_allgatherv(handle, send_buffer, send_size, recv_buffer, recv_sizes, displs, context, flags)  \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_ALLGATHERV_OP, (DAT_PVOID)(send_buffer),    \
                     (DAT_COUNT)(send_size), (DAT_PVOID)(recv_buffer), (DAT_COUNT*)(recv_sizes), (DAT_COUNT*)(displs), \
                     (context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_alltoall(handle, send_buffer, send_size, recv_buffer, recv_size, context, flags)        \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_ALLTOALL_OP, (DAT_PVOID)(send_buffer), \
                     (DAT_COUNT)(send_size), (DAT_PVOID)(recv_buffer), (DAT_COUNT)(recv_size), (context),         \
                     (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_alltoallv(handle, send_buffer, send_sizes, send_displs, recv_buffer, recv_sizes,         \
                                    recv_displs, context, flags)                                                   \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_ALLTOALLV_OP, (DAT_PVOID)(send_buffer), \
                     (DAT_COUNT*)(send_sizes), (DAT_COUNT*)(send_displs), (DAT_PVOID)(recv_buffer),                \
                     (DAT_COUNT*)(recv_sizes), (DAT_COUNT*)(recv_displs), (context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_reduce(handle, send_buffer, send_size, recv_buffer, recv_size, op, type, root, context, \
                                 flags)                                                                           \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_REDUCE_OP, (DAT_PVOID)(send_buffer),   \
                     (DAT_COUNT)(send_size), (DAT_PVOID)(recv_buffer), (DAT_COUNT)(recv_size),                    \
                     (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), (DAT_IB_COLLECTIVE_DATA_TYPE)(type),                 \
                     (DAT_IB_COLLECTIVE_RANK)(root), (context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_allreduce(handle, send_buffer, send_size, recv_buffer, recv_size, op, type, context, flags) \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_ALLREDUCE_OP, (DAT_PVOID)(send_buffer),    \
                     (DAT_COUNT)(send_size), (DAT_PVOID)(recv_buffer), (DAT_COUNT)(recv_size),                        \
                     (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (context),          \
                     (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_reduce_scatter(handle, send_buffer, send_size, recv_buffer, recv_sizes, op, type, context, \
                                         flags)                                                                      \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP,                        \
                     (DAT_PVOID)(send_buffer), (DAT_COUNT)(send_size), (DAT_PVOID)(recv_buffer),                     \
                     (DAT_COUNT*)(recv_sizes), (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op),                               \
                     (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_scan(handle, send_buffer, send_size, recv_buffer, recv_size, op, type, context, flags) \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_SCAN_OP, (DAT_PVOID)(send_buffer),    \
                     (DAT_COUNT)(send_size), (DAT_PVOID)(recv_buffer), (DAT_COUNT)(recv_size),                   \
                     (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (context),     \
                     (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_broadcast(handle, buf, size, root, context, flags)                               \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_BROADCAST_OP, (DAT_PVOID)(buf), \
                     (DAT_COUNT)(size), (DAT_IB_COLLECTIVE_RANK)(root), (context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_barrier(handle, context, flags)                                         \
    dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(handle), DAT_IB_COLLECTIVE_BARRIER_OP, (context), \
                     (DAT_COMPLETION_FLAGS)(flags))

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* Like dat_strerror(), but also accepts results of this extension. */
static inline DAT_RETURN DAT_API dat_strerror_extension(DAT_IB_RETURN value, const char** message) {
    const char* minor_message;
    if (DAT_GET_TYPE(value) != (DAT_UINT32)DAT_IB_ERR) {
        return dat_strerror((DAT_RETURN)value, message, &minor_message);
    }
    *message = "DAT_IB_ERR";
    return DAT_SUCCESS;
}

/* Returns the name of the status of an event of this extension. */
static inline DAT_RETURN DAT_API dat_strerror_ext_status(DAT_IB_STATUS value, const char** message) {
    switch (value) {
        case DAT_OP_SUCCESS: *message = " "; return DAT_SUCCESS;
        case DAT_IB_OP_ERR: *message = "DAT_IB_OP_ERR"; return DAT_SUCCESS;
        case DAT_IB_COLL_COMP_ERR: *message = "DAT_IB_COLL_COMP_ERR"; return DAT_SUCCESS;
    }
    *message = "unknown extension status";
    return DAT_INVALID_PARAMETER;
}

#endif
