// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/connection.hpp"

#include "api/support/interruption.hpp"
#include "api/vipl/nic.hpp"
#include "api/vipl/translate.hpp"
#include "api/vipl/vi.hpp"
#include "core/base/address_text.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/internals.hpp"
#include "core/explain.hpp"
#include "core/log.hpp"

using namespace viaduct;
using namespace viaduct::vipl;

namespace {

using Model = ConnectParameters::Model;

/// Reads an address. Leaves a reason if it cannot be used.
bool read_address(const Nic& nic, const char* name, const VIP_NET_ADDRESS& from, Address& to) noexcept {
    if (to_address(from, nic.attributes(), to)) return true;
    failure::because(
        explain("%s: HostAddressLen is %u and DiscriminatorLen %u; this NIC has addresses of %zu bytes and "
                "discriminators of at most %u",
                name, from.HostAddressLen, from.DiscriminatorLen, nic.attributes().host.size(),
                nic.attributes().max_service_bytes));
    return false;
}

/// Reads an address that must be the address of this NIC (guide, section 3.3.1 and others).
bool read_local_address(const Nic& nic, const VIP_NET_ADDRESS& from, Address& to) noexcept {
    if (!read_address(nic, "LocalAddr", from, to)) return false;
    if (to.host == nic.attributes().host) return true;
    failure::because(explain("LocalAddr is %s, the address of this NIC is %s", text_of(to.host).c_str(),
                             text_of(nic.attributes().host).c_str()));
    return false;
}

/// Waits for a connection request for the service. The service is announced only during the wait, so that clients fail
/// immediately if nobody is waiting (guide, section 6.7). WouldBlock: the wait was interrupted.
Result<Owned<ConnectionRequest>> wait_for_request(Nic& nic, const Address& local, const Deadline& deadline) {
    auto listener = nic.device()->listen(local);
    if (!listener.ok()) return listener.status();
    while (true) {
        auto request = (*listener)->next_request();
        if (request.ok() && !fits((*request)->remote_address(), nic.attributes())) {
            log(LogLevel::Warning, "VIPL: a client whose address is longer than those of this NIC is rejected");
            (void)(*request)->reject({});
            continue;
        }
        if (request.ok() || request.status().code() != Code::WouldBlock) return request;
        if (deadline.passed()) return Status(Code::TimedOut, "");  // expected, so no reason
        if (interrupted() || wait_closed()) return request;
        (void)await_readable_soon((*listener)->fd(), next_look(deadline), Internals::poller(*nic.device()));
    }
}

EventPoller& poller_of(Vi& vi) noexcept { return Internals::poller(*vi.nic().device()); }

/// Creates a handle for a request. If memory runs out, the request is rejected immediately.
Connection& keep(Nic& nic, Owned<ConnectionRequest> request) try {
    auto& connection = nic.connections.add(std::make_unique<Connection>(nic));
    connection.keep(std::move(request));
    return connection;
} catch (const std::bad_alloc&) {
    (void)request->reject({});
    throw;
}

/// The part that is common to both kinds of request: checks the arguments, starts the request, and stores its number.
VIP_RETURN begin_request(Vi& vi, Model model, const VIP_NET_ADDRESS* local, const VIP_NET_ADDRESS* remote,
                         VIP_ULONG timeout, std::uint64_t& number) noexcept {
    const Nic& nic = vi.nic();
    ConnectParameters parameters;
    if (!failure::require({{local != nullptr, "LocalAddr is NULL"},
                           {remote != nullptr, "RemoteAddr is NULL"},
                           {timeout != 0, "Timeout is 0"}}))
        return VIP_INVALID_PARAMETER;
    if (!read_local_address(nic, *local, parameters.local) ||
        !read_address(nic, "RemoteAddr", *remote, parameters.remote))
        return VIP_INVALID_PARAMETER;
    parameters.model = model;
    parameters.deadline = to_deadline(timeout);
    return vi.connect(parameters, number);
}

/// Returns the outcome of a request. The level of a connected VI applies to both ends: peers of other APIs have none.
VIP_RETURN finish_request(Vi& vi, const Result<ConnectionEvent>& outcome, VIP_VI_ATTRIBUTES& remote) {
    if (!outcome.ok()) return to_return(outcome.status());
    const VIP_RETURN result = to_return(outcome.value());
    if (result == VIP_NOT_REACHABLE) vi.flush_if_unreachable();
    if (result != VIP_SUCCESS) return result;
    remote = to_vi_attributes(outcome.value().remote, vi.nic().attributes());
    remote.ReliabilityLevel = vi.attributes().ReliabilityLevel;
    return result;
}

/// Runs the body of a call that answers a request. One thread at a time does; the others find that the request exists
/// no longer if it was answered.
VIP_RETURN answer(VIP_CONN_HANDLE handle, auto&& body, const Call& call = {}) {
    const auto answer_in_turn = [&] {
        std::unique_ptr<Connection> answered;  // waits for other threads, so it is destroyed last
        const WaitOn<Connection> turn(handle, Api::on_signal);
        Connection* connection = turn.object();
        if (connection == nullptr) return failed(VIP_INVALID_PARAMETER, no_request);
        const LockGuard lock(connection->answering);
        if (resolve<Connection>(handle) != connection) return failed(VIP_INVALID_PARAMETER, no_request);
        const VIP_RETURN result = body(*connection);
        if (result != VIP_SUCCESS && result != VIP_TIMEOUT) return result;  // it can be answered again
        connection->revoke();
        answered = connection->nic().connections.remove(*connection);
        return result;
    };
    return Entry::run(handle, answer_in_turn, call);
}

}  // namespace

VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS* RemoteAddr, VIP_VI_ATTRIBUTES* RemoteViAttribs,
                          VIP_CONN_HANDLE* ConnHandle) {
    return Entry::wait<Nic>(NicHandle,
                            {{LocalAddr != nullptr, "LocalAddr is NULL"},
                             {RemoteAddr != nullptr, "RemoteAddr is NULL"},
                             {RemoteViAttribs != nullptr, "RemoteViAttribs is NULL"},
                             {ConnHandle != nullptr, "ConnHandle is NULL"}},
                            [&](Nic& nic) {
                                Address local;
                                if (!read_local_address(nic, *LocalAddr, local)) return VIP_INVALID_PARAMETER;
                                auto request = wait_for_request(nic, local, to_deadline(Timeout));
                                if (!request.ok()) return to_return(request.status());
                                auto& connection = keep(nic, std::move(*request));
                                to_net_address(connection.request().remote_address(), *RemoteAddr);
                                *RemoteViAttribs =
                                    to_vi_attributes(connection.request().remote_attributes(), nic.attributes());
                                *ConnHandle = connection.handle();
                                return VIP_SUCCESS;
                            });
}

VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle) {
    return answer(ConnHandle, [&](Connection& connection) {
        Vi* vi = resolve<Vi>(ViHandle);
        if (!failure::require({{vi != nullptr, no_vi}})) return VIP_INVALID_PARAMETER;
        if (&connection.nic() != &vi->nic())
            return failed(VIP_INVALID_PARAMETER, "the request arrived at another NIC than that of the VI");
        return vi->accept(connection.request());
    });
}

VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle) {
    return answer(ConnHandle, [&](Connection& connection) {
        const AddressText peer = text_of(connection.request().remote_address().host);
        const Status status = connection.request().reject({});
        if (!status.ok()) return to_return(status);
        log(LogLevel::Info, "VipConnectReject(%p): the program rejected the request of %s", ConnHandle, peer.c_str());
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr, VIP_NET_ADDRESS* RemoteAddr,
                             VIP_ULONG Timeout, VIP_VI_ATTRIBUTES* RemoteViAttribs) {
    return Entry::wait<Vi>(ViHandle, {{RemoteViAttribs != nullptr, "RemoteViAttribs is NULL"}}, [&](Vi& vi) {
        std::uint64_t number = 0;
        const VIP_RETURN begun = begin_request(vi, Model::ClientServer, LocalAddr, RemoteAddr, Timeout, number);
        if (begun != VIP_SUCCESS) return begun;
        return finish_request(vi, vi.attempt.wait(Model::ClientServer, number, poller_of(vi)), *RemoteViAttribs);
    });
}

VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle) {
    return Entry::on<Vi>(ViHandle, {}, [&](Vi& vi) {
        vi.disconnect();
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr, VIP_NET_ADDRESS* RemoteAddr,
                                 VIP_ULONG Timeout) {
    return Entry::on<Vi>(ViHandle, {}, [&](Vi& vi) {
        std::uint64_t number = 0;
        return begin_request(vi, Model::PeerToPeer, LocalAddr, RemoteAddr, Timeout, number);
    });
}

VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttribs) {
    return Entry::on<Vi>(ViHandle, {{RemoteViAttribs != nullptr, "RemoteViAttribs is NULL"}}, [&](Vi& vi) {
        return finish_request(vi, vi.attempt.try_take(Model::PeerToPeer), *RemoteViAttribs);
    });
}

VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttribs) {
    return Entry::wait<Vi>(ViHandle, {{RemoteViAttribs != nullptr, "RemoteViAttribs is NULL"}}, [&](Vi& vi) {
        return finish_request(vi, vi.attempt.wait(Model::PeerToPeer, vi.attempt.number(), poller_of(vi)),
                              *RemoteViAttribs);
    });
}
