// SPDX-License-Identifier: BSD-3-Clause
// How values of librpma are written that the table cannot describe. Included by the generated wrappers.
#pragma once

namespace viaduct::trace {
namespace {

[[maybe_unused]] void show_rpma_conn_private_data(Record& record, const rpma_conn_private_data& data) {
    record.bytes(data.ptr, data.len);
}

[[maybe_unused]] constexpr Constant completion_operations[] = {
    {IBV_WC_SEND, "IBV_WC_SEND"},
    {IBV_WC_RDMA_WRITE, "IBV_WC_RDMA_WRITE"},
    {IBV_WC_RDMA_READ, "IBV_WC_RDMA_READ"},
    {IBV_WC_RECV, "IBV_WC_RECV"},
    {IBV_WC_RECV_RDMA_WITH_IMM, "IBV_WC_RECV_RDMA_WITH_IMM"}};

[[maybe_unused]] constexpr Constant completion_states[] = {{IBV_WC_SUCCESS, "IBV_WC_SUCCESS"},
                                                           {IBV_WC_LOC_LEN_ERR, "IBV_WC_LOC_LEN_ERR"},
                                                           {IBV_WC_LOC_PROT_ERR, "IBV_WC_LOC_PROT_ERR"},
                                                           {IBV_WC_WR_FLUSH_ERR, "IBV_WC_WR_FLUSH_ERR"},
                                                           {IBV_WC_REM_INV_REQ_ERR, "IBV_WC_REM_INV_REQ_ERR"},
                                                           {IBV_WC_REM_ACCESS_ERR, "IBV_WC_REM_ACCESS_ERR"},
                                                           {IBV_WC_REM_OP_ERR, "IBV_WC_REM_OP_ERR"},
                                                           {IBV_WC_RETRY_EXC_ERR, "IBV_WC_RETRY_EXC_ERR"},
                                                           {IBV_WC_RNR_RETRY_EXC_ERR, "IBV_WC_RNR_RETRY_EXC_ERR"}};

[[maybe_unused]] void show_ibv_wc(Record& record, const ibv_wc& completion) {
    Text& text = record.text();
    text.open('{');
    text.field("wr_id").hexadecimal(completion.wr_id);
    text.field("status").constant(completion_states, completion.status);
    text.field("opcode").constant(completion_operations, completion.opcode);
    text.field("byte_len").decimal(completion.byte_len);
    text.field("qp_num").decimal(completion.qp_num);
    if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) text.field("imm_data").hexadecimal(completion.imm_data);
    text.close('}');
}

}  // namespace
}  // namespace viaduct::trace
