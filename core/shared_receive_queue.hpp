// SPDX-License-Identifier: BSD-3-Clause
// Receives that many endpoints share.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "core/device.hpp"

namespace viaduct {

/// Belongs to the protection domain of its endpoints, which keep it alive. Thread-safe.
class VIADUCT_EXPORT SharedReceiveQueue {
public:
    /// `depth`: receives that wait at once; `context` comes back in events. InvalidParameter: 0 or above the limit of
    /// the device. Unsupported: the device has none.
    static Result<std::shared_ptr<SharedReceiveQueue>> create(std::shared_ptr<ProtectionDomain> domain,
                                                              std::uint32_t depth, std::uint64_t context = 0);
    ~SharedReceiveQueue();

    /// QueueFull: `depth` receives wait. InvalidParameter: more pieces than the device allows.
    Status post_receive(const ReceiveRequest& request) noexcept {
        std::size_t posted = 0;
        return queue_->post_receive({&request, 1}, posted);
    }

    /// See backend::SharedReceiveQueue.
    Status arm_limit(std::uint32_t limit) noexcept;
    Status resize(std::uint32_t depth) noexcept;
    std::uint32_t outstanding() const noexcept { return queue_->outstanding(); }

    bool in_use() const noexcept { return users.in_use(); }
    UseCount users;  ///< kept by the core's endpoints
    backend::SharedReceiveQueue& backend() noexcept { return *queue_; }

private:
    SharedReceiveQueue(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<backend::SharedReceiveQueue> queue,
                       std::uint32_t depth) noexcept;

    std::shared_ptr<ProtectionDomain> domain_;
    std::unique_ptr<backend::SharedReceiveQueue> queue_;
    std::mutex mutex_;  // held by arm_limit() and resize(); guards what follows
    std::uint32_t depth_;
};

}  // namespace viaduct
