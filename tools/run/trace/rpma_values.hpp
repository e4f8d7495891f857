// SPDX-License-Identifier: BSD-3-Clause
// How values of librpma are written that the table cannot describe. Included by the generated wrappers.
#pragma once

namespace viaduct::trace {
namespace {

[[maybe_unused]] void show_rpma_conn_private_data(Record& record, const rpma_conn_private_data& data) {
    record.bytes(data.ptr, data.len);
}

[[maybe_unused]] void show_ibv_wc(Record& record, const ibv_wc& completion) {
    Text& text = record.text();
    text.open('{');
    text.field("wr_id").hexadecimal(completion.wr_id);
    text.field("status").constant(constants_completion_status, completion.status);
    text.field("opcode").constant(constants_completion_opcode, completion.opcode);
    text.field("byte_len").decimal(completion.byte_len);
    text.field("qp_num").decimal(completion.qp_num);
    if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) text.field("imm_data").hexadecimal(completion.imm_data);
    text.close('}');
}

}  // namespace
}  // namespace viaduct::trace
