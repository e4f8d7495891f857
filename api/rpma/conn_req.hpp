// SPDX-License-Identifier: BSD-3-Clause
// Outgoing and incoming connection requests.
#pragma once

#include <memory>

#include "api/rpma/conn.hpp"
#include "core/backend.hpp"

namespace viaduct::rpma {

/// Exists until it is answered or sent.
class ConnReq final : public WithHandle<ConnReq, rpma_conn_req, 8> {
public:
    static constexpr const char* invalid_handle = no_req;

    ConnReq(std::unique_ptr<Conn> conn, const Address& remote) : remote_(remote), conn_(std::move(conn)) {}
    /// Takes ownership of the request last: if this throws, the caller still owns it.
    ConnReq(std::unique_ptr<Conn> conn, Owned<ConnectionRequest>&& incoming);

    /// Rejects an incoming request that has not been answered.
    ~ConnReq() { refuse(); }

    Conn& conn() noexcept { return *conn_; }
    const Conn& conn() const noexcept { return *conn_; }

    /// Null: an outgoing request, or one that has been answered.
    const ConnectionRequest* incoming() const noexcept { return incoming_.get(); }

    /// On success the connection is moved out of the request.
    int connect(const PrivateData& private_data, std::unique_ptr<Conn>& conn) noexcept;

    /// Does nothing for an outgoing request. It does not matter if the requester cannot be notified.
    void refuse() noexcept;

private:
    const Address remote_;               // of outgoing requests only
    Owned<ConnectionRequest> incoming_;  // null for outgoing requests
    std::unique_ptr<Conn> conn_;
};

}  // namespace viaduct::rpma
