// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "core/base/counter.hpp"
#include "viaduct/counters.hpp"
#include "viaduct/work.hpp"

namespace viaduct::support {

/// The operation that a request of the send queue counts as. Flushes and binds are not counted.
constexpr bool is_counted(const SendRequest& request) noexcept {
    return request.opcode != Opcode::Flush && request.opcode != Opcode::BindWindow;
}
constexpr CountedOperation counted_as(const SendRequest& request) noexcept {
    switch (request.opcode) {
        case Opcode::RdmaWrite:
            return request.with_immediate ? CountedOperation::RdmaWriteImmediate : CountedOperation::RdmaWrite;
        case Opcode::RdmaRead: return CountedOperation::RdmaRead;
        case Opcode::AtomicWrite: return CountedOperation::AtomicWrite;
        case Opcode::FetchAdd: return CountedOperation::FetchAdd;
        case Opcode::CompareSwap: return CountedOperation::CompareSwap;
        default: return CountedOperation::Send;
    }
}

/// Counts the operations from `first_operation` to `last_operation` by the ways from `first_way` to `last_way`.
template <CountedOperation first_operation, CountedOperation last_operation, Way first_way, Way last_way>
class TrafficCounters {
public:
    [[gnu::always_inline]] void add(CountedOperation operation, Way way, std::uint64_t bytes,
                                    std::uint64_t messages = 1) noexcept {
        Cell& cell = cells_[index(operation, first_operation)][index(way, first_way)];
        cell.messages.add(messages);
        cell.bytes.add(bytes);
    }

    /// Reverts add().
    void remove(CountedOperation operation, Way way, std::uint64_t bytes) noexcept {
        add(operation, way, -bytes, -std::uint64_t{1});
    }

    void add_to(EndpointCounters& counters) const noexcept {
        for (std::size_t i = 0; i < cells_.size(); ++i)
            for (std::size_t j = 0; j < cells_[i].size(); ++j)
                counters
                    .traffic[i + static_cast<std::size_t>(first_operation)][j + static_cast<std::size_t>(first_way)] +=
                    {cells_[i][j].messages.value(), cells_[i][j].bytes.value()};
    }

private:
    struct Cell {
        Counter messages;
        Counter bytes;
    };
    template <class Enum>
    static constexpr std::size_t index(Enum value, Enum first) noexcept {
        return static_cast<std::size_t>(value) - static_cast<std::size_t>(first);
    }

    std::array<std::array<Cell, index(last_way, first_way) + 1>, index(last_operation, first_operation) + 1> cells_;
};

template <Way first_way, Way last_way>
using OutgoingTraffic = TrafficCounters<CountedOperation::Send, CountedOperation::CompareSwap, first_way, last_way>;
template <Way first_way, Way last_way>
using IncomingTraffic = TrafficCounters<CountedOperation::Receive, CountedOperation::ServeAtomic, first_way, last_way>;

}  // namespace viaduct::support
