// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/data_check.hpp"

#include <algorithm>
#include <cstring>

namespace viaduct::measure {
namespace {

/// Differs between neighbours, between pages and between patterns.
std::byte byte_at(std::size_t index, std::uint32_t pattern) noexcept {
    return static_cast<std::byte>(index * 31 + (index >> 12) + pattern * 101 + 1);
}

void clear(std::span<std::byte> data) noexcept { std::ranges::fill(data, std::byte{0}); }

}  // namespace

void fill_pattern(std::span<std::byte> data, std::uint32_t pattern) noexcept {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = byte_at(i, pattern);
}

std::optional<std::string> pattern_fault(std::span<const std::byte> data, std::uint32_t pattern) {
    for (std::size_t i = 0; i < data.size(); ++i)
        if (data[i] != byte_at(i, pattern))
            return "wrong data: byte " + std::to_string(i) + " of " + std::to_string(data.size()) + " is " +
                   std::to_string(std::to_integer<unsigned>(data[i])) + " instead of " +
                   std::to_string(std::to_integer<unsigned>(byte_at(i, pattern)));
    return std::nullopt;
}

DataCheck::DataCheck(const PerfParameters& terms, std::span<const Lane> lanes, const wire::Run& run,
                     bool leads) noexcept
    : lanes_(lanes),
      operation_(terms.operation),
      // Writes that play ping-pong have a mark in their last byte.
      size_(terms.check ? run.size - (is_write_ping_pong(terms) ? 1 : 0) : 0),
      pattern_(run.pattern),
      word_(terms.operation == Operation::FetchAdd ? run.iterations : 1) {
    const bool both = terms.test == Test::Latency && !times_completions(terms);
    active_ = both || streams_from(terms, leads);
    passive_ = both || streams_from(terms, !leads);
}

void DataCheck::prepare_arrival() const noexcept {
    for (const Lane& lane : lanes_) {
        clear(incoming(lane.workspace));
        const auto data = landing(lane.workspace);
        operation_ == Operation::Read ? fill_pattern(data, pattern_) : clear(data);
    }
}

void DataCheck::prepare_outgoing() const noexcept {
    for (const Lane& lane : lanes_) {
        const auto data = outgoing(lane.workspace);
        operation_ == Operation::Read ? clear(data) : fill_pattern(data, pattern_);
    }
}

std::optional<std::string> DataCheck::fault() const {
    for (const Lane& lane : lanes_)
        if (auto found = fault(lane.workspace)) return found;
    return std::nullopt;
}

std::optional<std::string> DataCheck::fault(const Workspace& workspace) const {
    if (operation_ == Operation::Read) return active_ ? pattern_fault(outgoing(workspace), pattern_) : std::nullopt;
    if (!passive_) return std::nullopt;
    if (is_fetching(operation_) && size_ != 0) {
        std::uint64_t word = 0;
        std::memcpy(&word, workspace.landing(), sizeof word);
        if (word == word_) return std::nullopt;
        return "wrong data: the word is " + std::to_string(word) + " instead of " + std::to_string(word_);
    }
    return pattern_fault(arrives_in_incoming() ? incoming(workspace) : landing(workspace), pattern_);
}

}  // namespace viaduct::measure
