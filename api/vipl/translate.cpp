// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/translate.hpp"

#include <chrono>
#include <cstring>

#include "api/vipl/handles.hpp"
#include "api/vipl/return_name.hpp"

namespace viaduct::vipl {
namespace {

/// Whether the device or the peer failed, not the program's arguments.
bool is_of_device(VIP_RETURN result) noexcept {
    switch (result) {
        case VIP_ERROR_RESOURCE:
        case VIP_TIMEOUT:
        case VIP_REJECT:
        case VIP_INVALID_RELIABILITY_LEVEL:
        case VIP_INVALID_MTU:
        case VIP_INVALID_QOS:
        case VIP_INVALID_RDMAREAD:
        case VIP_ERROR_NAMESERVICE:
        case VIP_NO_MATCH:
        case VIP_NOT_REACHABLE: return true;
        default: return false;
    }
}

VIP_RETURN result_of(const ConnectionEvent& event) noexcept {
    switch (event.kind) {
        case ConnectionEventKind::Established: return VIP_SUCCESS;
        case ConnectionEventKind::Rejected: return event.reason == Code::NoListener ? VIP_NO_MATCH : VIP_REJECT;
        case ConnectionEventKind::TimedOut: return VIP_TIMEOUT;
        case ConnectionEventKind::Conflict: return to_return(event.reason);
        case ConnectionEventKind::Unreachable:
        case ConnectionEventKind::Disconnected:
        case ConnectionEventKind::Lost: return event.reason == Code::Ok ? VIP_NOT_REACHABLE : to_return(event.reason);
    }
    return VIP_ERROR_RESOURCE;
}

}  // namespace

VIP_RETURN failed(const Status& status) noexcept { return failed(to_return(status.code()), status); }

void Api::report(const Call& call, const void* handle, VIP_RETURN result) noexcept {
    if (result == VIP_NOT_DONE || result == VIP_DESCRIPTOR_ERROR) return;
    if (result == VIP_TIMEOUT && !failure::has_reason()) return failure::forget();  // of a wait
    if (result == VIP_INVALID_PARAMETER && handles.was_inherited(handle)) failure::because(inherited_handle);
    failure::report(is_of_device(result) ? LogLevel::Info : LogLevel::Debug,
                    {.call = call.function, .object = handle, .code = result, .name = name_of(result)});
}

VIP_RETURN to_return(Code code) noexcept {
    switch (code) {
        case Code::Ok: return VIP_SUCCESS;
        case Code::WouldBlock: return VIP_NOT_DONE;
        case Code::InvalidParameter: return VIP_INVALID_PARAMETER;
        case Code::InvalidState: return VIP_INVALID_STATE;
        case Code::InvalidReliability: return VIP_INVALID_RELIABILITY_LEVEL;
        case Code::InvalidTransferSize: return VIP_INVALID_MTU;
        case Code::InvalidQos: return VIP_INVALID_QOS;
        case Code::InvalidRdmaRead: return VIP_INVALID_RDMAREAD;
        case Code::NoResources:
        case Code::Busy:
        case Code::QueueFull:
        case Code::PermissionDenied:
        case Code::SystemError: return VIP_ERROR_RESOURCE;
        case Code::TimedOut: return VIP_TIMEOUT;
        case Code::NoListener: return VIP_NO_MATCH;
        case Code::Rejected: return VIP_REJECT;
        case Code::Unreachable: return VIP_NOT_REACHABLE;
        case Code::Unsupported: return VIP_ERROR_NOT_SUPPORTED;
    }
    return VIP_ERROR_RESOURCE;
}

VIP_RETURN to_return(const ConnectionEvent& event) noexcept { return failed(result_of(event), event.why); }

VIP_VI_STATE to_vi_state(EndpointState state) noexcept {
    switch (state) {
        case EndpointState::Unconnected:
        case EndpointState::Reserved: return VIP_STATE_IDLE;
        case EndpointState::TentativePending:
        case EndpointState::PassivePending:
        case EndpointState::ActivePending: return VIP_STATE_CONNECT_PENDING;
        case EndpointState::Connected: return VIP_STATE_CONNECTED;
        case EndpointState::DisconnectPending:
        case EndpointState::Disconnected: return VIP_STATE_ERROR;
    }
    return VIP_STATE_ERROR;
}

const char* state_name(VIP_VI_STATE state) noexcept {
    switch (state) {
        case VIP_STATE_IDLE: return "VIP_STATE_IDLE";
        case VIP_STATE_CONNECTED: return "VIP_STATE_CONNECTED";
        case VIP_STATE_CONNECT_PENDING: return "VIP_STATE_CONNECT_PENDING";
        case VIP_STATE_ERROR: break;
    }
    return "VIP_STATE_ERROR";
}

VIP_ERROR_CODE to_error_code(AsyncEventKind kind) noexcept {
    switch (kind) {
        case AsyncEventKind::ReceiveQueueEmpty: return VIP_ERROR_RECVQ_EMPTY;
        case AsyncEventKind::RemoteWriteProtection: return VIP_ERROR_RDMAW_PROT;
        case AsyncEventKind::RemoteWriteAborted: return VIP_ERROR_RDMAW_ABORT;
        case AsyncEventKind::RemoteReadProtection: return VIP_ERROR_RDMAR_PROT;
        case AsyncEventKind::CompletionQueueOverrun:
        case AsyncEventKind::SharedReceiveQueueLimit: return VIP_ERROR_CATASTROPHIC;
    }
    return VIP_ERROR_CATASTROPHIC;
}

const char* to_string(VIP_ERROR_CODE code) noexcept {
    switch (code) {
        case VIP_ERROR_POST_DESC: return "the descriptor cannot be posted";
        case VIP_ERROR_CONN_LOST: return "connection lost";
        case VIP_ERROR_RECVQ_EMPTY: return "message without a posted receive";
        case VIP_ERROR_VI_OVERRUN: return "work queue overrun";
        case VIP_ERROR_RDMAW_PROT: return "incoming RDMA write refused";
        case VIP_ERROR_RDMAW_DATA: return "incoming RDMA write corrupted";
        case VIP_ERROR_RDMAW_ABORT: return "incoming RDMA write incomplete";
        case VIP_ERROR_RDMAR_PROT: return "incoming RDMA read refused";
        case VIP_ERROR_COMP_PROT: return "completion could not be written";
        case VIP_ERROR_RDMA_TRANSPORT: return "incoming RDMA operation failed in transport";
        case VIP_ERROR_CATASTROPHIC: return "catastrophic error";
    }
    return "unknown error";
}

VIP_RELIABILITY_LEVEL to_level(Reliability reliability) noexcept {
    switch (reliability) {
        case Reliability::Unreliable: return VIP_SERVICE_UNRELIABLE;
        case Reliability::ReliableDelivery: return VIP_SERVICE_RELIABLE_DELIVERY;
        case Reliability::ReliableReception: return VIP_SERVICE_RELIABLE_RECEPTION;
    }
    return 0;
}

bool to_reliability(VIP_RELIABILITY_LEVEL level, Reliability& reliability) noexcept {
    for (const auto candidate :
         {Reliability::Unreliable, Reliability::ReliableDelivery, Reliability::ReliableReception}) {
        if (to_level(candidate) != level) continue;
        reliability = candidate;
        return true;
    }
    return false;
}

VIP_VI_ATTRIBUTES to_vi_attributes(const EndpointAttributes& attributes, const DeviceAttributes& nic) noexcept {
    return {.ReliabilityLevel = to_level(attributes.reliability),
            .MaxTransferSize = transfer_limit(attributes, nic),
            .QoS = reinterpret_cast<VIP_QOS>(attributes.qos),
            .EnableRdmaWrite = to_boolean(attributes.access.remote_write),
            .EnableRdmaRead = to_boolean(attributes.access.remote_read)};
}

Deadline to_deadline(VIP_ULONG timeout_ms) noexcept {
    if (timeout_ms == VIP_INFINITE) return Deadline::never();
    if (timeout_ms == 0) return Deadline::now();
    return Deadline::after(std::chrono::duration<VIP_ULONG, std::milli>(timeout_ms));
}

bool to_address(const VIP_NET_ADDRESS& from, const DeviceAttributes& nic, Address& to) noexcept {
    if (from.HostAddressLen != nic.host.size() || from.DiscriminatorLen > nic.max_service_bytes) return false;
    const VIP_UINT8* host = from.HostAddress;
    to.host = Bytes<Address::max_host>({host, from.HostAddressLen});
    to.service = Bytes<Address::max_service>({host + from.HostAddressLen, from.DiscriminatorLen});
    return true;
}

bool fits(const Address& address, const DeviceAttributes& nic) noexcept {
    return address.host.size() == nic.host.size() && address.service.size() <= nic.max_service_bytes;
}

void to_net_address(const Address& from, VIP_NET_ADDRESS& to) noexcept {
    to.HostAddressLen = static_cast<VIP_UINT16>(from.host.size());
    to.DiscriminatorLen = static_cast<VIP_UINT16>(from.service.size());
    VIP_UINT8* host = to.HostAddress;
    std::memcpy(host, from.host.span().data(), from.host.size());
    std::memcpy(host + from.host.size(), from.service.span().data(), from.service.size());
}

}  // namespace viaduct::vipl
