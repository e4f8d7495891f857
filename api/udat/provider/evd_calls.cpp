// SPDX-License-Identifier: BSD-3-Clause
// The calls on event dispatchers, except dat_evd_dequeue(3DAT).
#include "api/udat/provider/cno.hpp"
#include "api/udat/provider/evd.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"

namespace viaduct::dat {
namespace {

constexpr int all_streams = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;

}  // namespace

DAT_RETURN calls::evd_create(Ia& owner, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
                             DAT_EVD_HANDLE* evd) {
    Cno* notified = resolve_in<Cno>(owner, cno);
    if (min_qlen <= 0) return invalid_parameter(DAT_INVALID_ARG2, explain("evd_min_qlen is %d", min_qlen));
    if (cno != DAT_HANDLE_NULL && notified == nullptr)
        return invalid_handle(DAT_INVALID_HANDLE_CNO, "cno_handle is no CNO of this adapter");
    if (flags == 0 || (flags & ~all_streams) != 0)
        return invalid_parameter(DAT_INVALID_ARG4, explain("evd_flags is 0x%x", unsigned{flags}));
    if (evd == nullptr) return invalid_parameter(DAT_INVALID_ARG5, "evd_handle is null");
    return Evd::create(owner, min_qlen, notified, flags, *evd);
}

DAT_RETURN calls::evd_modify_cno(Evd& dispatcher, DAT_CNO_HANDLE cno) {
    Cno* notified = resolve_in<Cno>(dispatcher.ia(), cno);
    if (cno != DAT_HANDLE_NULL && notified == nullptr)
        return invalid_handle(DAT_INVALID_HANDLE_CNO, "cno_handle is no CNO of this adapter");
    dispatcher.set_cno(notified);
    return success;
}

DAT_RETURN calls::evd_enable(Evd& dispatcher) {
    dispatcher.set_enabled(true);
    return success;
}

DAT_RETURN calls::evd_disable(Evd& dispatcher) {
    dispatcher.set_enabled(false);
    return success;
}

DAT_RETURN calls::evd_set_unwaitable(Evd& dispatcher) {
    dispatcher.set_waitable(false);
    return success;
}

DAT_RETURN calls::evd_clear_unwaitable(Evd& dispatcher) {
    dispatcher.set_waitable(true);
    return success;
}

DAT_RETURN calls::evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event,
                           DAT_COUNT* nmore) {
    const WaitOn<Evd> call(evd, OnSignal::EndUnlessRestarting);
    Evd* dispatcher = call.object();
    if (dispatcher == nullptr) return invalid_handle(DAT_NO_SUBTYPE);
    if (threshold <= 0 || threshold > dispatcher->qlen())
        return invalid_parameter(
            DAT_INVALID_ARG3, explain("threshold is %d, the length of the EVD is %d", threshold, dispatcher->qlen()));
    if (event == nullptr) return invalid_parameter(DAT_INVALID_ARG4, "event is null");
    if (nmore == nullptr) return invalid_parameter(DAT_INVALID_ARG5, "nmore is null");
    return dispatcher->wait(deadline_after(timeout), static_cast<std::size_t>(threshold), *event, *nmore);
}

DAT_RETURN calls::evd_resize(Evd& dispatcher, DAT_COUNT min_qlen) {
    if (min_qlen <= 0) return invalid_parameter(DAT_INVALID_ARG2, explain("evd_min_qlen is %d", min_qlen));
    return dispatcher.resize(min_qlen);
}

DAT_RETURN calls::evd_post_se(Evd& dispatcher, const DAT_EVENT* event) {
    if (event == nullptr || event->event_number != DAT_SOFTWARE_EVENT)
        return invalid_parameter(DAT_INVALID_ARG2, "event is no DAT_SOFTWARE_EVENT");
    if (!dispatcher.takes(DAT_EVD_SOFTWARE_FLAG))
        return invalid_parameter(DAT_INVALID_ARG1, "the EVD was created without DAT_EVD_SOFTWARE_FLAG");
    if (dispatcher.try_post(*event)) return success;
    return failed(error(DAT_QUEUE_FULL), explain("the EVD is full, its length is %d", dispatcher.qlen()));
}

DAT_RETURN calls::evd_free(Evd& dispatcher) {
    dispatcher.ia().acceptor().await_quiet();
    if (dispatcher.users.in_use())
        return invalid_state(DAT_INVALID_STATE_EVD_IN_USE, "an endpoint, a service point or an adapter uses the EVD");
    const auto freed = claim<Evd>(dispatcher.handle());
    if (freed == nullptr) return invalid_handle(DAT_NO_SUBTYPE);
    freed->close();
    freed->drop_events();
    return success;
}

}  // namespace viaduct::dat
