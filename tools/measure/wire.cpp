// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/wire.hpp"

#include <algorithm>

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

template <class Enumeration>
std::string number_of(Enumeration value) {
    return std::to_string(static_cast<unsigned>(value));
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
    const PerfTerms& terms = hello.terms;
    if (terms.test > Test::Connect) return "unknown test " + number_of(terms.test);
    if (auto fault = check_operation(static_cast<std::uint8_t>(terms.operation), names<Operation>.size())) return fault;
    if (terms.mode > Mode::Blocking) return "unknown mode " + number_of(terms.mode);
    if (terms.memory > Memory::Heap) return "unknown kind of memory " + number_of(terms.memory);
    if (terms.direction > Direction::Reverse) return "unknown direction " + number_of(terms.direction);
    if (terms.reliability > Reliability::ReliableReception)
        return "unknown reliability level " + number_of(terms.reliability);
    if (terms.check > 1) return "the flag of the data check is neither 0 nor 1";
    if (auto fault = check_size(terms.max_size, limits)) return fault;
    if (terms.window > limits.max_window)
        return "a window of " + std::to_string(terms.window) + "; it must be 1 to " + std::to_string(limits.max_window);
    if (terms.open > limits.max_open)
        return std::to_string(terms.open) + " open connections; it must be 1 to " + std::to_string(limits.max_open);
    if (terms.queues > limits.max_queues)
        return std::to_string(terms.queues) + " queues; it must be 1 to " + std::to_string(limits.max_queues);
    if (terms.threads > limits.max_threads)
        return std::to_string(terms.threads) + " threads; it must be 1 to " + std::to_string(limits.max_threads);
    if (hello.landing.bytes < terms.max_size) return "the client's memory is smaller than its messages";
    return std::nullopt;
}

}  // namespace wire
}  // namespace viaduct::measure
