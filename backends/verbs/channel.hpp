// SPDX-License-Identifier: BSD-3-Clause
// Where armed completion queues leave events. Those of the hardware come through an ibv_comp_channel, those of
// completions that the hardware does not know through an eventfd; the descriptor that programs watch covers both, and
// is made for those who ask for it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/verbs/owners.hpp"
#include "core/backend.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/unique_fd.hpp"

namespace viaduct::verbs {

class CompletionQueue;
class Nic;

/// Thread-safe. Its mutex is a leaf: taken with a completion queue's held, never the other way round.
class Channel final : public backend::Channel {
public:
    static Result<std::unique_ptr<Channel>> create(std::shared_ptr<Nic> nic);

    int fd() const noexcept override;
    Result<std::uint64_t> take_event() noexcept override;

    ibv_comp_channel* hardware() const noexcept { return hardware_.get(); }

    /// Makes room for the one event that each queue may leave. Throws std::bad_alloc.
    void attach();
    void detach(const CompletionQueue& queue) noexcept;

    /// An event without the hardware's help.
    void leave(CompletionQueue& queue) noexcept;

    /// Takes back the events of the queue that nobody has taken.
    void take_back(const CompletionQueue& queue) noexcept;

private:
    explicit Channel(std::shared_ptr<Nic> nic) noexcept : nic_(std::move(nic)) {}
    void push(CompletionQueue& queue) noexcept;
    void collect() noexcept;

    std::shared_ptr<Nic> nic_;
    CompletionChannelOwner hardware_;
    mutable std::mutex mutex_;  // guards what follows
    mutable UniqueFd watched_;
    std::vector<CompletionQueue*> events_;
    std::size_t queues_ = 0;
    mutable ReadableFlag readable_;
};

}  // namespace viaduct::verbs
