// SPDX-License-Identifier: BSD-3-Clause
// A link with the memory it works on: one buffer to send from, one to receive into, one where the peer writes and
// reads. All receives share a buffer: after a message whose content matters nothing is sent until it was read.
#pragma once

#include <cstring>
#include <memory>
#include <span>

#include "tools/measure/api.hpp"
#include "tools/measure/buffer.hpp"
#include "tools/measure/error.hpp"
#include "tools/measure/wire.hpp"

namespace viaduct::measure {

/// Three registered buffers of equal size.
class Workspace {
public:
    /// `size` is raised to what the messages of the protocol need.
    Workspace(Api& api, Memory memory, std::uint32_t size);

    std::uint32_t size() const noexcept { return size_; }
    std::byte* outgoing() const noexcept { return buffer_.data(); }
    std::byte* incoming() const noexcept { return buffer_.data() + stride_; }
    std::byte* landing() const noexcept { return buffer_.data() + 2 * stride_; }

    /// The first bytes of a buffer, as a request takes them.
    Piece piece(std::byte* address, std::uint32_t length, std::uint32_t segments = 1) const noexcept {
        return {.address = address, .region = region_.get(), .length = length, .segments = segments};
    }

    /// How the peer finds the landing buffer.
    wire::RemoteBuffer landing_for_peer() const noexcept;

private:
    std::uint32_t size_;
    std::size_t stride_;
    Buffer buffer_;
    std::unique_ptr<Region> region_;
};

/// Exchanges messages of the protocol on a link. Not for timed loops.
class Conversation {
public:
    Conversation(Link& link, Workspace& workspace) : link_(link), workspace_(workspace) {}

    /// Posts a receive of the whole incoming buffer.
    void post_receive() { link_.post_receive(workspace_.piece(workspace_.incoming(), workspace_.size())); }

    template <class Message>
    void say(const Message& message) {
        std::memcpy(workspace_.outgoing(), &message, sizeof message);
        send(sizeof message);
    }

    /// Sends the first bytes of the outgoing buffer and waits until they have left it.
    void send(std::uint32_t length);

    /// The next message, valid until its receive is posted again, or nothing once the time is up.
    std::optional<std::span<const std::byte>> hear(Timeout timeout);

    /// The server's answer. Throws Error where it refuses or does not answer.
    wire::Reply hear_reply(Timeout timeout);

private:
    Link& link_;
    Workspace& workspace_;
};

}  // namespace viaduct::measure
