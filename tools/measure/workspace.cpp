// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/workspace.hpp"

#include <algorithm>

#include "tools/measure/machine.hpp"

namespace viaduct::measure {

Workspace::Workspace(Api& api, Memory memory, std::uint32_t size)
    : size_(std::max(size, wire::max_message_bytes)),
      stride_(round_up(size_, Buffer::alignment)),
      buffer_(memory, 3 * stride_),
      region_(api.register_memory(buffer_.bytes())) {}

wire::RemoteBuffer Workspace::landing_for_peer() const noexcept {
    return {.address = reinterpret_cast<std::uintptr_t>(landing()), .key = region_->key, .bytes = size_};
}

void Conversation::send(std::uint32_t length) {
    link_.post_send(workspace_.piece(workspace_.outgoing(), length));
    constexpr auto patience = std::chrono::seconds(10);
    if (!link_.wait_send(patience)) throw TimedOut("a message could not be sent in time");
}

std::optional<std::span<const std::byte>> Conversation::hear(Timeout timeout) {
    const auto length = link_.wait_receive(timeout);
    if (!length) return std::nullopt;
    return std::span<const std::byte>(workspace_.incoming(), *length);
}

wire::Reply Conversation::hear_reply(Timeout timeout) {
    const auto message = hear(timeout);
    if (!message) throw TimedOut("the server does not answer");
    std::string reason;
    auto reply = wire::read<wire::Reply>(*message, reason);
    if (!reply) throw Error("not a server of this tool: " + reason);
    reply->text[sizeof reply->text - 1] = '\0';
    if (reply->refused == wire::busy) throw Busy("the server is busy: " + plain_ascii(reply->text));
    if (reply->refused == wire::failed) throw Error("the server reports: " + plain_ascii(reply->text));
    if (reply->refused != 0) throw Error("the server refuses: " + plain_ascii(reply->text));
    return *reply;
}

}  // namespace viaduct::measure
