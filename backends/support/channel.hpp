// SPDX-License-Identifier: BSD-3-Clause
// A channel for backends whose completion queues are software.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/backend.hpp"
#include "core/base/event_channel.hpp"

namespace viaduct::support {

/// Each completion queue has at most one pending event here.
class Channel final : public backend::Channel {
public:
    int fd() const noexcept override { return events_.fd(); }

    Result<std::uint64_t> take_event() noexcept override {
        if (const auto event = events_.try_take()) return event->context;
        return Status(Code::WouldBlock, "no event is pending");
    }

    /// Makes room for the event of one more queue, until part(). Throws std::bad_alloc.
    void join() {
        const std::size_t queues = ++queues_;
        try {
            events_.enlarge(queues);
        } catch (...) {
            --queues_;
            throw;
        }
    }

    /// The queue is destroyed: takes back its event and what join() has given it.
    void part(const backend::CompletionQueue& queue) noexcept {
        take_back_event(queue);
        --queues_;
    }

    void leave_event(const backend::CompletionQueue& from, std::uint64_t context) noexcept {
        events_.push({&from, context});
    }

    void take_back_event(const backend::CompletionQueue& from) noexcept {
        events_.discard_if([&from](const Event& event) { return event.from == &from; });
    }

private:
    struct Event {
        const backend::CompletionQueue* from;
        std::uint64_t context;
    };
    mutable EventChannel<Event> events_;
    std::atomic<std::size_t> queues_{0};
};

}  // namespace viaduct::support
