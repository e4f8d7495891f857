// SPDX-License-Identifier: BSD-3-Clause
// Converts values between the core and VIPL.
#pragma once

#include <array>
#include <cstddef>

#include "api/vipl/api.hpp"
#include "core/request_terms.hpp"
#include "core/state_machine.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/events.hpp"
#include "viaduct/status.hpp"
#include "viaduct/work.hpp"

namespace viaduct::vipl {

VIP_RETURN to_return(Code code) noexcept;
/// As above, and leaves the reason.
[[gnu::cold]] VIP_RETURN failed(const Status& status) noexcept;
inline VIP_RETURN to_return(const Status& status) noexcept { return status.ok() ? VIP_SUCCESS : failed(status); }

/// Returns the result of the connecting call for the event that ended the attempt, and leaves the reason.
VIP_RETURN to_return(const ConnectionEvent& event) noexcept;

VIP_VI_STATE to_vi_state(EndpointState state) noexcept;

/// The name of a state, as programs write it.
const char* state_name(VIP_VI_STATE state) noexcept;

/// The bits of a descriptor's status (guide, section 5.2).
constexpr Named<VIP_UINT32> to_status_bit(CompletionCode code) noexcept {
    switch (code) {
        case CompletionCode::Success: return {0, "success"};
        case CompletionCode::LocalFormat: return VIADUCT_NAMED(VIP_STATUS_FORMAT_ERROR);
        case CompletionCode::LocalLength: return VIADUCT_NAMED(VIP_STATUS_LENGTH_ERROR);
        case CompletionCode::LocalProtection: return VIADUCT_NAMED(VIP_STATUS_PROTECTION_ERROR);
        case CompletionCode::RemoteProtection: return VIADUCT_NAMED(VIP_STATUS_RDMA_PROT_ERROR);
        case CompletionCode::RemoteOperation:
        case CompletionCode::RemoteLength: return VIADUCT_NAMED(VIP_STATUS_REMOTE_DESC_ERROR);
        case CompletionCode::Transport: return VIADUCT_NAMED(VIP_STATUS_TRANSPORT_ERROR);
        case CompletionCode::PartialMessage: return VIADUCT_NAMED(VIP_STATUS_PARTIAL_ERROR);
        case CompletionCode::Flushed: return VIADUCT_NAMED(VIP_STATUS_DESC_FLUSHED_ERROR);
    }
    return VIADUCT_NAMED(VIP_STATUS_TRANSPORT_ERROR);
}

/// VIs do not bind windows.
constexpr VIP_UINT32 find_operation_bits(CompletedOperation operation) noexcept {
    switch (operation) {
        case CompletedOperation::Send:
        case CompletedOperation::BindWindow: return VIP_STATUS_OP_SEND;
        case CompletedOperation::RdmaWrite:
        case CompletedOperation::AtomicWrite: return VIP_STATUS_OP_RDMA_WRITE;
        case CompletedOperation::RdmaRead:
        case CompletedOperation::Flush:
        case CompletedOperation::FetchAdd:
        case CompletedOperation::CompareSwap: return VIP_STATUS_OP_RDMA_READ;
        case CompletedOperation::Receive: return VIP_STATUS_OP_RECEIVE;
        case CompletedOperation::ReceiveRdmaWrite: return VIP_STATUS_OP_REMOTE_RDMA_WRITE;
    }
    return VIP_STATUS_OP_SEND;
}

/// By CompletedOperation.
inline constexpr auto operation_bits = [] {
    std::array<VIP_UINT32, static_cast<std::size_t>(CompletedOperation::ReceiveRdmaWrite) + 1> bits{};
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = find_operation_bits(static_cast<CompletedOperation>(i));
    return bits;
}();

constexpr VIP_UINT32 to_operation_bits(CompletedOperation operation) noexcept {
    return operation_bits[static_cast<std::size_t>(operation)];
}

VIP_ERROR_CODE to_error_code(AsyncEventKind kind) noexcept;
const char* to_string(VIP_ERROR_CODE code) noexcept;

/// Convert between levels and bits. to_reliability() returns false unless exactly one of the three bits is set.
VIP_RELIABILITY_LEVEL to_level(Reliability reliability) noexcept;
bool to_reliability(VIP_RELIABILITY_LEVEL level, Reliability& reliability) noexcept;

/// Returns the attributes of a peer. Its protection tag has no meaning here and stays NULL. If the peer has no maximum
/// transfer size (every VI has one), the limit of the NIC is returned.
VIP_VI_ATTRIBUTES to_vi_attributes(const EndpointAttributes& attributes, const DeviceAttributes& nic) noexcept;

inline VIP_BOOLEAN to_boolean(bool value) noexcept { return value ? VIP_TRUE : VIP_FALSE; }

Deadline to_deadline(VIP_ULONG timeout_ms) noexcept;

/// Reads an address. Returns false if a part has a length that the NIC does not support.
bool to_address(const VIP_NET_ADDRESS& from, const DeviceAttributes& nic, Address& to) noexcept;

/// Whether the parts of a peer's address are no longer than those of the NIC.
bool fits(const Address& address, const DeviceAttributes& nic) noexcept;

/// Writes an address that fits into the caller's block, which must have room for both parts.
void to_net_address(const Address& from, VIP_NET_ADDRESS& to) noexcept;

}  // namespace viaduct::vipl
