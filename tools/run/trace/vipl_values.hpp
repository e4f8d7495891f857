// SPDX-License-Identifier: BSD-3-Clause
// How values of VIPL are written that the table cannot describe. Included by the generated wrappers.
#pragma once

namespace viaduct::trace {
namespace {

[[maybe_unused]] void show_timeout(Record& record, VIP_ULONG timeout) {
    if (timeout == VIP_INFINITE)
        record.text().word("VIP_INFINITE");
    else
        record.text().decimal(timeout);
}

/// An address in the program's memory. Behind it are the bytes of the host, then those of the discriminator.
void show_address(Record& record, const VIP_NET_ADDRESS* address) {
    Text& text = record.text();
    record.follow(address, [&](const VIP_NET_ADDRESS* copy) {
        const VIP_UINT8* const host = address->HostAddress;
        text.open('{');
        text.field("HostAddress");
        record.bytes(host, copy->HostAddressLen);
        text.field("Discriminator");
        record.bytes(host + copy->HostAddressLen, copy->DiscriminatorLen);
        text.close('}');
    });
}

void show_segment(Record& record, const VIP_DESCRIPTOR_SEGMENT& segment, bool is_remote) {
    Text& text = record.text();
    text.open('{');
    text.field(is_remote ? "Remote" : "Data").address(segment.Local.Data.Address);
    text.field("Handle");
    if (is_remote)
        text.decimal(segment.Remote.Handle);  // of the peer
    else
        record.handle(kind_mem, as_bits(segment.Local.Handle));
    if (!is_remote) text.field("Length").decimal(segment.Local.Length);
    text.close('}');
}

/// A descriptor at a place in the program's memory: its control segment and its other segments.
void show_descriptor(Record& record, const VIP_DESCRIPTOR* descriptor) {
    Text& text = record.text();
    record.follow(&descriptor->Control, [&](const VIP_CONTROL_SEGMENT* control) {
        const auto operation = control->Control & VIP_CONTROL_OP_MASK;
        const bool is_rdma = operation == VIP_CONTROL_OP_RDMAWRITE || operation == VIP_CONTROL_OP_RDMAREAD;
        text.open('{');
        text.field("Address").address(descriptor);
        text.field("Operation").constant(constants_operation, operation);
        text.field("Control").flags(constants_control, control->Control & ~VIP_CONTROL_OP_MASK);
        text.field("ImmediateData").hexadecimal(control->ImmediateData);
        text.field("Length").decimal(control->Length);
        text.field("Status").flags(constants_status, control->Status & ~VIP_STATUS_OP_MASK);
        if ((control->Status & VIP_STATUS_DONE) != 0)
            text.field("Completed").constant(constants_operation_status, control->Status & VIP_STATUS_OP_MASK);
        text.field("Segments");
        bool is_remote = is_rdma;  // the first one
        record.list(&descriptor->DS[0], control->SegCount,
                    [&](const auto* segment) { show_segment(record, *segment, std::exchange(is_remote, false)); });
        text.close('}');
    });
}

}  // namespace
}  // namespace viaduct::trace
