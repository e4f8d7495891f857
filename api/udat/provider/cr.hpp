// SPDX-License-Identifier: BSD-3-Clause
// Connection requests that wait for an answer.
#pragma once

#include <memory>
#include <vector>

#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/object.hpp"

namespace viaduct::dat {

class Cr final : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_CR;

    /// `local_port`: that of the service point.
    Cr(Ia& ia, const ConnectionRequest& request, std::uint16_t local_port);

    /// The request that it was made for, once nothing can fail any more.
    void keep(std::unique_ptr<ConnectionRequest> request) noexcept { request_ = std::move(request); }

    /// The only endpoint that may accept the request. Null, and before: the consumer brings one.
    void reserve(Ep* ep) noexcept { ep_ = Use<Ep>(ep); }

    /// The request has got its answer: the consumer may free the endpoint.
    void let_go() noexcept { ep_ = {}; }

    ConnectionRequest& request() noexcept { return *request_; }
    Ep* ep() const noexcept { return ep_.get(); }
    const sockaddr_storage& remote() const noexcept { return remote_; }
    DAT_PORT_QUAL remote_port() const noexcept { return remote_port_; }
    std::uint16_t local_port() const noexcept { return local_port_; }
    void query(DAT_CR_PARAM_MASK mask, DAT_CR_PARAM& param) noexcept;

    /// Takes the request away, for another service point. The endpoint that was meant for it is free again.
    std::unique_ptr<ConnectionRequest> release() noexcept;

private:
    std::unique_ptr<ConnectionRequest> request_;
    Use<Ep> ep_;
    sockaddr_storage remote_;
    DAT_PORT_QUAL remote_port_;
    const std::uint16_t local_port_;
    std::vector<std::uint8_t> private_data_;  // the consumer may write to it
};

}  // namespace viaduct::dat
