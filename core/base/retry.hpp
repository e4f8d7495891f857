// SPDX-License-Identifier: BSD-3-Clause
// When a request to connect is repeated.
#pragma once

#include <algorithm>
#include <chrono>

#include "viaduct/connection.hpp"

namespace viaduct {

/// After a pause, which is doubled each time: while the service has no listener until the grace period ends, and for a
/// peer that does not connect yet until the deadline.
class Retry {
public:
    explicit Retry(const ConnectParameters& parameters) noexcept
        : end_(parameters.model == ConnectParameters::Model::PeerToPeer
                   ? parameters.deadline
                   : std::min(Deadline::after(parameters.grace), parameters.deadline)) {}

    bool is_over() const noexcept { return end_.passed(); }

    /// When to repeat the request: after the next pause, or at the end.
    Deadline next() noexcept {
        const Deadline next = std::min(Deadline::after(pause_), end_);
        pause_ = std::min(2 * pause_, last_pause);
        return next;
    }

private:
    static constexpr std::chrono::milliseconds last_pause{50};

    Deadline end_;
    std::chrono::milliseconds pause_{1};
};

}  // namespace viaduct
