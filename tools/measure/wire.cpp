// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/wire.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace viaduct::measure::wire {
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

template <class Enum>
std::optional<std::string> check_known(const char* what, Enum value, std::size_t count = names<Enum>.size()) {
    const auto number = static_cast<std::size_t>(value);
    return number < count ? std::nullopt : std::optional(fmt::format("unknown {} {}", what, number));
}

std::optional<std::string> check_size(std::uint32_t size, const Limits& limits) {
    if (size == 0) return "messages of 0 bytes";
    if (size <= limits.max_transfer_bytes) return std::nullopt;
    return fmt::format("messages of {} bytes; the limit is {}", size, limits.max_transfer_bytes);
}

}  // namespace

std::optional<std::string> check_header(std::span<const std::byte> message, std::uint32_t magic, std::size_t size) {
    Header header;
    if (message.size() < sizeof header) return fmt::format("the message is too short to be {}", name_of(magic));
    std::memcpy(&header, message.data(), sizeof header);
    if (header.magic != magic) return fmt::format("expected {}, got {}", name_of(magic), name_of(header.magic));
    if (header.version != version)
        return fmt::format("the peer speaks version {} of the protocol, this is version {}", header.version, version);
    if (header.bytes != size || message.size() != size) return fmt::format("{} has the wrong length", name_of(magic));
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
    if (auto fault = check_known("operation", hello.operation, ping_operations.size())) return fault;
    if (hello.frame_bytes < ping_header_bytes) return "requests shorter than their header";
    if (auto fault = check_size(hello.frame_bytes, limits)) return fault;
    if (hello.landing.bytes < hello.frame_bytes) return "the client's memory is smaller than its messages";
    return std::nullopt;
}

std::optional<std::string> check(const PerfHello& hello, const Limits& limits) {
    const PerfTerms& terms = hello.terms;
    if (auto fault = check_known("test", terms.test)) return fault;
    if (auto fault = check_known("operation", terms.operation)) return fault;
    if (auto fault = check_known("mode", terms.mode)) return fault;
    if (auto fault = check_known("kind of memory", terms.memory)) return fault;
    if (auto fault = check_known("direction", terms.direction)) return fault;
    if (auto fault = check_known("reliability level", terms.reliability)) return fault;
    if (terms.check > 1) return "the flag of the data check is neither 0 nor 1";
    if (auto fault = check_size(terms.max_size, limits)) return fault;
    if (terms.window > limits.max_window)
        return fmt::format("a window of {}; it must be 1 to {}", terms.window, limits.max_window);
    if (terms.open > limits.max_open)
        return fmt::format("{} open connections; it must be 1 to {}", terms.open, limits.max_open);
    if (terms.queues > limits.max_queues)
        return fmt::format("{} queues; it must be 1 to {}", terms.queues, limits.max_queues);
    if (terms.threads > limits.max_threads)
        return fmt::format("{} threads; it must be 1 to {}", terms.threads, limits.max_threads);
    if (hello.landing.bytes < terms.max_size) return "the client's memory is smaller than its messages";
    return std::nullopt;
}

}  // namespace viaduct::measure::wire
