// SPDX-License-Identifier: BSD-3-Clause
// Connection requests returned by VipConnectWait (guide, section 3.3).
#pragma once

#include <memory>

#include "api/vipl/handles.hpp"
#include "core/backend.hpp"

namespace viaduct::vipl {

/// An incoming request. Exists until it is answered.
class Connection {
public:
    explicit Connection(Nic& nic) : nic_(nic), registration_(this) {}

    void keep(std::unique_ptr<ConnectionRequest> request) noexcept { request_ = std::move(request); }

    Nic& nic() const noexcept { return nic_; }
    ConnectionRequest& request() noexcept { return *request_; }
    VIP_CONN_HANDLE handle() const noexcept { return registration_.handle(); }

private:
    Nic& nic_;
    std::unique_ptr<ConnectionRequest> request_;
    Registration<Connection> registration_;
};

}  // namespace viaduct::vipl
