// SPDX-License-Identifier: BSD-3-Clause
// Limits the warnings that strangers on the network can cause.
#pragma once

#include <chrono>

#include "core/deadline.hpp"
#include "core/log.hpp"

namespace viaduct::software {

/// Not thread-safe.
class WarningLimit {
public:
    /// Returns Warning at most once a second, otherwise the given level.
    LogLevel next(LogLevel otherwise) noexcept {
        if (!pause_.passed()) return otherwise;
        pause_ = Deadline::after(std::chrono::seconds(1));
        return LogLevel::Warning;
    }

private:
    Deadline pause_ = Deadline::now();
};

}  // namespace viaduct::software
