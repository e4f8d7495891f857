// SPDX-License-Identifier: BSD-3-Clause
#include "core/shared_receive_queue.hpp"

namespace viaduct {

SharedReceiveQueue::SharedReceiveQueue(std::shared_ptr<ProtectionDomain> domain,
                                       std::unique_ptr<backend::SharedReceiveQueue> queue) noexcept
    : domain_(std::move(domain)), queue_(std::move(queue)) {
    domain_->users.add();
}

SharedReceiveQueue::~SharedReceiveQueue() { domain_->users.remove(); }

Result<std::shared_ptr<SharedReceiveQueue>> SharedReceiveQueue::create(std::shared_ptr<ProtectionDomain> domain,
                                                                       std::uint32_t depth, std::uint64_t context) {
    auto queue = domain->device()->backend().create_shared_receive_queue(domain->backend(), depth, context);
    if (!queue.ok()) return queue.status();
    return std::shared_ptr<SharedReceiveQueue>(new SharedReceiveQueue(std::move(domain), std::move(*queue)));
}

}  // namespace viaduct
