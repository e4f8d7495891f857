// SPDX-License-Identifier: BSD-3-Clause
// Setup and teardown of the connections of endpoints.
#include "api/udat/provider/cr.hpp"
#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"
#include "core/base/address_text.hpp"
#include "core/frontend.hpp"
#include "core/log.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {
namespace {

/// Whether the program expects the event, so that only those who debug it want to read of it.
bool is_orderly(DAT_EVENT_NUMBER number) noexcept {
    return number == DAT_CONNECTION_EVENT_ESTABLISHED || number == DAT_CONNECTION_EVENT_DISCONNECTED;
}

/// Converts the socket address of a peer.
DAT_RETURN find_host(const sockaddr* address, HostAddress& host) noexcept {
    const HostAddress found = host_of(address);
    if (found.empty())
        return failed(error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED),
                      explain("address family %d is neither IPv4 nor IPv6", address->sa_family));
    const std::uint8_t first = found.span().front();
    const bool is_ipv4 = found.size() == 4;
    const bool multicast = is_ipv4 ? first >= 224 : first == 0xFF;
    if (multicast)
        return failed(error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED),
                      explain("%s is a multicast address", text_of(found).c_str()));
    host = found;
    return success;
}

}  // namespace

// ---- Events for the consumer --------------------------------------------------------------------------------------

void Ep::tell(DAT_EVENT_NUMBER number, const char* why) noexcept {
    log(is_orderly(number) ? LogLevel::Debug : LogLevel::Info, "endpoint %p: %s%s%s", handle(), name_of(number),
        *why == '\0' ? "" : ": ", why);
    DAT_EVENT event{};
    event.event_number = number;
    auto& data = event.event_data.connect_event_data;
    data.ep_handle = handle();
    const bool answer = number == DAT_CONNECTION_EVENT_ESTABLISHED || number == DAT_CONNECTION_EVENT_PEER_REJECTED;
    data.private_data_size = answer ? private_data_size_.load() : 0;
    data.private_data = data.private_data_size == 0 ? nullptr : private_data_.data();
    if (!connect_evd_.try_post(event) && connect_evd_)
        ia().report(DAT_ASYNC_ERROR_EVD_OVERFLOW, connect_evd_.handle(), DAT_EVD_OVERFLOW_ERROR);
}

/// Reports the end of a connection or of a connection attempt once.
void Ep::end(DAT_EVENT_NUMBER number, const char* why) noexcept {
    if (progress_ == Progress::None) return;
    const bool requested = progress_ == Progress::Cancelled || progress_ == Progress::Disconnecting;
    const bool was_connected = progress_ == Progress::Connected || progress_ == Progress::Disconnecting;
    progress_ = Progress::None;
    // A consumer that requested the disconnect expects DISCONNECTED, even if the connection ends otherwise meanwhile.
    if (requested) number = DAT_CONNECTION_EVENT_DISCONNECTED;
    if (number == DAT_CONNECTION_EVENT_BROKEN && !was_connected) number = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
    tell(number, why);
    // At this point all receives that the endpoint took from a shared queue have completed.
    if (was_connected && srq_) ia().report(DAT_ASYNC_ERROR_EP_BROKEN, handle(), DAT_EP_OTHER_ERROR);
}

void Ep::on_connection_event(const ConnectionEvent& event) noexcept {
    const LockGuard lock(events_lock_);
    const DAT_EVENT_NUMBER number = to_event_number(event);
    if (event.kind == ConnectionEventKind::Established || event.kind == ConnectionEventKind::Rejected) {
        const auto bytes = event.private_data.span();
        std::ranges::copy(bytes, private_data_.begin());
        private_data_size_ = static_cast<DAT_COUNT>(bytes.size());
    }
    if (event.kind == ConnectionEventKind::Established) {
        progress_ = progress_ == Progress::Cancelled ? Progress::Disconnecting : Progress::Connected;
        follow_redirection(event.remote_address.service);
        tell(number, "");
        return;
    }
    const bool in_vain = event.kind == ConnectionEventKind::TimedOut && remote_.timeout != DAT_TIMEOUT_INFINITE;
    end(number,
        in_vain ? explain("%s; given up after %g s", event.why.c_str(), remote_.timeout / 1e6) : event.why.c_str());
}

/// The answer may come from another service than the requested one (dat_cr_handoff).
void Ep::follow_redirection(const Bytes<Address::max_service>& service) noexcept {
    const std::uint16_t port = port_of(service);
    if (port == 0 || port == remote_.port) return;
    remote_.port = port;
    remote_.qual = port;
}

