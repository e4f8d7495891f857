// SPDX-License-Identifier: BSD-3-Clause
// What inline functions of the core call of a backend, so that a request needs no other call. Each class is the base of
// the one in core/backend.hpp that has the rest. Programs use the classes of the core instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "viaduct/status.hpp"
#include "viaduct/work.hpp"

namespace viaduct::detail {

class PollInterface {
public:
    virtual ~PollInterface() = default;

    /// Takes up to `out.size()` completions, in order, and drives progress. Never blocks, even if other threads wait.
    virtual std::size_t poll(std::span<Completion> out) noexcept = 0;

    /// Drives progress and returns whether there is a completion. Takes nothing.
    virtual bool ready() noexcept = 0;

    /// Requests one event on the channel for the next completion, and removes an event of this queue (not of others)
    /// that is still there, unless the queue is already armed. Completions that are already in the queue cause no
    /// event, but a poll() or ready() that finds more than it takes does. Callers arm the queue, check it again, and
    /// only then sleep. InvalidState: the queue has no channel.
    ///
    /// With Arm::Solicited, only a receive of a solicited message or a failure causes the event; a failure of a send
    /// does so as soon as the device reports it. A queue that is armed for Any stays so.
    virtual Status arm(Arm what) noexcept = 0;

    /// As poll() with room for one completion. Returns whether there was one; otherwise `out` is unspecified.
    virtual bool poll_one(Completion& out) noexcept { return poll({&out, 1}) != 0; }
};

/// Where receives are posted: an endpoint or a shared receive queue.
class ReceiveInterface {
public:
    virtual ~ReceiveInterface() = default;

    /// Posts requests in order and stops at the first one that cannot be posted; `posted` is the number of those before
    /// it. QueueFull: the queue has no room. InvalidParameter: more pieces than the endpoint or the device supports.
    /// Of an endpoint: receives can be posted before it is connected; after a connection has broken, they complete as
    /// Flushed until disconnect() is called. InvalidState: it uses a shared receive queue.
    virtual Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept = 0;
};

class PostInterface : public ReceiveInterface {
public:
    /// As post_receive(). If the endpoint is not connected, the requests complete as Flushed.
    virtual Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept = 0;
    using ReceiveInterface::post_receive;

    // As the functions for several requests, with one, which has no `fault`. Null: it was posted. Otherwise the
    // error, which the thread has to read before its next call.
    virtual const Status* post_send(const SendRequest& request) noexcept = 0;
    virtual const Status* post_receive(const ReceiveRequest& request) noexcept = 0;

    /// The number of posted requests whose completions have not been polled.
    virtual std::uint32_t outstanding(QueueKind queue) const noexcept = 0;
};

}  // namespace viaduct::detail
