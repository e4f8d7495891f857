// SPDX-License-Identifier: BSD-3-Clause
#include "core/limits.hpp"

#include <algorithm>

#include "core/base/address_text.hpp"
#include "core/explain.hpp"

namespace viaduct {

const char* to_string(Reliability reliability) noexcept {
    switch (reliability) {
        case Reliability::Unreliable: return "unreliable";
        case Reliability::ReliableDelivery: return "reliable delivery";
        case Reliability::ReliableReception: return "reliable reception";
    }
    return "unknown";
}

namespace {

const char* level_of(const EndpointAttributes& attributes) noexcept {
    return attributes.any_reliable ? "any reliable level" : to_string(attributes.reliability);
}

}  // namespace

Status compatible(const EndpointAttributes& local, const EndpointAttributes& remote) noexcept {
    const bool reliable = local.reliability != Reliability::Unreliable && remote.reliability != Reliability::Unreliable;
    const bool adapts = reliable && (local.any_reliable || remote.any_reliable);
    if (local.reliability != remote.reliability && !adapts)
        return {Code::InvalidReliability,
                explain("the reliability levels differ: %s here, %s at the peer", level_of(local), level_of(remote))};
    if (local.max_transfer_bytes != remote.max_transfer_bytes && local.max_transfer_bytes != 0 &&
        remote.max_transfer_bytes != 0)
        return {Code::InvalidTransferSize, explain("the maximum transfer sizes differ: %u bytes here, %u at the peer",
                                                   local.max_transfer_bytes, remote.max_transfer_bytes)};
    if (local.qos != remote.qos)
        return {Code::InvalidQos,
                explain("the qualities of service differ: %llu here, %llu at the peer",
                        static_cast<unsigned long long>(local.qos), static_cast<unsigned long long>(remote.qos))};
    return {};
}

Status check_attributes(const EndpointAttributes& attributes, const DeviceAttributes& device) noexcept {
    const bool unreliable = attributes.reliability == Reliability::Unreliable;
    if (attributes.reliability > Reliability::ReliableReception || (unreliable && !device.capabilities.unreliable))
        return {Code::InvalidReliability,
                explain("%s does not support the reliability level %u (%s)", device.name.c_str(),
                        static_cast<unsigned>(attributes.reliability), to_string(attributes.reliability))};
    if (attributes.any_reliable && (unreliable || attributes.refused_write != RefusedWrite::Reported))
        return {Code::InvalidReliability,
                "an endpoint that joins any reliable level must be reliable and report refused writes"};
    if (attributes.max_transfer_bytes > device.max_transfer_bytes)
        return {Code::InvalidTransferSize,
                explain("a maximum transfer size of %u bytes asked for, the limit of %s is %u",
                        attributes.max_transfer_bytes, device.name.c_str(), device.max_transfer_bytes)};
    if (attributes.qos != 0) return {Code::InvalidQos, "unsupported quality of service"};
    if (unreliable && (attributes.access.remote_read || attributes.access.remote_atomic))
        return {Code::InvalidRdmaRead, "an unreliable endpoint cannot serve RDMA reads"};
    return {};
}

Status check_endpoint(const backend::EndpointInit& init, const DeviceAttributes& device) noexcept {
    if (const Status status = check_attributes(init.attributes, device); !status.ok()) return status;
    if (const std::uint32_t depth = std::max(init.send_depth, init.receive_depth); depth > device.max_queue_depth)
        return {Code::InvalidParameter, explain("a queue of %u requests asked for, max_queue_depth of %s is %u", depth,
                                                device.name.c_str(), device.max_queue_depth)};
    if (init.max_sges > device.max_sges)
        return {Code::InvalidParameter, explain("%u pieces per request asked for, max_sges of %s is %u", init.max_sges,
                                                device.name.c_str(), device.max_sges)};
    return {};
}

Status check_local_host(const HostAddress& host, const DeviceAttributes& device) noexcept {
    return host == device.host
               ? Status()
               : Status(Code::InvalidParameter,
                        explain("the local address %s is not that of %s, which is %s", text_of(host).c_str(),
                                device.name.c_str(), text_of(device.host).c_str()));
}

Status check_completions(std::uint32_t capacity, const DeviceAttributes& device) noexcept {
    const bool fits = capacity != 0 && capacity <= device.max_completions;
    return fits ? Status()
                : Status(Code::InvalidParameter,
                         explain("a completion queue of %u entries asked for, max_completions of %s is %u", capacity,
                                 device.name.c_str(), device.max_completions));
}

Status check_shared_depth(std::uint32_t depth, const DeviceAttributes& device) noexcept {
    const bool fits = depth != 0 && depth <= device.max_queue_depth;
    return fits ? Status()
                : Status(Code::InvalidParameter,
                         explain("a shared receive queue of %u asked for, max_queue_depth of %s is %u", depth,
                                 device.name.c_str(), device.max_queue_depth));
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
