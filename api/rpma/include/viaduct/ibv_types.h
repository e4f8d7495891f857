/*
 * viaduct/ibv_types.h - the libibverbs types in librpma.h, for machines without <infiniband/verbs.h>
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Names, values and layouts are those of rdma-core; a check at build time compares them if its header is available.
 * Include <librpma.h>, which uses the real header if it is available.
 */
#ifndef VIADUCT_IBV_TYPES_H
#define VIADUCT_IBV_TYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open device. Programs pass it on without reading it. */
struct ibv_context;

/* The outcome of an operation. */
enum ibv_wc_status {
    IBV_WC_SUCCESS,
    IBV_WC_LOC_LEN_ERR,   /* the lengths do not match, or the receive is too small */
    IBV_WC_LOC_QP_OP_ERR, /* the request is malformed */
    IBV_WC_LOC_EEC_OP_ERR,
    IBV_WC_LOC_PROT_ERR, /* the local region does not cover or allow the operation */
    IBV_WC_WR_FLUSH_ERR, /* the connection ended before the operation was executed */
    IBV_WC_MW_BIND_ERR,
    IBV_WC_BAD_RESP_ERR,
    IBV_WC_LOC_ACCESS_ERR,
    IBV_WC_REM_INV_REQ_ERR, /* the peer's receive failed */
    IBV_WC_REM_ACCESS_ERR,  /* the peer's region does not cover or allow the operation */
    IBV_WC_REM_OP_ERR,
    IBV_WC_RETRY_EXC_ERR, /* the connection failed during the operation */
    IBV_WC_RNR_RETRY_EXC_ERR,
    IBV_WC_LOC_RDD_VIOL_ERR,
    IBV_WC_REM_INV_RD_REQ_ERR,
    IBV_WC_REM_ABORT_ERR,
    IBV_WC_INV_EECN_ERR,
    IBV_WC_INV_EEC_STATE_ERR,
    IBV_WC_FATAL_ERR,
    IBV_WC_RESP_TIMEOUT_ERR,
    IBV_WC_GENERAL_ERR,
    IBV_WC_TM_ERR,
    IBV_WC_TM_RNDV_INCOMPLETE
};

/* The kind of operation. Those of the receive side have the bit IBV_WC_RECV. */
enum ibv_wc_opcode {
    IBV_WC_SEND,
    IBV_WC_RDMA_WRITE,
    IBV_WC_RDMA_READ,
    IBV_WC_COMP_SWAP,
    IBV_WC_FETCH_ADD,
    IBV_WC_BIND_MW,
    IBV_WC_LOCAL_INV,
    IBV_WC_TSO,
    IBV_WC_ATOMIC_WRITE = 9,
    IBV_WC_RECV = 1 << 7,
    IBV_WC_RECV_RDMA_WITH_IMM,
    IBV_WC_TM_ADD,
    IBV_WC_TM_DEL,
    IBV_WC_TM_SYNC,
    IBV_WC_TM_RECV,
    IBV_WC_TM_NO_TAG,
    IBV_WC_DRIVER1,
    IBV_WC_DRIVER2,
    IBV_WC_DRIVER3
};

/* Bits of ibv_wc.wc_flags. */
enum ibv_wc_flags {
    IBV_WC_GRH = 1 << 0,
    IBV_WC_WITH_IMM = 1 << 1, /* imm_data is valid */
    IBV_WC_IP_CSUM_OK = 1 << 2,
    IBV_WC_WITH_INV = 1 << 3,
    IBV_WC_TM_SYNC_REQ = 1 << 4,
    IBV_WC_TM_MATCH = 1 << 5,
    IBV_WC_TM_DATA_VALID = 1 << 6
};

/* A completion. If status is not IBV_WC_SUCCESS, only wr_id, status, vendor_err (0) and qp_num are valid. */
struct ibv_wc {
    uint64_t wr_id; /* the op_context of the call */
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode;
    uint32_t vendor_err;
    uint32_t byte_len; /* receives only: the number of bytes received */
    union {
        uint32_t imm_data; /* network byte order */
        uint32_t invalidated_rkey;
    };
    uint32_t qp_num; /* of the connection; see rpma_conn_get_qp_num() */
    uint32_t src_qp;
    unsigned int wc_flags;
    uint16_t pkey_index;
    uint16_t slid;
    uint8_t sl;
    uint8_t dlid_path_bits;
};

/* Values for rpma_mr_advise(). */
enum ibv_advise_mr_advice {
    IBV_ADVISE_MR_ADVICE_PREFETCH,
    IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
    IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
};

enum { IBV_ADVISE_MR_FLAG_FLUSH = 1 << 0 };

/* Returns a description of a status, never NULL. */
static inline const char* ibv_wc_status_str(enum ibv_wc_status status) {
    static const char* const words[] = {
        "success",
        "local length error",
        "local QP operation error",
        "local EE context operation error",
        "local protection error",
        "Work Request Flushed Error",
        "memory management operation error",
        "bad response error",
        "local access error",
        "remote invalid request error",
        "remote access error",
        "remote operation error",
        "transport retry counter exceeded",
        "RNR retry counter exceeded",
        "local RDD violation error",
        "remote invalid RD request",
        "aborted error",
        "invalid EE context number",
        "invalid EE context state",
        "fatal error",
        "response timeout error",
        "general error",
        "TM error",
        "TM software rendezvous",
    };
    if ((int)status < 0 || (unsigned)status >= sizeof words / sizeof words[0]) return "unknown";
    return words[status];
}

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_IBV_TYPES_H */
