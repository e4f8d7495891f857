// SPDX-License-Identifier: BSD-3-Clause
#include "viaduct/shared_receive_queue.hpp"

#include "core/base/internals.hpp"
#include "core/limits.hpp"

namespace viaduct {

SharedReceiveQueue::SharedReceiveQueue(std::shared_ptr<ProtectionDomain> domain,
                                       std::unique_ptr<backend::SharedReceiveQueue> queue, std::uint32_t depth) noexcept
    : domain_(std::move(domain)), queue_(queue.release()), depth_(depth) {
    Internals::users(*domain_).add();
}

SharedReceiveQueue::~SharedReceiveQueue() { Internals::users(*domain_).remove(); }

backend::SharedReceiveQueue& SharedReceiveQueue::backend() const noexcept {
    return static_cast<backend::SharedReceiveQueue&>(*queue_);
}

std::uint32_t SharedReceiveQueue::outstanding() const noexcept { return backend().outstanding(); }

Result<std::shared_ptr<SharedReceiveQueue>> SharedReceiveQueue::create(std::shared_ptr<ProtectionDomain> domain,
                                                                       std::uint32_t depth, std::uint64_t context) {
    const DeviceAttributes& device = domain->device()->attributes();
    if (!device.capabilities.shared_receive_queues)
        return Status(Code::Unsupported, "the device does not support shared receive queues");
    if (const Status status = check_shared_depth(depth, device); !status.ok()) return status;
    auto queue =
        Internals::backend(*domain->device()).create_shared_receive_queue(Internals::backend(*domain), depth, context);
    if (!queue.ok()) return queue.status();
    return std::shared_ptr<SharedReceiveQueue>(new SharedReceiveQueue(std::move(domain), std::move(*queue), depth));
}

Status SharedReceiveQueue::arm_limit(std::uint32_t limit) noexcept {
    const LockGuard lock(mutex_);
    if (limit > depth_) return {Code::InvalidParameter, "invalid limit of a shared receive queue"};
    return backend().arm_limit(limit);
}

Status SharedReceiveQueue::resize(std::uint32_t depth) noexcept {
    const DeviceAttributes& device = domain_->device()->attributes();
    if (const Status status = check_shared_depth(depth, device); !status.ok()) return status;
    const LockGuard lock(mutex_);
    if (depth > depth_ && !device.capabilities.resizes_shared_receives)
        return {Code::Unsupported, "the device cannot enlarge a shared receive queue"};
    const Status status = backend().resize(depth);
    if (status.ok()) depth_ = depth;
    return status;
}

}  // namespace viaduct
