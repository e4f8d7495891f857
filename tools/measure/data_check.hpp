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

#include "tools/measure/perf_session.hpp"

namespace viaduct::measure {

void fill_pattern(std::span<std::byte> data, std::uint32_t pattern) noexcept;

/// What is wrong with data that were filled so, or nothing.
std::optional<std::string> pattern_fault(std::span<const std::byte> data, std::uint32_t pattern);

class DataCheck {
public:
    /// `leads`: at the client.
    DataCheck(const PerfParameters& terms, std::span<const Lane> lanes, const wire::Run& run, bool leads) noexcept;

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
    bool arrives_in_incoming() const noexcept {
        return operation_ == Operation::Send || operation_ == Operation::SendImmediate;
    }

    /// What is wrong with the data that arrived at this end, or nothing.
    std::optional<std::string> fault() const;

private:
    std::optional<std::string> fault(const Workspace& workspace) const;
    std::span<std::byte> outgoing(const Workspace& workspace) const noexcept { return {workspace.outgoing(), size_}; }
    std::span<std::byte> incoming(const Workspace& workspace) const noexcept { return {workspace.incoming(), size_}; }
    std::span<std::byte> landing(const Workspace& workspace) const noexcept { return {workspace.landing(), size_}; }

    std::span<const Lane> lanes_;
    Operation operation_;
    std::uint32_t size_;
    std::uint32_t pattern_;
    std::uint64_t word_;  ///< that of the peer after the run, where atomics changed it
    bool active_;         ///< this end posts
    bool passive_;        ///< the peer posts
};

}  // namespace viaduct::measure
