// SPDX-License-Identifier: BSD-3-Clause
// Converts values between the core and librpma.
#pragma once

#include "api/rpma/api.hpp"
#include "core/request_terms.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/events.hpp"
#include "viaduct/status.hpp"
#include "viaduct/work.hpp"

namespace viaduct::rpma {

/// The name of an error, as programs write it; never null.
const char* name_of(int result) noexcept;

/// For errors of the core although the arguments of the call were valid.
int to_result(const Status& status) noexcept;

rpma_conn_event to_event(const ConnectionEvent& event) noexcept;

/// Returns the access that a region with this usage (RPMA_MR_USAGE_ bits) must allow.
Access to_access(int usage) noexcept;

Named<ibv_wc_status> to_wc_status(CompletionCode code) noexcept;

/// Writes every field once, in place, because this is the hot path. The endpoint's context is the number of its
/// connection.
void write_wc(const Completion& completion, ibv_wc_status status, ibv_wc& wc) noexcept;

}  // namespace viaduct::rpma
