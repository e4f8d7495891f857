// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/wire.hpp"

#include <algorithm>

#include "tools/measure/buffer.hpp"

namespace viaduct::measure {

namespace wire {
namespace {

std::string_view name_of(std::uint32_t magic) {
    switch (magic) {
        case ping_magic: return "a vi-ping request";
        case perf_magic: return "a vi-perf request";
        case reply_magic: return "a reply";
        case run_magic: return "a vi-perf run";
        default: return "an unknown message";
    }
}

std::optional<std::string> check_operation(std::uint8_t operation, std::size_t count) {
    if (operation < count) return std::nullopt;
    return "unknown operation " + std::to_string(operation);
}

std::optional<std::string> check_size(std::uint32_t size, const Limits& limits) {
    if (size == 0) return "messages of 0 bytes";
    if (size <= limits.max_transfer_bytes) return std::nullopt;
    return "messages of " + std::to_string(size) + " bytes; the limit is " + std::to_string(limits.max_transfer_bytes);
}

}  // namespace

std::optional<std::string> check_header(std::span<const std::byte> message, std::uint32_t magic, std::size_t size) {
    Header header;
    if (message.size() < sizeof header) return "the message is too short to be " + std::string(name_of(magic));
    std::memcpy(&header, message.data(), sizeof header);
    if (header.magic != magic)
        return "expected " + std::string(name_of(magic)) + ", got " + std::string(name_of(header.magic));
    if (header.version != version)
        return "the peer speaks version " + std::to_string(header.version) + " of the protocol, this is version " +
               std::to_string(version);
    if (header.bytes != size || message.size() != size) return std::string(name_of(magic)) + " has the wrong length";
    return std::nullopt;
}

void set_text(Reply& reply, std::string_view text) noexcept {
    std::ranges::copy(text.substr(0, sizeof reply.text - 1), reply.text);
}

Reply refusal(std::string_view why, std::uint32_t refused) noexcept {
    Reply reply;
    reply.refused = refused;
    set_text(reply, why);
    return reply;
}

std::optional<std::string> check(const PingHello& hello, const Limits& limits) {
    if (auto fault = check_operation(hello.operation, ping_operations.size())) return fault;
    if (hello.frame_bytes < ping_header_bytes) return "requests shorter than their header";
    if (auto fault = check_size(hello.frame_bytes, limits)) return fault;
    if (hello.landing.bytes < hello.frame_bytes) return "the client's memory is smaller than its messages";
    return std::nullopt;
}

std::optional<std::string> check(const PerfHello& hello, const Limits& limits) {
    if (hello.test > static_cast<std::uint8_t>(Test::Connect)) return "unknown test " + std::to_string(hello.test);
    if (auto fault = check_operation(hello.operation, names<Operation>.size())) return fault;
    if (hello.mode > static_cast<std::uint8_t>(Mode::Blocking)) return "unknown mode " + std::to_string(hello.mode);
    if (hello.memory > static_cast<std::uint8_t>(Memory::Heap))
        return "unknown kind of memory " + std::to_string(hello.memory);
    if (hello.direction > static_cast<std::uint8_t>(Direction::Reverse))
        return "unknown direction " + std::to_string(hello.direction);
    if (hello.reliability > static_cast<std::uint8_t>(Reliability::ReliableReception))
        return "unknown reliability level " + std::to_string(hello.reliability);
    if (hello.check > 1) return "the flag of the data check is neither 0 nor 1";
    if (auto fault = check_size(hello.max_size, limits)) return fault;
    if (hello.window == 0 || hello.window > limits.max_window)
        return "a window of " + std::to_string(hello.window) + "; it must be 1 to " + std::to_string(limits.max_window);
    if (hello.open == 0 || hello.open > limits.max_open)
        return std::to_string(hello.open) + " open connections; it must be 1 to " + std::to_string(limits.max_open);
    if (hello.queues == 0 || hello.queues > limits.max_queues)
        return std::to_string(hello.queues) + " queues; it must be 1 to " + std::to_string(limits.max_queues);
    if (hello.threads == 0 || hello.threads > limits.max_threads)
        return std::to_string(hello.threads) + " threads; it must be 1 to " + std::to_string(limits.max_threads);
    if (hello.batch == 0 || (hello.batch > 1 && hello.batch > hello.window / 2))
        return "lists of " + std::to_string(hello.batch) + " requests, and a window of " + std::to_string(hello.window);
    if (hello.segments == 0) return "requests without segments";
    if (hello.landing.bytes < hello.max_size) return "the client's memory is smaller than its messages";
    return std::nullopt;
}

}  // namespace wire
}  // namespace viaduct::measure
