// SPDX-License-Identifier: BSD-3-Clause
// What queues that are software check of a request before they execute it (guide, section 5.2), and what they tell of
// one that the peer has refused.
#pragma once

#include "backends/support/sge_list.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/work.hpp"

namespace viaduct::support {

/// Reports whether the peer returns data.
constexpr bool fetches(Opcode opcode) noexcept { return opcode == Opcode::RdmaRead || is_fetching_atomic(opcode); }

constexpr bool is_atomic(Opcode opcode) noexcept { return opcode == Opcode::AtomicWrite || is_fetching_atomic(opcode); }

/// Reports whether the initiator is told that the peer has refused a send or an RDMA write.
constexpr bool reports_refusals(const EndpointAttributes& attributes) noexcept {
    return attributes.reliability == Reliability::ReliableReception ||
           (attributes.reliability == Reliability::ReliableDelivery &&
            attributes.refused_write == RefusedWrite::Reported);
}

/// Called when a request of `total` bytes is posted. Copies the value of an atomic write. Returns an error with which
/// the request has to complete in its turn, or Success.
inline CompletionCode take_operands(const SendRequest& request, std::uint64_t total, std::uint64_t& value) noexcept {
    if (request.fault != CompletionCode::Success || !is_atomic(request.opcode)) return request.fault;
    if (request.sges.size() != 1 || total != sizeof value) return CompletionCode::LocalLength;
    const bool taken = request.opcode != Opcode::AtomicWrite ||
                       gather(request.sges, 0, reinterpret_cast<std::byte*>(&value), sizeof value);
    return taken ? CompletionCode::Success : CompletionCode::LocalProtection;
}

/// Called before the request is executed.
inline CompletionCode check_format(const SendRequest& request, bool is_reliable) noexcept {
    bool valid = true;
    switch (request.opcode) {
        case Opcode::SendInvalidate: valid = !request.with_immediate && is_reliable; break;
        case Opcode::Flush: valid = request.sges.empty(); break;
        case Opcode::AtomicWrite: valid = request.remote.address % sizeof(std::uint64_t) == 0; break;
        default: valid = !fetches(request.opcode) || is_reliable; break;
    }
    return valid ? CompletionCode::Success : CompletionCode::LocalFormat;
}

/// Called before the request is executed. `may_use(sge, written)` reports whether the endpoint may use the memory.
template <class MayUse>
CompletionCode check_pieces(const SendRequest& request, std::uint64_t total, std::uint32_t max_transfer_bytes,
                            MayUse may_use) noexcept {
    if (total > max_transfer_bytes) return CompletionCode::LocalLength;
    if (request.opcode == Opcode::AtomicWrite) return CompletionCode::Success;  // take_operands() has copied the value
    for (const Sge& sge : request.sges)
        if (!may_use(sge, fetches(request.opcode))) return CompletionCode::LocalProtection;
    return CompletionCode::Success;
}

}  // namespace viaduct::support
