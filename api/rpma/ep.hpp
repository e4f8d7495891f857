// SPDX-License-Identifier: BSD-3-Clause
// Endpoints, which listen for connection requests.
#pragma once

#include <memory>

#include "api/rpma/handles.hpp"
#include "core/base/internals.hpp"
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

    const std::shared_ptr<ProtectionDomain> domain_;
    const std::unique_ptr<Listener> listener_;
};

}  // namespace viaduct::rpma
