// SPDX-License-Identifier: BSD-3-Clause
// Endpoints, which listen for connection requests.
#include <cerrno>
#include <memory>
#include <utility>

#include "api/rpma/address.hpp"
#include "api/rpma/conn_req.hpp"
#include "api/rpma/handles.hpp"
#include "api/rpma/log.hpp"
#include "api/rpma/peer.hpp"
#include "core/base/address_text.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/internals.hpp"
#include "core/explain.hpp"
#include "viaduct/device.hpp"

namespace viaduct::rpma {

class Ep final : public WithHandle<Ep, rpma_ep, 10> {
public:
    static constexpr const char* invalid_handle = no_ep;

    Ep(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<Listener> listener)
        : domain_(std::move(domain)), listener_(std::move(listener)) {
        Internals::users(*domain_).add();
    }
    ~Ep() { Internals::users(*domain_).remove(); }

    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }
    int fd() const noexcept { return listener_->fd(); }

    /// Takes the next request, or waits for one. WouldBlock: the descriptor is non-blocking, or a signal interrupted
    /// the wait.
    Result<Owned<ConnectionRequest>> next_request();

private:
    bool await_arrival() const;

    /// How long a requester may take to send its request after it has connected.
    static constexpr std::chrono::milliseconds arrival_timeout{100};

    const std::shared_ptr<ProtectionDomain> domain_;
    const std::unique_ptr<Listener> listener_;
};

/// Signals do not end this wait, because the descriptor has told the program that there is a request.
bool Ep::await_arrival() const {
    const Deadline deadline = Deadline::after(arrival_timeout);
    bool arrived = false;
    while (!arrived && !deadline.passed() && !wait_closed()) arrived = await_readable(fd(), deadline);
    return arrived;
}

Result<Owned<ConnectionRequest>> Ep::next_request() {
    for (bool patient = true;;) {
        // Programs that do not wait expect a request when the descriptor is readable, but it only means that there may
        // be one.
        const bool arrived = await_readable(fd(), Deadline::now());
        auto request = listener_->next_request();
        if (request.ok() || request.status().code() != Code::WouldBlock) return request;
        const bool arriving = arrived && request.status().sys_errno() == EINPROGRESS && !blocks(fd());
        if (arriving && std::exchange(patient, false) && await_arrival()) continue;
        const Status status = await_readable_soon(fd(), Internals::poller(*domain_->device()));
        if (!status.ok()) return status;
    }
}

}  // namespace viaduct::rpma

using namespace viaduct;
using namespace viaduct::rpma;

namespace {

int listen(const Peer& peer, const char* host, const char* port, rpma_ep** ep) {
    Device& device = *peer.domain()->device();
    const auto local = find_local_host(host, peer.device(), device.attributes());
    if (!local.ok()) return failed(local.status());
    if (!(local.value() == device.attributes().host))
        return failed({Code::InvalidParameter, explain("%s is not the address of the peer's device, which is %s", host,
                                                       text_of(device.attributes().host).c_str())});
    const auto service = find_service(port);
    if (!service.ok()) return failed(service.status());
    auto listener = device.listen({.host = local.value(), .service = service.value()}, Sharing::Exclusive);
    if (!listener.ok()) return failed(listener.status());
    hand_over(std::make_unique<Ep>(peer.domain(), std::move(*listener)), ep);
    log(RPMA_LOG_LEVEL_NOTICE, {}, "listening on %s:%s\n", host, port);
    return 0;
}

/// Rejects a request that cannot be handled, so that the requester learns of it immediately.
int to_conn_req(Owned<ConnectionRequest> request, const Ep& ep, const ConnSettings& settings, rpma_conn_req** req) try {
    std::unique_ptr<Conn> conn;
    if (const int result = Conn::create(ep.domain(), settings, conn); result != 0) {
        if (const Status status = request->reject({}); !status.ok())
            viaduct::log(LogLevel::Info, "a connection request was not answered: %s", status.where());
        return result;
    }
    hand_over(std::make_unique<ConnReq>(std::move(conn), std::move(request)), req);
    log(RPMA_LOG_LEVEL_NOTICE, {}, "incoming connection request\n");
    return 0;
} catch (const std::bad_alloc&) {
    if (request != nullptr) (void)request->reject({});
    throw;
}

/// Requests that no connection of librpma can answer are refused here: the program could do nothing else.
int take_request(Ep& ep, const ConnSettings& settings, rpma_conn_req** req) {
    while (true) {
        auto request = ep.next_request();
        if (request.status().code() == Code::WouldBlock) return RPMA_E_NO_EVENT;
        if (!request.ok()) return failed(request.status());
        const Status agreement = compatible(Conn::attributes, (*request)->remote_attributes());
        if (agreement.ok()) return to_conn_req(std::move(*request), ep, settings, req);
        viaduct::log(LogLevel::Info, "refused the request of %s: %s",
                     text_of((*request)->remote_address().host).c_str(), agreement.where());
        (void)(*request)->conflict(Conn::attributes);
    }
}

}  // namespace

int rpma_ep_listen(struct rpma_peer* peer, const char* addr, const char* port, struct rpma_ep** ep_ptr) {
    return Entry::on<Peer>(
        peer,
        {{addr != nullptr, "addr is NULL"}, {port != nullptr, "port is NULL"}, {ep_ptr != nullptr, "ep_ptr is NULL"}},
        [&](const Peer& owner) { return listen(owner, addr, port, ep_ptr); });
}

int rpma_ep_shutdown(struct rpma_ep** ep_ptr) { return destroy<Ep>(ep_ptr); }

int rpma_ep_get_fd(const struct rpma_ep* ep, int* fd) { return get_value<Ep>(ep, fd, "fd is NULL", &Ep::fd); }

int rpma_ep_next_conn_req(struct rpma_ep* ep, const struct rpma_conn_cfg* cfg, struct rpma_conn_req** req_ptr) {
    return Entry::wait<Ep>(ep, {}, [&](Ep& endpoint) {
        ConnSettings settings;
        if (!failure::require({{req_ptr != nullptr, "req_ptr is NULL"}, {read_settings(cfg, settings), no_cfg}}))
            return RPMA_E_INVAL;
        return take_request(endpoint, settings, req_ptr);
    });
}
