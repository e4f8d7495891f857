// SPDX-License-Identifier: BSD-3-Clause
// A completion queue. Its lock is the lock of every work queue attached to it: one lock for each call on the data path.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "backends/loopback/fd.hpp"
#include "backends/loopback/ring.hpp"
#include "backends/loopback/sync.hpp"
#include "core/backend.hpp"

namespace viaduct::loopback {

class Device;

/// An eventfd, made on first use: most completion queues are never waited on.
class Channel final : public backend::Channel {
public:
    int fd() const noexcept override;
    void signal() const noexcept;
    void clear() const noexcept;

private:
    mutable std::once_flag made_;
    mutable UniqueFd fd_;
};

/// A work queue as its completion queue sees it. Called with the lock of the completion queue held.
class WorkQueue {
public:
    virtual void progress() noexcept = 0;

    /// Requests posted whose completions were not yet polled.
    std::uint32_t outstanding() const noexcept { return outstanding_.load(std::memory_order_relaxed); }

protected:
    ~WorkQueue() = default;
    friend class CompletionQueue;
    void count(std::int32_t change) noexcept {
        outstanding_.store(outstanding_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(change),
                           std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint32_t> outstanding_{0};  // written under the lock
};

class CompletionQueue final : public backend::CompletionQueue {
public:
    CompletionQueue(Device& device, const backend::CompletionQueueInit& init);
    ~CompletionQueue() override;

    std::size_t poll(std::span<Completion> out) noexcept override;
    Status arm() noexcept override;
    Status resize(std::uint32_t capacity) noexcept override;

    LeaningLock& lock() noexcept { return lock_; }

    /// With the lock held. A completion that finds no room is lost, and the device told.
    void push(const Completion& completion, WorkQueue& from) noexcept;

    void attach(WorkQueue& queue);
    void detach(WorkQueue& queue) noexcept;

    /// Changes whenever a consumer polls; lets the agent see that it is not needed.
    std::uint32_t polls() const noexcept { return polls_.load(std::memory_order_relaxed); }

private:
    struct Item {
        Completion completion;
        WorkQueue* from = nullptr;  // null once the endpoint is gone
    };
    std::size_t poll_each(std::span<Completion> out) noexcept;
    std::size_t take(std::span<Completion> out) noexcept;
    void disarm() noexcept;
    void set_crowded(bool crowded) noexcept;

    Device& device_;
    const std::uint64_t context_;
    const Channel* const channel_;
    LeaningLock lock_;  // guards what follows
    std::uint32_t capacity_;
    Ring<Item> items_;
    std::vector<WorkQueue*> attached_;
    bool crowded_ = false;  // too many work queues to look at each: the doorbell board tells which are ready
    bool armed_ = false;
    std::span<Completion> sink_;  // the rest of the consumer's array while a poll moves work forward
    std::atomic<std::uint32_t> polls_{0};
};

}  // namespace viaduct::loopback
