/* SPDX-License-Identifier: BSD-3-Clause
 * Sizes, offsets and values of <librpma.h> on an LP64 system. All is checked by the compiler; that this program exists
 * is the test. abi_test.py compares the whole header with that of stock librpma where it is installed.
 */
#include "conformance.h"

#define SAME(left, right) _Static_assert((left) == (right), #left " is " #right)
#define AT(type, member, offset) SAME(offsetof(type, member), offset)

/* Errors */
SAME(RPMA_E_UNKNOWN, -100000);
SAME(RPMA_E_NOSUPP, -100001);
SAME(RPMA_E_PROVIDER, -100002);
SAME(RPMA_E_NOMEM, -100003);
SAME(RPMA_E_INVAL, -100004);
SAME(RPMA_E_NO_COMPLETION, -100005);
SAME(RPMA_E_NO_EVENT, -100006);
SAME(RPMA_E_AGAIN, -100007);
SAME(RPMA_E_SHARED_CHANNEL, -100008);
SAME(RPMA_E_NOT_SHARED_CHNL, -100009);

/* Devices and regions */
SAME(RPMA_DEFAULT_TIMEOUT_MS, 1000);
SAME(RPMA_W_WAIT_FOR_COMPLETION, 1);
SAME(RPMA_UTIL_IBV_CONTEXT_LOCAL, 0);
SAME(RPMA_UTIL_IBV_CONTEXT_REMOTE, 1);
SAME(RPMA_MR_USAGE_READ_SRC, 1);
SAME(RPMA_MR_USAGE_READ_DST, 2);
SAME(RPMA_MR_USAGE_WRITE_SRC, 4);
SAME(RPMA_MR_USAGE_WRITE_DST, 8);
SAME(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, 16);
SAME(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, 32);
SAME(RPMA_MR_USAGE_SEND, 64);
SAME(RPMA_MR_USAGE_RECV, 128);

/* Connections */
SAME(RPMA_CONN_UNDEFINED, -1);
SAME(RPMA_CONN_ESTABLISHED, 0);
SAME(RPMA_CONN_CLOSED, 1);
SAME(RPMA_CONN_LOST, 2);
SAME(RPMA_CONN_REJECTED, 3);
SAME(RPMA_CONN_UNREACHABLE, 4);
SAME(sizeof(enum rpma_conn_event), 4);
SAME(sizeof(struct rpma_conn_private_data), 16);
AT(struct rpma_conn_private_data, ptr, 0);
AT(struct rpma_conn_private_data, len, 8);

/* Operations */
SAME(RPMA_F_COMPLETION_ON_ERROR, 1);
SAME(RPMA_F_COMPLETION_ALWAYS, 3);
SAME(RPMA_ATOMIC_WRITE_ALIGNMENT, 8);
SAME(RPMA_FLUSH_TYPE_PERSISTENT, 0);
SAME(RPMA_FLUSH_TYPE_VISIBILITY, 1);

/* Completions: what libibverbs lays down */
SAME(sizeof(struct ibv_wc), 48);
AT(struct ibv_wc, wr_id, 0);
AT(struct ibv_wc, status, 8);
AT(struct ibv_wc, opcode, 12);
AT(struct ibv_wc, vendor_err, 16);
AT(struct ibv_wc, byte_len, 20);
AT(struct ibv_wc, imm_data, 24);
AT(struct ibv_wc, qp_num, 28);
AT(struct ibv_wc, src_qp, 32);
AT(struct ibv_wc, wc_flags, 36);
AT(struct ibv_wc, pkey_index, 40);
AT(struct ibv_wc, slid, 42);
AT(struct ibv_wc, sl, 44);
AT(struct ibv_wc, dlid_path_bits, 45);
SAME(IBV_WC_SUCCESS, 0);
SAME(IBV_WC_LOC_LEN_ERR, 1);
SAME(IBV_WC_LOC_QP_OP_ERR, 2);
SAME(IBV_WC_LOC_PROT_ERR, 4);
SAME(IBV_WC_WR_FLUSH_ERR, 5);
SAME(IBV_WC_REM_INV_REQ_ERR, 9);
SAME(IBV_WC_REM_ACCESS_ERR, 10);
SAME(IBV_WC_RETRY_EXC_ERR, 12);
SAME(IBV_WC_SEND, 0);
SAME(IBV_WC_RDMA_WRITE, 1);
SAME(IBV_WC_RDMA_READ, 2);
SAME(IBV_WC_RECV, 128);
SAME(IBV_WC_RECV_RDMA_WITH_IMM, 129);
SAME(IBV_WC_WITH_IMM, 2);

/* The log */
SAME(RPMA_LOG_DISABLED, -1);
SAME(RPMA_LOG_LEVEL_FATAL, 0);
SAME(RPMA_LOG_LEVEL_ERROR, 1);
SAME(RPMA_LOG_LEVEL_WARNING, 2);
SAME(RPMA_LOG_LEVEL_NOTICE, 3);
SAME(RPMA_LOG_LEVEL_INFO, 4);
SAME(RPMA_LOG_LEVEL_DEBUG, 5);
SAME(RPMA_LOG_THRESHOLD, 0);
SAME(RPMA_LOG_THRESHOLD_AUX, 1);
SAME(RPMA_LOG_THRESHOLD_MAX, 2);

TEST(sizes_offsets_and_values) { CHECK(RPMA_LOG_USE_DEFAULT_FUNCTION == NULL); }
