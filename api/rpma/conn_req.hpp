// SPDX-License-Identifier: BSD-3-Clause
// Requests for connections, outgoing and incoming.
#pragma once

#include <memory>

#include "api/rpma/conn.hpp"
#include "core/backend.hpp"

namespace viaduct::rpma {

/// Lives until it is answered or sent.
class ConnReq {
public:
    ConnReq(std::unique_ptr<Conn> conn, const Address& remote)
        : remote_(remote), conn_(std::move(conn)), registration_(this) {}
    /// Takes the request last: where this throws it is still the caller's.
    ConnReq(std::unique_ptr<Conn> conn, std::unique_ptr<ConnectionRequest>&& incoming);

    /// Refuses an incoming request that nobody answered.
    ~ConnReq() { (void)refuse(); }

    Conn& conn() noexcept { return *conn_; }
    const Conn& conn() const noexcept { return *conn_; }
    rpma_conn_req* handle() const noexcept { return static_cast<rpma_conn_req*>(registration_.handle()); }

    /// On success the connection leaves the request.
    int connect(const PrivateData& private_data, std::unique_ptr<Conn>& conn) noexcept;

    /// Ok also for an outgoing request.
    Status refuse() noexcept;

private:
    const Address remote_;                         // of an outgoing request
    std::unique_ptr<ConnectionRequest> incoming_;  // null for an outgoing request
    std::unique_ptr<Conn> conn_;
    Registration<ConnReq> registration_;
};

}  // namespace viaduct::rpma
