// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/cr.hpp"

#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/service_point.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"
#include "core/base/internals.hpp"

namespace viaduct::dat {

Cr::Cr(Ia& ia, const ConnectionRequest& request, std::uint16_t local_port)
    : Object(ia, ia.provider(), handle_type),
      remote_port_(port_of(request.remote_address().service)),
      local_port_(local_port) {
    remote_ = SocketAddress(request.remote_address().host, static_cast<std::uint16_t>(remote_port_)).storage;
    const auto bytes = request.private_data().span();
    private_data_.assign(bytes.begin(), bytes.end());
}

void Cr::query(DAT_CR_PARAM_MASK mask, DAT_CR_PARAM& param) noexcept {
    if ((mask & DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR) != 0)
        param.remote_ia_address_ptr = reinterpret_cast<DAT_IA_ADDRESS_PTR>(&remote_);
    if ((mask & DAT_CR_FIELD_REMOTE_PORT_QUAL) != 0) param.remote_port_qual = remote_port_;
    if ((mask & DAT_CR_FIELD_PRIVATE_DATA_SIZE) != 0)
        param.private_data_size = static_cast<DAT_COUNT>(private_data_.size());
    if ((mask & DAT_CR_FIELD_PRIVATE_DATA) != 0)
        param.private_data = private_data_.empty() ? nullptr : private_data_.data();
    if ((mask & DAT_CR_FIELD_LOCAL_EP_HANDLE) != 0) param.local_ep_handle = ep_.handle();
}

Owned<ConnectionRequest> Cr::release() noexcept {
    if (ep_ && ep_->provider_made()) {
        const DAT_EP_HANDLE handle = ep_.handle();
        ep_ = {};
        (void)claim<Ep>(handle);
    } else if (ep_) {
        (void)ep_->follow(EndpointTrigger::Release);
        ep_ = {};
    }
    return std::move(request_);
}

void Cr::refuse(const char* why) noexcept {
    const auto request = release();
    if (request == nullptr) return;
    log_refusal(*request, why);
    (void)Internals::refuse(*request);
}

void Cr::close() noexcept { refuse("its IA was closed"); }

// ---- Entry points -------------------------------------------------------------------------------------------------

namespace {

/// Calls a function that answers a request, and destroys the request if it has succeeded.
DAT_RETURN answer(DAT_CR_HANDLE cr, auto function) {
    const DAT_RETURN result = guarded([&] {
        const WaitOn<Cr> call(cr, OnSignal::Continue);  // claim(), in another thread, waits for it
        Cr* request = call.object();
        return request == nullptr ? invalid_handle(DAT_INVALID_HANDLE_CR) : request->answer(function);
    });
    if (result == success) (void)claim<Cr>(cr);
    return result;
}

}  // namespace

DAT_RETURN calls::cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT private_data_size,
                            const DAT_PVOID private_data) {
    return answer(cr, [&](Cr& request) {
        Ia& ia = request.ia();
        Ep* endpoint = resolve_in<Ep>(ia, ep);
        const bool brings_one = ep != DAT_HANDLE_NULL;
        if (brings_one && endpoint == nullptr)
            return invalid_handle(DAT_INVALID_HANDLE_EP, "ep_handle is no endpoint of this adapter");
        if (brings_one && request.ep() != nullptr)
            return invalid_handle(DAT_INVALID_HANDLE_EP, "the request has an endpoint already");
        if (!brings_one) endpoint = request.ep();
        if (endpoint == nullptr)
            return invalid_handle(DAT_INVALID_HANDLE_EP, "the request has no endpoint, and ep_handle is null");
        PrivateData data;
        if (const DAT_RETURN result = read_private_data(ia, private_data_size, private_data, DAT_INVALID_ARG3, data);
            result != success)
            return result;
        if (const DAT_RETURN result = endpoint->accept(request, data); result != success) return result;
        ia.note(DCNT_IA_SP_CR_ACCEPTED);
        return success;
    });
}

DAT_RETURN calls::cr_reject(DAT_CR_HANDLE cr, DAT_COUNT private_data_size, const DAT_PVOID private_data) {
    return answer(cr, [&](Cr& request) {
        Ia& ia = request.ia();
        PrivateData data;
        if (const DAT_RETURN result = read_private_data(ia, private_data_size, private_data, DAT_INVALID_ARG2, data);
            result != success)
            return result;
        if (const Status status = request.request().reject(data); !status.ok()) return to_return(status);
        ia.note(DCNT_IA_SP_CR_REJECTED);
        log_refusal(request.request(), "rejected by the program");
        return success;
    });
}

DAT_RETURN calls::cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL handoff) {
    return answer(cr, [&](Cr& request) {
        Ia& ia = request.ia();
        return ia.acceptor().hold([&] {
            Psp* target = ia.find<Psp>([&](const Psp& psp) { return psp.conn_qual() == handoff; });
            if (target == nullptr)
                return invalid_parameter(DAT_INVALID_ARG2, explain("the adapter has no public service point %llu",
                                                                   static_cast<unsigned long long>(handoff)));
            auto redirected = request.release();
            Internals::redirect(*redirected, service_of(port_of(handoff)));
            (void)target->receive(std::move(redirected));
            return success;
        });
    });
}

}  // namespace viaduct::dat