void Ep::settle() noexcept {
    const LockGuard lock(parts_lock_);
    if (endpoint_ != nullptr) Internals::flush(*endpoint_);
}

void Ep::set_peer(std::uint16_t local_port, const Request& remote, const sockaddr_storage& address) noexcept {
    local_port_ = local_port;
    remote_address_ = address;
    const LockGuard lock(events_lock_);
    remote_ = remote;
}

/// Initializes the state for a new connection, on either side.
void Ep::begin() noexcept {
    const LockGuard lock(events_lock_);
    progress_ = Progress::Connecting;
    private_data_size_ = 0;
}

// ---- The active side ----------------------------------------------------------------------------------------------

/// What an endpoint lacks that cannot be connected.
const char* Ep::lacks() const noexcept {
    return endpoint_ == nullptr ? "the endpoint has no protection zone" : "the endpoint has no connect EVD";
}

DAT_RETURN Ep::connect(const Request& request) {
    counters.add(DCNT_EP_CONNECT);
    const LockGuard connecting(connecting_);
    if (state() != EndpointState::Unconnected) return wrong_state();
    if (endpoint_ == nullptr || !connect_evd_) return invalid_state(DAT_INVALID_STATE_EP_NOTREADY, lacks());
    const Status status = ask(request);
    return status.ok() ? success : to_return(status);
}

/// Connects from a port of its own. If another process uses the port, which is possible over RDMA devices, tries the
/// next.
Status Ep::ask(const Request& request) {
    constexpr int attempts = 100;
    Status status;
    for (int i = 0; i < attempts; ++i) {
        const std::uint16_t port = Ia::next_port();
        set_peer(port, request, SocketAddress(request.host, request.port).storage);
        begin();
        status = endpoint_->connect({.local = {.host = ia().device()->attributes().host, .service = service_of(port)},
                                     .remote = {.host = request.host, .service = service_of(request.port)},
                                     .private_data = request.private_data,
                                     .deadline = deadline_after(request.timeout),
                                     .framing = Framing::Bare,
                                     .ends_if_dropped = true,
                                     .grace = short_grace});
        if (status.code() != Code::Busy) break;
    }
    return status;
}

// ---- The passive side ---------------------------------------------------------------------------------------------

DAT_RETURN Ep::reserve() noexcept {
    const LockGuard connecting(connecting_);
    if (state() != EndpointState::Unconnected || !follow(EndpointTrigger::Reserve)) return wrong_state();
    provider_made_ = false;  // if it was, the consumer has got it with an earlier request
    return success;
}

void Ep::set_peer(Cr& cr) noexcept {
    set_peer(cr.local_port(),
             {.host = cr.request().remote_address().host,
              .port = static_cast<std::uint16_t>(cr.remote_port()),
              .qual = cr.remote_port()},
             cr.remote());
}

DAT_RETURN Ep::accept(Cr& cr, const PrivateData& private_data) {
    const LockGuard connecting(connecting_);
    Ep* const reserved = cr.ep();
    const EndpointState before = reserved == nullptr ? EndpointState::Unconnected : EndpointState::TentativePending;
    if (state() != before) return wrong_state();
    // An endpoint without a protection zone or connect EVD cannot be connected.
    if (endpoint_ == nullptr || !connect_evd_) return invalid_handle(DAT_INVALID_HANDLE_EP, lacks());
    cr.let_go();
    set_peer(cr);
    begin();
    (void)follow(EndpointTrigger::Release);
    const Status status = endpoint_->accept(cr.request(), private_data);
    if (status.ok()) return success;
    const LockGuard lock(events_lock_);
    if (status.code() == Code::InvalidState || status.code() == Code::InvalidParameter ||
        status.code() == Code::NoResources) {
        cr.reserve(reserved);
        if (reserved != nullptr) (void)(follow(EndpointTrigger::Reserve) && follow(EndpointTrigger::RequestArrived));
        progress_ = Progress::None;
        return to_return(status);
    }
    // The peer has given up, or the connection to it failed.
    end(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, Reason(status).c_str());
    return success;
}

// ---- Disconnecting ------------------------------------------------------------------------------------------------

