// SPDX-License-Identifier: BSD-3-Clause
// A completion queue, and what it needs of work queues. Guarded by the lock of the node.
#pragma once

#include <atomic>
#include <memory>

#include "backends/support/channel.hpp"
#include "core/backend.hpp"
#include "core/base/fifo.hpp"

namespace viaduct::software {

class Node;
class Device;

using support::Channel;

/// How many requests of a work queue are outstanding. Completions that are still queued share it with the work queue,
/// which may be destroyed before them.
class WorkCount {
public:
    explicit WorkCount(std::uint32_t depth) noexcept : depth_(depth) {}
    std::uint32_t outstanding() const noexcept { return outstanding_.load(std::memory_order_relaxed); }
    bool is_full() const noexcept { return outstanding() >= depth_; }
    void add() noexcept { outstanding_.store(outstanding() + 1, std::memory_order_relaxed); }
    void remove() noexcept { outstanding_.store(outstanding() - 1, std::memory_order_relaxed); }

private:
    const std::uint32_t depth_;
    std::atomic<std::uint32_t> outstanding_{0};  // written with the lock held
};

class CompletionQueue final : public backend::CompletionQueue {
public:
    CompletionQueue(Device& device, const backend::CompletionQueueInit& init);
    ~CompletionQueue() override;

    std::size_t poll(std::span<Completion> out) noexcept override;
    bool ready() noexcept override;
    Status arm(Arm what) noexcept override;
    Status resize(std::uint32_t capacity) noexcept override;

    // The lock of the node must be held.
    /// Queues a completion. If there is no room, it is lost and the device reports it.
    void push(const Completion& completion, const std::shared_ptr<WorkCount>& from, bool solicited = false) noexcept;

    /// Reports whether push() has room. If not, connections that wait for room are resumed when a consumer has taken
    /// completions.
    bool has_room() noexcept {
        const bool room = items_.size() + reserved_ < capacity_;
        if (!room) waits_for_room_ = true;
        return room;
    }

    /// Keep a place for a completion that will come. There is room; give_back() precedes its push().
    void keep_place() noexcept { ++reserved_; }
    void give_back_place() noexcept { --reserved_; }

private:
    struct Item {
        Completion completion;
        bool solicited = false;  // or failed
        std::shared_ptr<WorkCount> from;
    };
    std::size_t take(std::span<Completion> out) noexcept;
    /// The thread that armed the queue may take only some of the completions while another thread already sleeps.
    void signal_items() noexcept {
        if (armed_ && (armed_for_ == Arm::Any ? !items_.empty() : solicited_ != 0)) disarm();
    }
    void disarm() noexcept;

    Device& device_;
    Node& node_;
    const std::uint64_t context_;
    Channel* const channel_;
    const CompletionObserver observer_;
    std::uint32_t capacity_;
    Fifo<Item> items_{16};
    std::size_t reserved_ = 0;   // for messages that have begun to arrive
    std::size_t solicited_ = 0;  // number of solicited items
    bool armed_ = false;
    Arm armed_for_ = Arm::Any;
    bool waits_for_room_ = false;
};

}  // namespace viaduct::software
