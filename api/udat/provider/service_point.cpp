// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/service_point.hpp"

#include <random>

#include "api/support/failure.hpp"
#include "api/udat/provider/cr.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"
#include "core/base/address_text.hpp"
#include "core/base/internals.hpp"
#include "core/log.hpp"

namespace viaduct::dat {

// ---- Common parts -------------------------------------------------------------------------------------------------

void log_refusal(const ConnectionRequest& request, const char* why) noexcept {
    const Address from = request.remote_address();
    log(LogLevel::Info, "refused the request of %s, %s: %s", text_of(from.host).c_str(), text_of(from.service).c_str(),
        why);
}

void refuse_unheard(DAT_CR_HANDLE cr, const char* why) noexcept {
    if (const auto unheard = claim<Cr>(cr)) unheard->refuse(why);
}

ServicePoint::ServicePoint(Ia& ia, DAT_HANDLE_TYPE type, DAT_CONN_QUAL qual, Evd& evd)
    : Object(ia, ia.provider(), type), conn_qual_(qual), evd_(&evd) {}

DAT_RETURN ServicePoint::listen() {
    ia().acceptor().await_quiet();  // a reserved service point whose request the consumer has already seen may still be
                                    // listening
    const Address local{.host = ia().device()->attributes().host, .service = service_of(port_of(conn_qual_))};
    auto listener = ia().device()->listen(local, Sharing::Exclusive);
    if (listener.status().code() == Code::Busy) return failed(error(DAT_CONN_QUAL_IN_USE), listener.status().where());
    if (listener.status().code() == Code::PermissionDenied)
        return failed(error(DAT_CONN_QUAL_UNAVAILABLE), listener.status());
    if (!listener.ok()) return to_return(listener.status());
    listener_ = std::move(*listener);
    return success;
}

void ServicePoint::stop() noexcept {
    if (listener_ != nullptr) ia().acceptor().remove(*this);
}

ServicePoint::Answer ServicePoint::on_request() noexcept {
    while (true) {
        auto request = listener_->next_request();
        if (request.status().code() == Code::Unreachable) {
            ia().report_lost_device();
            return Answer::Lost;
        }
        if (!request.ok()) return request.status().code() == Code::NoResources ? Answer::Later : Answer::Taken;
        const EndpointAttributes own = Ep::core_attributes(ia().device()->attributes());
        if (const Status agreement = compatible(own, (*request)->remote_attributes()); !agreement.ok()) {
            log_refusal(**request, agreement.where());
            (void)(*request)->conflict(own);
            continue;
        }
        const bool reported = receive(std::move(*request));
        if (type() == DAT_HANDLE_TYPE_RSP) return reported ? Answer::Finished : Answer::Taken;
    }
}

void ServicePoint::report(DAT_CR_HANDLE cr) noexcept {
    DAT_EVENT event{};
    event.event_number = DAT_CONNECTION_REQUEST_EVENT;
    auto& data = event.event_data.cr_arrival_event_data;
    data.sp_handle = sp_handle();
    data.local_ia_address_ptr = ia().address();
    data.conn_qual = conn_qual_;
    data.cr_handle = cr;
    data.truncate_flag = DAT_FALSE;
    evd_->post_request(event);
}

bool ServicePoint::receive(Owned<ConnectionRequest> request) noexcept {
    if (!evd_->expect_request()) {
        log_refusal(*request, explain("the EVD is full, its length is %d", evd_->qlen()));
        (void)Internals::refuse(*request);
        return false;
    }
    try {
        auto made = std::make_unique<Cr>(ia(), *request, port_of(conn_qual_));
        Cr& cr = *made;
        const DAT_CR_HANDLE handle = ia().adopt(std::move(made));
        try {
            cr.reserve(provide_endpoint());  // last, because it could not be undone if a later step failed
        } catch (...) {
            (void)claim<Cr>(handle);
            throw;
        }
        cr.keep(std::move(request));
        if (cr.ep() != nullptr) cr.ep()->set_peer(cr);
        report(handle);
        return true;
    } catch (const std::exception&) {
        evd_->give_up_request();
        log_refusal(*request, "out of memory");
        (void)request->reject({});  // out of memory: reject, so that the requester learns of it immediately
        return false;
    }
}

Ep* ServicePoint::make_endpoint() { return resolve<Ep>(ia().adopt(Ep::create_for_request(ia()))); }

/// Without a listener, the destructor does not remove it from the acceptor, which has dropped it.
void ServicePoint::finish() noexcept {
    if (const auto own = claim<Rsp>(handle())) static_cast<ServicePoint&>(*own).listener_.reset();
}

/// Transfers a service point to its IA and accepts requests, which may destroy it immediately.
template <class T>
DAT_RETURN ServicePoint::launch(std::unique_ptr<T> point, DAT_HANDLE& handle) {
    T& started = *point;
    if (const DAT_RETURN result = started.listen(); result != success) return result;
    const DAT_HANDLE adopted = started.ia().adopt(std::move(point));
    try {
        started.ia().acceptor().add(started);
    } catch (...) {
        (void)claim<T>(adopted);
        throw;
    }
    handle = adopted;
    return success;
}

// ---- Kinds of service points --------------------------------------------------------------------------------------

Ep* Psp::provide_endpoint() { return flags_ == DAT_PSP_PROVIDER_FLAG ? make_endpoint() : nullptr; }

DAT_RETURN Rsp::reserve(Ep* ep) {
    if (ep == nullptr) return success;
    if (const DAT_RETURN result = ep->reserve(); result != success) return result;
    ep_ = Use<Ep>(ep);
    return success;
}

Rsp::~Rsp() {
    stop();
    if (ep_) (void)ep_->follow(EndpointTrigger::Release);
}

Ep* Rsp::provide_endpoint() {
    if (ep_handle_ == DAT_HANDLE_NULL) return make_endpoint();
    (void)ep_->follow(EndpointTrigger::RequestArrived);
    return std::exchange(ep_, {}).get();  // the thread that answers may free the endpoint before this service point is
                                          // destroyed
}

Csp::Csp(Ia& ia, const DAT_COMM& comm, std::uint16_t port, Evd& evd)
    : ServicePoint(ia, handle_type, port, evd),
      comm_(comm),
      address_(SocketAddress(ia.device()->attributes().host, port).storage) {}

void Psp::query(DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM& param) const noexcept {
    if ((mask & DAT_PSP_FIELD_IA_HANDLE) != 0) param.ia_handle = ia().number();
    if ((mask & DAT_PSP_FIELD_CONN_QUAL) != 0) param.conn_qual = conn_qual();
    if ((mask & DAT_PSP_FIELD_EVD_HANDLE) != 0) param.evd_handle = evd();
    if ((mask & DAT_PSP_FIELD_PSP_FLAGS) != 0) param.psp_flags = flags_;
}

void Rsp::query(DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM& param) const noexcept {
    if ((mask & DAT_RSP_FIELD_IA_HANDLE) != 0) param.ia_handle = ia().number();
    if ((mask & DAT_RSP_FIELD_CONN_QUAL) != 0) param.conn_qual = conn_qual();
    if ((mask & DAT_RSP_FIELD_EVD_HANDLE) != 0) param.evd_handle = evd();
    if ((mask & DAT_RSP_FIELD_EP_HANDLE) != 0) param.ep_handle = ep_handle_;
}

void Csp::query(DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM& param) noexcept {
    if ((mask & DAT_CSP_FIELD_IA_HANDLE) != 0) param.ia_handle = ia().number();
    if ((mask & DAT_CSP_FIELD_COMM) != 0) param.comm = &comm_;
    if ((mask & DAT_CSP_FIELD_IA_ADDRESS) != 0) param.address_ptr = reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address_);
    if ((mask & DAT_CSP_FIELD_EVD_HANDLE) != 0) param.evd_handle = evd();
}