DAT_RETURN Ep::disconnect(DAT_CLOSE_FLAGS flags) noexcept {
    counters.add(DCNT_EP_DISCONNECT);
    // Another thread may be about to connect the endpoint, which this call does not prevent.
    if (const EndpointState before = state(); before == EndpointState::Unconnected ||
                                              before == EndpointState::Reserved ||
                                              before == EndpointState::TentativePending)
        return wrong_state();
    {
        const LockGuard lock(events_lock_);
        if (progress_ == Progress::Connecting) progress_ = Progress::Cancelled;
        if (progress_ == Progress::Connected) progress_ = Progress::Disconnecting;
    }
    switch (state()) {
        case EndpointState::Disconnected: settle(); return success;
        case EndpointState::Unconnected:
        case EndpointState::Reserved:
        case EndpointState::TentativePending: return wrong_state();
        case EndpointState::DisconnectPending:
            if (flags == DAT_CLOSE_GRACEFUL_FLAG) return success;
            break;
        case EndpointState::Connected:
            // An event reports the disconnect once the posted operations have completed.
            if (flags == DAT_CLOSE_GRACEFUL_FLAG && endpoint_->drain_and_disconnect().ok()) return success;
            break;
        case EndpointState::PassivePending:
        case EndpointState::ActivePending: break;
    }
    endpoint_->terminate();
    const LockGuard lock(events_lock_);
    end(DAT_CONNECTION_EVENT_DISCONNECTED, "this side disconnected");
    return success;
}

// ---- Entry points -------------------------------------------------------------------------------------------------

DAT_RETURN calls::ep_connect(Ep& endpoint, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout,
                             DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos,
                             DAT_CONNECT_FLAGS flags) {
    if (address == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "remote_ia_address is null");
    if (timeout == 0) return invalid_parameter(DAT_INVALID_ARG4, "timeout is 0");
    Ep::Request request{.port = port_of(qual), .qual = qual, .timeout = timeout};
    if (const DAT_RETURN result =
            read_private_data(endpoint.ia(), private_data_size, private_data, DAT_INVALID_ARG5, request.private_data);
        result != success)
        return result;
    if (qos != DAT_QOS_BEST_EFFORT || flags != DAT_CONNECT_DEFAULT_FLAG)
        return failed(error(DAT_MODEL_NOT_SUPPORTED),
                      explain("quality of service 0x%x or connect flags 0x%x", unsigned{qos}, unsigned{flags}));
    if (const DAT_RETURN result = find_host(address, request.host); result != success) return result;
    return endpoint.connect(request);
}

DAT_RETURN calls::ep_dup_connect(Ep& endpoint, DAT_EP_HANDLE dup, DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
                                 const DAT_PVOID private_data, DAT_QOS qos) {
    const Ep* duplicated = resolve<Ep>(dup);
    if (duplicated == nullptr) return invalid_handle(DAT_INVALID_HANDLE_EP, "dup_ep_handle is no endpoint");
    if (timeout == 0) return invalid_parameter(DAT_INVALID_ARG3, "timeout is 0");
    if (duplicated->state() != EndpointState::Connected) return duplicated->wrong_state();
    Ep::Request request = duplicated->remote();
    request.timeout = timeout;
    if (const DAT_RETURN result =
            read_private_data(endpoint.ia(), private_data_size, private_data, DAT_INVALID_ARG4, request.private_data);
        result != success)
        return result;
    if (qos != DAT_QOS_BEST_EFFORT)
        return failed(error(DAT_MODEL_NOT_SUPPORTED), explain("quality of service 0x%x", unsigned{qos}));
    return endpoint.connect(request);
}

DAT_RETURN calls::ep_common_connect(Ep& endpoint, DAT_IA_ADDRESS_PTR address, DAT_TIMEOUT timeout,
                                    DAT_COUNT private_data_size, const DAT_PVOID private_data) {
    if (address == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "remote_ia_address is null");
    if (timeout == 0) return invalid_parameter(DAT_INVALID_ARG3, "timeout is 0");
    Ep::Request request{.timeout = timeout};
    if (const DAT_RETURN result =
            read_private_data(endpoint.ia(), private_data_size, private_data, DAT_INVALID_ARG4, request.private_data);
        result != success)
        return result;
    if (const DAT_RETURN result = find_host(address, request.host); result != success) return result;
    request.port = port_of(address);
    request.qual = request.port;
    return endpoint.connect(request);
}

DAT_RETURN calls::ep_disconnect(Ep& endpoint, DAT_CLOSE_FLAGS flags) {
    if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
        return invalid_parameter(DAT_INVALID_ARG2, explain("disconnect_flags is 0x%x", unsigned{flags}));
    return endpoint.disconnect(flags);
}

}  // namespace viaduct::dat
