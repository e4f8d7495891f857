// SPDX-License-Identifier: BSD-3-Clause
// Endpoints, which listen for connection requests.
#pragma once

#include <memory>

#include "api/rpma/handles.hpp"
#include "core/device.hpp"

namespace viaduct::rpma {

class Ep {
public:
    Ep(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<Listener> listener)
        : domain_(std::move(domain)), listener_(std::move(listener)), registration_(this) {
        domain_->users.add();
    }
    ~Ep() { domain_->users.remove(); }

    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }
    rpma_ep* handle() const noexcept { return static_cast<rpma_ep*>(registration_.handle()); }
    int fd() const noexcept { return listener_->fd(); }

    /// Takes the next request, or waits for one. WouldBlock: the descriptor is non-blocking, or a signal interrupted
    /// the wait.
    Result<std::unique_ptr<ConnectionRequest>> next_request();

private:
    bool await_arrival() const;

    const std::shared_ptr<ProtectionDomain> domain_;
    const std::unique_ptr<Listener> listener_;
    Registration<Ep> registration_;
};

}  // namespace viaduct::rpma