// ---- Entry points -------------------------------------------------------------------------------------------------

namespace {

DAT_RETURN find_evd(const Ia& owner, DAT_EVD_HANDLE evd, Evd*& dispatcher) noexcept {
    dispatcher = resolve_in<Evd>(owner, evd);
    if (dispatcher == nullptr || !dispatcher->takes(DAT_EVD_CR_FLAG))
        return invalid_handle(DAT_INVALID_HANDLE_EVD_CR,
                              "evd_handle is no EVD of this adapter that was created with DAT_EVD_CR_FLAG");
    return success;
}

/// Checks the common arguments of the calls that create a public service point.
DAT_RETURN check_psp(const Ia& owner, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags, const DAT_PSP_HANDLE* psp,
                     Evd*& dispatcher) noexcept {
    if (const DAT_RETURN result = find_evd(owner, evd, dispatcher); result != success) return result;
    if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
        return invalid_parameter(DAT_INVALID_ARG4, explain("psp_flags is %d", static_cast<int>(flags)));
    return psp == nullptr ? invalid_parameter(DAT_INVALID_ARG5, "psp_handle is null") : success;
}

}  // namespace

DAT_RETURN calls::psp_create(Ia& owner, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
                             DAT_PSP_HANDLE* psp) {
    Evd* dispatcher = nullptr;
    if (const DAT_RETURN result = check_psp(owner, evd, flags, psp, dispatcher); result != success) return result;
    return ServicePoint::launch(std::make_unique<Psp>(owner, qual, *dispatcher, flags), *psp);
}

