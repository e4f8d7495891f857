// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues.
#pragma once

#include <memory>

#include "api/rpma/cq.hpp"
#include "api/rpma/handles.hpp"
#include "core/shared_receive_queue.hpp"

namespace viaduct::rpma {

class Srq {
public:
    Srq(std::shared_ptr<ProtectionDomain> domain, std::shared_ptr<SharedReceiveQueue> queue, std::uint32_t depth,
        std::unique_ptr<Cq> rcq)
        : domain_(std::move(domain)),
          queue_(std::move(queue)),
          depth_(depth),
          rcq_(std::move(rcq)),
          registration_(this) {}

    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }
    const std::shared_ptr<SharedReceiveQueue>& queue() const noexcept { return queue_; }
    std::uint32_t depth() const noexcept { return depth_; }
    Cq* rcq() const noexcept { return rcq_.get(); }
    rpma_srq* handle() const noexcept { return static_cast<rpma_srq*>(registration_.handle()); }

private:
    const std::shared_ptr<ProtectionDomain> domain_;
    const std::shared_ptr<SharedReceiveQueue> queue_;
    const std::uint32_t depth_;
    const std::unique_ptr<Cq> rcq_;
    Registration<Srq> registration_;
};

}  // namespace viaduct::rpma
