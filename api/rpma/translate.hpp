// SPDX-License-Identifier: BSD-3-Clause
// Values of the core in the words of librpma, and back.
#pragma once

#include "api/rpma/api.hpp"
#include "core/attributes.hpp"
#include "core/events.hpp"
#include "core/status.hpp"
#include "core/work.hpp"

namespace viaduct::rpma {

/// For what the core refused although the arguments of the call were right.
int to_result(const Status& status) noexcept;

rpma_conn_event to_event(const ConnectionEvent& event) noexcept;

/// What a region of that usage (RPMA_MR_USAGE_ bits) must allow.
Access to_access(int usage) noexcept;

ibv_wc_status to_wc_status(CompletionCode code) noexcept;
ibv_wc_opcode to_wc_opcode(CompletedOperation operation) noexcept;

/// Writes every field once, in place: this is the hot path. The context of an endpoint is the number of its connection.
void write_wc(const Completion& completion, ibv_wc& wc) noexcept;

}  // namespace viaduct::rpma
