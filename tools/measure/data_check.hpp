// SPDX-License-Identifier: BSD-3-Clause
// Checks that the data of a run arrived: both ends fill what they send with a pattern, which differs from run to run,
// and compare what they got once the run has ended. As all messages of a run are equal and share a buffer, nothing in
// the timed loop changes, and only the last message is compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tools/measure/perf.hpp"

namespace viaduct::measure {

void fill_pattern(std::span<std::byte> data, std::uint32_t pattern) noexcept;

/// What is wrong with data that were filled so, or nothing.
std::optional<std::string> pattern_fault(std::span<const std::byte> data, std::uint32_t pattern);

class DataCheck {
public:
    /// `leads`: at the client.
    DataCheck(const PerfParameters& terms, const Workspace& workspace, const wire::Run& run, bool leads) noexcept;

    /// Before the peer can use the buffers that it writes to and reads from, and after the last message that came
    /// before the run.
    void prepare_arrival() const noexcept;

    /// After the last message before the run was sent.
    void prepare_outgoing() const noexcept;

    void prepare() const noexcept {
        prepare_arrival();
        prepare_outgoing();
    }

    /// Whether the buffer that data arrive in is that of messages.
    bool arrives_in_incoming() const noexcept { return operation_ == Operation::Send; }

    /// What is wrong with the data that arrived at this end, or nothing.
    std::optional<std::string> fault() const;

private:
    std::span<std::byte> outgoing() const noexcept { return {workspace_.outgoing(), size_}; }
    std::span<std::byte> incoming() const noexcept { return {workspace_.incoming(), size_}; }
    std::span<std::byte> landing() const noexcept { return {workspace_.landing(), size_}; }

    const Workspace& workspace_;
    Operation operation_;
    std::uint32_t size_;
    std::uint32_t pattern_;
    bool active_;   ///< this end posts
    bool passive_;  ///< the peer posts
};

}  // namespace viaduct::measure
