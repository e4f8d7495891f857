// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/translate.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "api/udat/provider/ia.hpp"

namespace viaduct::dat {
namespace {

/// Maps operations without immediate data.
DAT_DTOS to_plain_operation(CompletedOperation operation) noexcept {
    switch (operation) {
        case CompletedOperation::Send: return DAT_DTO_SEND;
        case CompletedOperation::RdmaWrite:
        case CompletedOperation::AtomicWrite: return DAT_DTO_RDMA_WRITE;
        case CompletedOperation::RdmaRead:
        case CompletedOperation::Flush: return DAT_DTO_RDMA_READ;
        case CompletedOperation::FetchAdd: return static_cast<DAT_DTOS>(DAT_IB_DTO_FETCH_ADD);
        case CompletedOperation::CompareSwap: return static_cast<DAT_DTOS>(DAT_IB_DTO_CMP_SWAP);
        case CompletedOperation::BindWindow: return DAT_DTO_BIND_MW;
        case CompletedOperation::Receive: return DAT_DTO_RECEIVE;
        case CompletedOperation::ReceiveRdmaWrite: return static_cast<DAT_DTOS>(DAT_IB_DTO_RECV_IMMED);
    }
    return DAT_DTO_SEND;
}

DAT_DTOS to_operation(const Completion& completion) noexcept {
    if (completion.invalidated) return DAT_DTO_RECEIVE_WITH_INVALIDATE;
    if (completion.with_immediate && completion.operation == CompletedOperation::RdmaWrite)
        return static_cast<DAT_DTOS>(DAT_IB_DTO_RDMA_WRITE_IMMED);
    if (completion.with_immediate && completion.operation == CompletedOperation::Receive)
        return static_cast<DAT_DTOS>(DAT_IB_DTO_RECV_MSG_IMMED);
    return to_plain_operation(completion.operation);
}

/// Returns the type of operations that the InfiniBand extension reports by special events.
DAT_IB_EXT_TYPE to_extension(DAT_DTOS operation) noexcept {
    switch (static_cast<DAT_IB_DTOS>(operation)) {
        case DAT_IB_DTO_FETCH_ADD: return DAT_IB_FETCH_AND_ADD;
        case DAT_IB_DTO_CMP_SWAP: return DAT_IB_CMP_AND_SWAP;
        case DAT_IB_DTO_RECV_IMMED: return DAT_IB_RDMA_WRITE_IMMED_DATA;
        case DAT_IB_DTO_RECV_MSG_IMMED: return DAT_IB_RECV_IMMED_DATA;
        default: return DAT_IB_RDMA_WRITE_IMMED;
    }
}

[[gnu::cold, gnu::noinline]] void write_extension(const Completion& completion, DAT_EVENT& event) noexcept {
    DAT_IB_EXTENSION_EVENT_DATA data{};
    static_assert(sizeof(data) <= sizeof(event.event_extension_data));
    data.type = to_extension(event.event_data.dto_completion_event_data.operation);
    data.status = static_cast<DAT_IB_STATUS>(event.event_data.dto_completion_event_data.status);
    data.val.immed.data = ntohl(completion.immediate);  // see write_with_immediate()
    event.event_number = static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT);
    std::memcpy(event.event_extension_data, &data, sizeof(data));
}

/// Returns false if the bind is not to be reported.
[[gnu::cold, gnu::noinline]] bool write_bind(const Completion& completion, const Bind& bind, DAT_EVENT& event,
                                             bool& quiet) noexcept {
    if (bind.suppressed && completion.code == CompletionCode::Success) return false;
    quiet = bind.quiet;
    event.event_number = DAT_RMR_BIND_COMPLETION_EVENT;
    auto& data = event.event_data.rmr_completion_event_data;
    data.rmr_handle = bind.rmr;
    data.user_cookie = bind.cookie;
    data.status = to_status(completion.code).value;
    return true;
}

constexpr std::uint16_t ports_above = 32001;  // for qualifiers of more than 16 bits
constexpr std::uint16_t first_port_above = 65535 - ports_above;

}  // namespace

Named<DAT_DTO_COMPLETION_STATUS> to_status(CompletionCode code) noexcept {
    switch (code) {
        case CompletionCode::Success: return VIADUCT_NAMED(DAT_DTO_SUCCESS);
        case CompletionCode::LocalFormat: return VIADUCT_NAMED(DAT_DTO_ERR_LOCAL_EP);
        case CompletionCode::LocalLength: return VIADUCT_NAMED(DAT_DTO_ERR_LOCAL_LENGTH);
        case CompletionCode::LocalProtection: return VIADUCT_NAMED(DAT_DTO_ERR_LOCAL_PROTECTION);
        case CompletionCode::RemoteProtection: return VIADUCT_NAMED(DAT_DTO_ERR_REMOTE_ACCESS);
        case CompletionCode::RemoteOperation:
        case CompletionCode::RemoteLength: return VIADUCT_NAMED(DAT_DTO_ERR_REMOTE_RESPONDER);
        case CompletionCode::Transport: return VIADUCT_NAMED(DAT_DTO_ERR_TRANSPORT);
        case CompletionCode::PartialMessage:  // on InfiniBand it never completes and is flushed
        case CompletionCode::Flushed: return VIADUCT_NAMED(DAT_DTO_ERR_FLUSHED);
    }
    return VIADUCT_NAMED(DAT_DTO_ERR_TRANSPORT);
}

