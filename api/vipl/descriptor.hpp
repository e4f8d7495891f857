// SPDX-License-Identifier: BSD-3-Clause
// Descriptors. They are converted to requests of the core when they are posted, and written back when they complete.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "api/vipl/translate.hpp"
#include "core/backend.hpp"
#include "core/base/guarded_memory.hpp"
#include "core/explain.hpp"
#include "viaduct/work.hpp"

namespace viaduct::vipl {

/// The limits that descriptors are checked against (guide, sections 5.2 to 5.4).
struct DescriptorLimits {
    std::uint32_t segments = 0;        ///< after the control segment
    std::uint32_t transfer_bytes = 0;  ///< of the VI
    bool rdma_read = false;            ///< at the reliability level of the VI
};

/// Build requests that refer to the descriptor. An invalid descriptor still takes its turn in the queue and completes
/// with the error that the request carries.
void read(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits, SendRequest& request) noexcept;
void read(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits, ReceiveRequest& request) noexcept;

/// Why one of the above has found an error. For people.
Reason why_invalid(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits, QueueKind queue) noexcept;

/// Data segments have the layout of the core's Sge (guide, section 5.4), so the device reads them in place.
inline const Sge* pieces_at(const VIP_DESCRIPTOR_SEGMENT* segments) noexcept {
    static_assert(sizeof(VIP_DESCRIPTOR_SEGMENT) == sizeof(Sge) &&
                  offsetof(VIP_DATA_SEGMENT, Data) == offsetof(Sge, address) &&
                  offsetof(VIP_DATA_SEGMENT, Handle) == offsetof(Sge, key) &&
                  offsetof(VIP_DATA_SEGMENT, Length) == offsetof(Sge, length));
    return reinterpret_cast<const Sge*>(segments);
}

/// Reads a valid descriptor of the common kind: one data segment, no immediate data and no flags. Returns false if it
/// is another one, which read() has to read.
[[gnu::always_inline]] inline bool read_plain_send(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits,
                                                   SendRequest& request) noexcept {
    static_assert(static_cast<unsigned>(Opcode::Send) == VIP_CONTROL_OP_SENDRECV &&
                  static_cast<unsigned>(Opcode::RdmaWrite) == VIP_CONTROL_OP_RDMAWRITE &&
                  static_cast<unsigned>(Opcode::RdmaRead) == VIP_CONTROL_OP_RDMAREAD);
    const VIP_CONTROL_SEGMENT& control = descriptor.CS;
    if (control.Reserved != 0) return false;
    const auto holds_one_piece = [&](unsigned segment) {
        const Sge* const piece = pieces_at(descriptor.DS + segment);
        request.sges = {piece, 1};
        return control.SegCount == segment + 1 && piece->length == control.Length &&
               piece->length <= limits.transfer_bytes;
    };
    request.context = reinterpret_cast<std::uint64_t>(&descriptor);
    if (control.Control == VIP_CONTROL_OP_SENDRECV) return holds_one_piece(0);
    const VIP_ADDRESS_SEGMENT& remote = descriptor.DS[0].Remote;
    if (control.Control != VIP_CONTROL_OP_RDMAWRITE &&
        (control.Control != VIP_CONTROL_OP_RDMAREAD || !limits.rdma_read))
        return false;
    if (!holds_one_piece(1) || remote.Reserved != 0) return false;
    request.opcode = static_cast<Opcode>(control.Control);
    request.remote = {.address = remote.Data.AddressBits, .key = remote.Handle};
    return true;
}

/// The same for a receive with one data segment.
[[gnu::always_inline]] inline bool read_plain_receive(const VIP_DESCRIPTOR& descriptor,
                                                      ReceiveRequest& request) noexcept {
    if (descriptor.CS.Control != VIP_CONTROL_OP_SENDRECV || descriptor.CS.Reserved != 0 || descriptor.CS.SegCount != 1)
        return false;
    request.context = reinterpret_cast<std::uint64_t>(&descriptor);
    request.sges = {pieces_at(descriptor.DS), 1};
    return true;
}

inline VIP_DESCRIPTOR* descriptor_of(const Completion& completion) noexcept {
    return reinterpret_cast<VIP_DESCRIPTOR*>(completion.context);
}

/// Writes the outcome into the descriptor of a completion. Returns false if its memory is not there or cannot be
/// written.
[[gnu::always_inline]] inline bool write_back(const Completion& completion) noexcept {
    VIP_CONTROL_SEGMENT& control = descriptor_of(completion)->CS;
    VIP_UINT32 status = to_operation_bits(completion.operation);
    if (completion.code != CompletionCode::Success) [[unlikely]] {
        status |= to_status_bit(completion.code).value;
        // Part of the message was sent before the source became invalid (guide, section 5.2, Partial Packet Error).
        if (completion.code == CompletionCode::LocalProtection && completion.bytes != 0)
            status |= VIP_STATUS_PARTIAL_ERROR;
    }
    if (!store_guarded(control.Length, completion.bytes)) return false;
    if (completion.with_immediate && completion.queue() == QueueKind::Receive) [[unlikely]] {
        status |= VIP_STATUS_IMMEDIATE;
        if (!store_guarded(control.ImmediateData, completion.immediate)) return false;
    }
    // Programs may poll the status instead of making a call, so it is written last.
    std::atomic_thread_fence(std::memory_order_release);
    return store_guarded(control.Status, VIP_STATUS_DONE | status);
}

/// How the backend writes the outcome of a send that succeeds while it is posted: as write_back().
inline constexpr CompletionRecord success_record{
    .offset = offsetof(VIP_CONTROL_SEGMENT, Length),
    .status = {VIP_STATUS_DONE | to_operation_bits(CompletedOperation::Send),
               VIP_STATUS_DONE | to_operation_bits(CompletedOperation::RdmaWrite),
               VIP_STATUS_DONE | to_operation_bits(CompletedOperation::RdmaRead)}};
static_assert(offsetof(VIP_DESCRIPTOR, CS) == 0 &&
              offsetof(VIP_CONTROL_SEGMENT, Status) == offsetof(VIP_CONTROL_SEGMENT, Length) + sizeof(std::uint32_t));

/// The result of the Done and Wait calls for a complete descriptor.
inline VIP_RETURN result_of(const Completion& completion) noexcept {
    return completion.code == CompletionCode::Success ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR;
}

/// What a Done call returns. The library does not access the descriptor any more: its memory may not be there.
struct Done {
    VIP_DESCRIPTOR* descriptor = nullptr;
    VIP_RETURN result = VIP_SUCCESS;
};

}  // namespace viaduct::vipl
