// SPDX-License-Identifier: BSD-3-Clause
// Connection requests returned by VipConnectWait (guide, section 3.3).
#pragma once

#include <memory>

#include "api/vipl/handles.hpp"
#include "core/backend.hpp"

namespace viaduct::vipl {

/// An incoming request. Exists until it is answered.
class Connection final : public WithHandle<Connection, 5> {
public:
    static constexpr const char* invalid_handle = no_request;

    explicit Connection(Nic& nic) : nic_(nic) {}

    void keep(std::unique_ptr<ConnectionRequest> request) noexcept { request_ = std::move(request); }

    Nic& nic() const noexcept { return nic_; }
    ConnectionRequest& request() noexcept { return *request_; }

private:
    Nic& nic_;
    std::unique_ptr<ConnectionRequest> request_;
};

}  // namespace viaduct::vipl