bool write_event(const Completion& completion, Binds& binds, DAT_EVENT& event, bool& quiet) noexcept {
    if (completion.operation == CompletedOperation::BindWindow)
        return write_bind(completion, binds.remove(completion), event, quiet);
    event.event_number = DAT_DTO_COMPLETION_EVENT;
    auto& data = event.event_data.dto_completion_event_data;
    data.ep_handle = reinterpret_cast<DAT_EP_HANDLE>(completion.endpoint_context);
    data.user_cookie.as_64 = completion.context;
    data.status = to_status(completion.code).value;
    data.transfered_length = completion.bytes;
    data.operation = to_operation(completion);
    data.rmr_context = completion.invalidated ? completion.immediate : 0;
    if (data.operation >= DAT_DTO_EXTENSION_BASE) [[unlikely]]
        write_extension(completion, event);
    return true;
}

DAT_COUNT to_count(std::uint64_t value) noexcept {
    return static_cast<DAT_COUNT>(std::min<std::uint64_t>(value, std::numeric_limits<DAT_COUNT>::max()));
}

Deadline deadline_after(DAT_TIMEOUT timeout) noexcept {
    if (timeout == 0) return Deadline::now();
    return timeout == DAT_TIMEOUT_INFINITE ? Deadline::never() : Deadline::after(std::chrono::microseconds(timeout));
}

DAT_EVENT_NUMBER to_event_number(const ConnectionEvent& event) noexcept {
    switch (event.kind) {
        case ConnectionEventKind::Established: return DAT_CONNECTION_EVENT_ESTABLISHED;
        case ConnectionEventKind::Rejected:
            return event.reason == Code::NoListener ? DAT_CONNECTION_EVENT_NON_PEER_REJECTED
                                                    : DAT_CONNECTION_EVENT_PEER_REJECTED;
        case ConnectionEventKind::TimedOut: return DAT_CONNECTION_EVENT_TIMED_OUT;
        case ConnectionEventKind::Conflict: return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
        case ConnectionEventKind::Unreachable: return DAT_CONNECTION_EVENT_UNREACHABLE;
        case ConnectionEventKind::Disconnected: return DAT_CONNECTION_EVENT_DISCONNECTED;
        case ConnectionEventKind::Lost: return DAT_CONNECTION_EVENT_BROKEN;
    }
    return DAT_CONNECTION_EVENT_BROKEN;
}

#define EP_STATE(name, subtype) \
    EpState { DAT_EP_STATE_##name, "DAT_EP_STATE_" #name, DAT_INVALID_STATE_EP_##subtype }

EpState to_ep_state(EndpointState state, bool provider_made) noexcept {
    switch (state) {
        case EndpointState::Unconnected: return EP_STATE(UNCONNECTED, UNCONNECTED);
        case EndpointState::Reserved: return EP_STATE(RESERVED, RESERVED);
        case EndpointState::TentativePending:
            return provider_made ? EP_STATE(TENTATIVE_CONNECTION_PENDING, TENTCONNPENDING)
                                 : EP_STATE(PASSIVE_CONNECTION_PENDING, PASSCONNPENDING);
        case EndpointState::PassivePending: return EP_STATE(COMPLETION_PENDING, COMPLPENDING);
        case EndpointState::ActivePending: return EP_STATE(ACTIVE_CONNECTION_PENDING, ACTCONNPENDING);
        case EndpointState::Connected: return EP_STATE(CONNECTED, CONNECTED);
        case EndpointState::DisconnectPending: return EP_STATE(DISCONNECT_PENDING, DISCPENDING);
        case EndpointState::Disconnected: break;
    }
    return EP_STATE(DISCONNECTED, DISCONNECTED);
}

const char* name_of(DAT_EVENT_NUMBER number) noexcept {
    switch (number) {
#define CONSTANT(name) \
    case name:         \
        return #name;
#include "dat_event_number.inc"
#undef CONSTANT
    }
    return "another event";
}

Access to_access(int privileges) noexcept {
    const bool remote_write = (privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG) != 0;
    const bool remote_atomic = (privileges & DAT_IB_MEM_PRIV_REMOTE_ATOMIC) != 0;
    return {
        .remote_write = remote_write,
        .remote_read = (privileges & DAT_MEM_PRIV_REMOTE_READ_FLAG) != 0,
        .remote_atomic = remote_atomic,
        // On RDMA devices, remote write access requires local write access.
        .local_write = (privileges & DAT_MEM_PRIV_LOCAL_WRITE_FLAG) != 0 || remote_write || remote_atomic,
    };
}

DAT_RETURN read_private_data(const Ia& ia, DAT_COUNT size, const void* data, DAT_RETURN_SUBTYPE size_argument,
                             PrivateData& out) noexcept {
    const auto limit = static_cast<DAT_COUNT>(ia.device()->attributes().max_private_data_bytes);
    if (size < 0 || size > limit)
        return invalid_parameter(size_argument,
                                 explain("%d bytes of private data, max_private_data_size is %d", size, limit));
    if (size > 0 && data == nullptr)
        return invalid_parameter(static_cast<DAT_RETURN_SUBTYPE>(size_argument + 1), "private_data is null");
    out = PrivateData({static_cast<const std::uint8_t*>(data), static_cast<std::size_t>(size)});
    return success;
}

bool is_supported(const DAT_COMM& comm) noexcept {
    return (comm.domain == AF_INET || comm.domain == AF_INET6) && comm.type == SOCK_STREAM &&
           (comm.protocol == 0 || comm.protocol == IPPROTO_TCP);
}

std::uint16_t port_of(DAT_CONN_QUAL qual) noexcept {
    return static_cast<std::uint16_t>(qual <= 0xFFFF ? qual : qual % ports_above + first_port_above);
}

}  // namespace viaduct::dat
