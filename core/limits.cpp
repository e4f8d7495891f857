// SPDX-License-Identifier: BSD-3-Clause
#include "core/limits.hpp"

namespace viaduct {

Status check_attributes(const EndpointAttributes& attributes, const DeviceAttributes& device) noexcept {
    const bool unreliable = attributes.reliability == Reliability::Unreliable;
    if (attributes.reliability > Reliability::ReliableReception || (unreliable && !device.capabilities.unreliable))
        return {Code::InvalidReliability, "unsupported reliability level"};
    if (attributes.max_transfer_bytes > device.max_transfer_bytes)
        return {Code::InvalidTransferSize, "invalid maximum transfer size"};
    if (attributes.qos != 0) return {Code::InvalidQos, "unsupported quality of service"};
    if (unreliable && (attributes.access.remote_read || attributes.access.remote_atomic))
        return {Code::InvalidRdmaRead, "an unreliable endpoint cannot serve RDMA reads"};
    return {};
}

Status check_endpoint(const backend::EndpointInit& init, const DeviceAttributes& device) noexcept {
    if (const Status status = check_attributes(init.attributes, device); !status.ok()) return status;
    if (init.send_depth > device.max_queue_depth || init.receive_depth > device.max_queue_depth)
        return {Code::InvalidParameter, "invalid depth of a work queue"};
    if (init.max_sges > device.max_sges) return {Code::InvalidParameter, "too many pieces per request"};
    return {};
}

Status check_local_host(const HostAddress& host, const DeviceAttributes& device) noexcept {
    return host == device.host ? Status()
                               : Status(Code::InvalidParameter, "the local address does not belong to the device");
}

Status check_completions(std::uint32_t capacity, const DeviceAttributes& device) noexcept {
    const bool fits = capacity != 0 && capacity <= device.max_completions;
    return fits ? Status() : Status(Code::InvalidParameter, "invalid capacity of a completion queue");
}

Status check_shared_depth(std::uint32_t depth, const DeviceAttributes& device) noexcept {
    const bool fits = depth != 0 && depth <= device.max_queue_depth;
    return fits ? Status() : Status(Code::InvalidParameter, "invalid depth of a shared receive queue");
}

Status check_range(const void* address, std::uint64_t length) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const bool sound = begin != 0 && length != 0 && begin + length >= begin;
    return sound ? Status() : Status(Code::InvalidParameter, "the range is empty or wraps around");
}

Status check_window(WindowScope scope, const Capabilities& able) noexcept {
    const bool has = scope == WindowScope::Domain ? able.memory_windows : able.invalidates;
    return has ? Status() : Status(Code::Unsupported, "the device does not support memory windows of that scope");
}

}  // namespace viaduct