DAT_RETURN calls::psp_create_any(Ia& owner, DAT_CONN_QUAL* qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
                                 DAT_PSP_HANDLE* psp) {
    Evd* dispatcher = nullptr;
    if (const DAT_RETURN result = check_psp(owner, evd, flags, psp, dispatcher); result != success) return result;
    if (qual == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "conn_qual is null");
    constexpr std::uint16_t first = 49152;  // the range of dynamic ports (RFC 6335)
    constexpr std::uint16_t count = 65535 - first;
    const std::uint32_t start = std::random_device()();
    for (std::uint32_t i = 0; i < count; ++i) {
        const DAT_CONN_QUAL candidate = first + (start + i) % count;
        const DAT_RETURN result =
            ServicePoint::launch(std::make_unique<Psp>(owner, candidate, *dispatcher, flags), *psp);
        if (DAT_GET_TYPE(result) == DAT_CONN_QUAL_IN_USE) continue;
        if (result != success) return result;
        *qual = candidate;
        owner.note(DCNT_IA_PSP_CREATE_ANY);
        return success;
    }
    return failed(error(DAT_CONN_QUAL_UNAVAILABLE),
                  explain("all ports from %u to %u are in use", unsigned{first}, first + count - 1u));
}

DAT_RETURN calls::psp_free(DAT_PSP_HANDLE psp) { return destroy<Psp>(psp); }

DAT_RETURN calls::rsp_create(Ia& owner, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd, DAT_RSP_HANDLE* rsp) {
    Evd* dispatcher = nullptr;
    Ep* endpoint = resolve_in<Ep>(owner, ep);
    if (const DAT_RETURN result = find_evd(owner, evd, dispatcher); result != success) return result;
    if (ep != DAT_HANDLE_NULL && endpoint == nullptr)
        return invalid_handle(DAT_INVALID_HANDLE_EP, "ep_handle is no endpoint of this adapter");
    if (rsp == nullptr) return invalid_parameter(DAT_INVALID_ARG5, "rsp_handle is null");
    auto created = std::make_unique<Rsp>(owner, qual, handle_of(endpoint), *dispatcher);
    if (const DAT_RETURN result = created->reserve(endpoint); result != success) return result;
    return ServicePoint::launch(std::move(created), *rsp);
}

DAT_RETURN calls::rsp_free(DAT_RSP_HANDLE rsp) { return destroy<Rsp>(rsp); }

DAT_RETURN calls::csp_create(Ia& owner, DAT_COMM* comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd,
                             DAT_CSP_HANDLE* csp) {
    Evd* dispatcher = nullptr;
    if (const DAT_RETURN result = find_evd(owner, evd, dispatcher); result != success) return result;
    if (comm == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "comm is null");
    if (address == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "ia_address is null");
    if (csp == nullptr) return invalid_parameter(DAT_INVALID_ARG5, "csp_handle is null");
    if (!is_supported(*comm) || comm->domain != address->sa_family)
        return failed(error(DAT_COMM_NOT_SUPPORTED),
                      "comm is not a byte stream over IP, or ia_address differs from it");
    const HostAddress host = host_of(address);
    if (host.empty())
        return failed(error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED),
                      explain("address family %d is neither IPv4 nor IPv6", address->sa_family));
    const bool any = std::ranges::all_of(host.span(), [](std::uint8_t byte) { return byte == 0; });
    if (!any && !(host == owner.device()->attributes().host))
        return failed(error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE),
                      explain("%s is not the address of the adapter, which is %s", text_of(host).c_str(),
                              text_of(owner.device()->attributes().host).c_str()));
    const DAT_RETURN result =
        ServicePoint::launch(std::make_unique<Csp>(owner, *comm, port_of(address), *dispatcher), *csp);
    return DAT_GET_TYPE(result) == DAT_CONN_QUAL_IN_USE ? error(DAT_PORT_IN_USE) : result;
}

DAT_RETURN calls::csp_free(DAT_CSP_HANDLE csp) { return destroy<Csp>(csp); }

}  // namespace viaduct::dat
