// SPDX-License-Identifier: BSD-3-Clause
// Receive queues that several endpoints share.
#pragma once

#include <memory>

#include "viaduct/detail/data_path.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/device.hpp"

namespace viaduct {

/// Receives for the messages of several endpoints of one protection domain: a message takes the oldest receive.
/// Receives that different endpoints have taken may complete in any order.
class VIADUCT_EXPORT SharedReceiveQueue {
public:
    /// `depth` is the maximum number of receives that wait; `context` is returned in events. InvalidParameter: depth 0
    /// or above the maximum of the device. Unsupported: the device does not support shared receive queues.
    static Result<std::shared_ptr<SharedReceiveQueue>> create(std::shared_ptr<ProtectionDomain> domain,
                                                              std::uint32_t depth, std::uint64_t context = 0);
    ~SharedReceiveQueue();

    /// QueueFull: `depth` receives wait. InvalidParameter: more pieces than the device supports.
    Status post_receive(const ReceiveRequest& request) noexcept {
        std::size_t posted = 0;
        return queue_->post_receive({&request, 1}, posted);
    }

    /// Requests one SharedReceiveQueueLimit event, raised as soon as fewer than `limit` receives are waiting, or
    /// immediately if this is already so. Replaces an earlier limit; 0 removes it. InvalidParameter: above the depth.
    Status arm_limit(std::uint32_t limit) noexcept;

    /// Changes the depth. Busy: more receives wait. InvalidParameter: as create(), or below the limit that is armed.
    /// Unsupported: larger than before, and the device cannot enlarge shared receive queues.
    Status resize(std::uint32_t depth) noexcept;

    /// The number of receives that wait for a message. Some devices also count those that have been taken and not yet
    /// polled.
    std::uint32_t outstanding() const noexcept;

    /// Whether the queue has endpoints.
    bool in_use() const noexcept { return users_.in_use(); }

private:
    friend struct Internals;

    SharedReceiveQueue(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<backend::SharedReceiveQueue> queue,
                       std::uint32_t depth) noexcept;
    backend::SharedReceiveQueue& backend() const noexcept;

    std::shared_ptr<ProtectionDomain> domain_;
    detail::UseCount users_;
    Owned<detail::ReceiveInterface> queue_;
    Mutex mutex_;  // held by arm_limit() and resize()
    std::uint32_t depth_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct
