// SPDX-License-Identifier: BSD-3-Clause
// Connection requests returned by VipConnectWait (guide, section 3.3).
#pragma once

#include "api/vipl/handles.hpp"
#include "core/backend.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::vipl {

/// An incoming request. Exists until it is answered.
class Connection final : public WithHandle<Connection, 5> {
public:
    explicit Connection(Nic& nic) : nic_(nic) {}

    /// Waits for the threads that are about to answer it.
    ~Connection() { end_calls(); }

    void keep(Owned<ConnectionRequest> request) noexcept { request_ = std::move(request); }

    Nic& nic() const noexcept { return nic_; }
    ConnectionRequest& request() noexcept { return *request_; }

    Mutex answering;  ///< held by the thread that answers

private:
    Nic& nic_;
    Owned<ConnectionRequest> request_;
};

}  // namespace viaduct::vipl
