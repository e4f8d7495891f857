// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/descriptor.hpp"

#include <span>

#include "core/base/internals.hpp"

namespace viaduct::vipl {
namespace {

std::uint64_t context_of(const VIP_DESCRIPTOR& descriptor) noexcept {
    return reinterpret_cast<std::uint64_t>(&descriptor);
}

bool reserved_fields_clear(const VIP_CONTROL_SEGMENT& control) noexcept {
    return control.Reserved == 0 && (control.Control & VIP_CONTROL_RESERVED) == 0;
}

/// An RDMA operation has an address segment before its data segments (guide, section 5.3).
bool read_remote(const VIP_DESCRIPTOR& descriptor, RemoteAddress& remote) noexcept {
    if (descriptor.CS.SegCount == 0) return false;
    const VIP_ADDRESS_SEGMENT& segment = descriptor.DS[0].Remote;
    remote = {.address = segment.Data.AddressBits, .key = segment.Handle};
    return segment.Reserved == 0;
}

std::span<const Sge> pieces_of(std::span<const VIP_DESCRIPTOR_SEGMENT> segments) noexcept {
    return {pieces_at(segments.data()), segments.size()};
}

std::uint64_t total_length(std::span<const VIP_DESCRIPTOR_SEGMENT> segments) noexcept {
    std::uint64_t bytes = 0;
    for (const VIP_DESCRIPTOR_SEGMENT& segment : segments) bytes += segment.Local.Length;
    return bytes;
}

/// Reads what the control segment specifies for a send. Returns false on a format error.
bool read_control(const VIP_CONTROL_SEGMENT& control, const DescriptorLimits& limits, SendRequest& request) noexcept {
    request.fence = (control.Control & VIP_CONTROL_QFENCE) != 0;
    request.with_immediate = (control.Control & VIP_CONTROL_IMMEDIATE) != 0;
    request.immediate = control.ImmediateData;
    const bool clear = reserved_fields_clear(control);
    switch (control.Control & VIP_CONTROL_OP_MASK) {
        case VIP_CONTROL_OP_SENDRECV: return clear;
        case VIP_CONTROL_OP_RDMAWRITE: request.opcode = Opcode::RdmaWrite; return clear;
        case VIP_CONTROL_OP_RDMAREAD:
            request.opcode = Opcode::RdmaRead;
            request.with_immediate = false;  // the bit is ignored (guide, section 5.2)
            return clear && limits.rdma_read;
        default: return false;
    }
}

/// Reads the segments of a send.
CompletionCode read_segments(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits,
                             SendRequest& request) noexcept {
    if (descriptor.CS.SegCount > limits.segments) return CompletionCode::LocalLength;
    const bool remote = request.opcode != Opcode::Send;
    if (remote && !read_remote(descriptor, request.remote)) return CompletionCode::LocalFormat;
    const std::span segments(descriptor.DS + (remote ? 1 : 0), descriptor.CS.SegCount - (remote ? 1u : 0u));
    request.sges = pieces_of(segments);
    const std::uint64_t bytes = total_length(segments);
    const bool fits = bytes == descriptor.CS.Length && bytes <= limits.transfer_bytes;
    return fits ? CompletionCode::Success : CompletionCode::LocalLength;
}

}  // namespace

void read(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits, SendRequest& request) noexcept {
    request.context = context_of(descriptor);
    request.fault =
        Internals::faulty(read_control(descriptor.CS, limits, request) ? read_segments(descriptor, limits, request)
                                                                       : CompletionCode::LocalFormat);
}

void read(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits, ReceiveRequest& request) noexcept {
    request.context = context_of(descriptor);
    const VIP_CONTROL_SEGMENT& control = descriptor.CS;
    if (!reserved_fields_clear(control) || (control.Control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_SENDRECV)
        request.fault = Internals::faulty(CompletionCode::LocalFormat);
    else if (control.SegCount > limits.segments)
        request.fault = Internals::faulty(CompletionCode::LocalLength);
    else
        request.sges = pieces_of({descriptor.DS, control.SegCount});
}

Reason why_invalid(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits, QueueKind queue) noexcept {
    const VIP_CONTROL_SEGMENT& control = descriptor.CS;
    const unsigned operation = control.Control & VIP_CONTROL_OP_MASK;
    if (control.Reserved != 0) return explain("CS.Reserved is %#x, not 0", control.Reserved);
    if ((control.Control & VIP_CONTROL_RESERVED) != 0)
        return explain("CS.Control is %#x and has reserved bits (%#x)", control.Control, VIP_CONTROL_RESERVED);
    if (queue == QueueKind::Receive && operation != VIP_CONTROL_OP_SENDRECV)
        return explain("CS.Control is %#x: a receive has the operation VIP_CONTROL_OP_SENDRECV", control.Control);
    if (operation == VIP_CONTROL_OP_RESERVED) return explain("CS.Control is %#x: no operation", control.Control);
    if (operation == VIP_CONTROL_OP_RDMAREAD && !limits.rdma_read)
        return "an RDMA read needs a reliability level other than VIP_SERVICE_UNRELIABLE";
    if (control.SegCount > limits.segments)
        return explain("CS.SegCount is %u, more than the maximum of the NIC, which is %u", control.SegCount,
                       limits.segments);
    const bool remote = operation != VIP_CONTROL_OP_SENDRECV;
    if (remote && control.SegCount == 0) return "CS.SegCount is 0: an RDMA operation has an address segment";
    if (remote && descriptor.DS[0].Remote.Reserved != 0)
        return explain("DS[0].Remote.Reserved is %#x, not 0", descriptor.DS[0].Remote.Reserved);
    const std::span segments(descriptor.DS + (remote ? 1 : 0), control.SegCount - (remote ? 1u : 0u));
    const auto bytes = static_cast<unsigned long long>(total_length(segments));
    if (bytes != control.Length)
        return explain("CS.Length is %u, and the data segments have %llu bytes", control.Length, bytes);
    return explain("%llu bytes are more than the maximum of a transfer, which is %u", bytes, limits.transfer_bytes);
}

}  // namespace viaduct::vipl
