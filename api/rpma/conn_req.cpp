// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/conn_req.hpp"

#include "api/rpma/address.hpp"
#include "api/rpma/log.hpp"
#include "api/rpma/peer.hpp"
#include "core/base/address_text.hpp"
#include "core/log.hpp"

namespace viaduct::rpma {

ConnReq::ConnReq(std::unique_ptr<Conn> conn, Owned<ConnectionRequest>&& incoming) : conn_(std::move(conn)) {
    conn_->set_private_data(incoming->private_data());
    incoming_ = std::move(incoming);  // nothing can fail after this
}

int ConnReq::connect(const PrivateData& private_data, std::unique_ptr<Conn>& conn) noexcept {
    const int result =
        incoming_ == nullptr ? conn_->connect(remote_, private_data) : conn_->accept(*incoming_, private_data);
    if (result != 0) return result;
    incoming_.reset();
    conn = std::move(conn_);
    return 0;
}

void ConnReq::refuse() noexcept {
    if (const auto request = std::move(incoming_)) (void)request->reject({});
}

}  // namespace viaduct::rpma

using namespace viaduct;
using namespace viaduct::rpma;

namespace {

int make_request(const Peer& peer, const char* host, const char* port, const ConnSettings& settings,
                 rpma_conn_req** req) {
    const auto reached = find_host(host, *peer.device().provider);
    if (!reached.ok()) return failed(reached.status());
    const auto service = find_service(port);
    if (!service.ok()) return failed(service.status());
    std::unique_ptr<Conn> conn;
    if (const int result = Conn::create(peer.domain(), settings, conn); result != 0) return result;
    const Address remote{.host = reached.value(), .service = service.value()};
    hand_over(std::make_unique<ConnReq>(std::move(conn), remote), req);
    log(RPMA_LOG_LEVEL_NOTICE, {}, "requesting a connection to %s:%s\n", host, port);
    return 0;
}

bool is_sound(const rpma_conn_private_data* data) noexcept {
    return data == nullptr || (data->ptr != nullptr && data->len != 0);
}

PrivateData to_private_data(const rpma_conn_private_data* data) noexcept {
    if (data == nullptr) return {};
    return PrivateData({static_cast<const std::uint8_t*>(data->ptr), data->len});
}

int refuse_unanswered(ConnReq& req) noexcept {
    if (const auto* request = req.incoming())
        viaduct::log(LogLevel::Info, "rpma_conn_req_delete: the program rejected the request of %s",
                     text_of(request->remote_address().host).c_str());
    return 0;  // its destruction refuses it
}

}  // namespace

int rpma_conn_req_new(struct rpma_peer* peer, const char* addr, const char* port, const struct rpma_conn_cfg* cfg,
                      struct rpma_conn_req** req_ptr) {
    return Entry::on<Peer>(
        peer,
        {{addr != nullptr, "addr is NULL"}, {port != nullptr, "port is NULL"}, {req_ptr != nullptr, "req_ptr is NULL"}},
        [&](const Peer& owner) {
            ConnSettings settings;
            if (!read_settings(cfg, settings)) return failed(RPMA_E_INVAL, no_cfg);
            return make_request(owner, addr, port, settings, req_ptr);
        });
}

int rpma_conn_req_delete(struct rpma_conn_req** req_ptr) { return destroy<ConnReq>(req_ptr, refuse_unanswered); }

int rpma_conn_req_connect(struct rpma_conn_req** req_ptr, const struct rpma_conn_private_data* pdata,
                          struct rpma_conn** conn_ptr) {
    return Entry::run(req_ptr == nullptr ? nullptr : *req_ptr, [&] {
        if (!failure::require({{req_ptr != nullptr, "req_ptr is NULL"}})) return RPMA_E_INVAL;
        const auto req = claim<ConnReq>(*req_ptr);
        if (!failure::require({{req != nullptr, no_req}})) return RPMA_E_INVAL;
        *req_ptr = nullptr;  // consumed whatever the outcome
        if (!failure::require({{conn_ptr != nullptr, "conn_ptr is NULL"}, {is_sound(pdata), "pdata is empty"}}))
            return RPMA_E_INVAL;
        std::unique_ptr<Conn> conn;
        const int result = req->connect(to_private_data(pdata), conn);
        if (result == 0) hand_over(std::move(conn), conn_ptr);
        return result;
    });
}

int rpma_conn_req_get_private_data(const struct rpma_conn_req* req, struct rpma_conn_private_data* pdata) {
    return get_value<ConnReq>(req, pdata, "pdata is NULL",
                              [](const ConnReq& request) { return request.conn().private_data(); });
}
