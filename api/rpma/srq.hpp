// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues.
#pragma once

#include <memory>

#include "api/rpma/cq.hpp"
#include "api/rpma/handles.hpp"
#include "viaduct/shared_receive_queue.hpp"

namespace viaduct::rpma {

class Srq final : public WithHandle<Srq, rpma_srq, 7> {
public:
    static constexpr const char* invalid_handle = "srq is not a shared receive queue";

    Srq(std::shared_ptr<ProtectionDomain> domain, std::shared_ptr<SharedReceiveQueue> queue, std::uint32_t depth,
        std::unique_ptr<Cq> rcq)
        : domain_(std::move(domain)), queue_(std::move(queue)), depth_(depth), rcq_(std::move(rcq)) {}

    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }
    const std::shared_ptr<SharedReceiveQueue>& queue() const noexcept { return queue_; }
    std::uint32_t depth() const noexcept { return depth_; }
    Cq* rcq() const noexcept { return rcq_.get(); }

private:
    const std::shared_ptr<ProtectionDomain> domain_;
    const std::shared_ptr<SharedReceiveQueue> queue_;
    const std::uint32_t depth_;
    const std::unique_ptr<Cq> rcq_;
};

}  // namespace viaduct::rpma
