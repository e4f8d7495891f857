// SPDX-License-Identifier: BSD-3-Clause
// How calls wait for completions: they poll for a short time, and then sleep.
#pragma once

#include <algorithm>
#include <chrono>

#include "viaduct/deadline.hpp"
#include "viaduct/detail/export.hpp"

namespace viaduct {

/// How long waits poll before they sleep: VIADUCT_SPIN_US, by default 50 microseconds, or 0 on a single CPU.
VIADUCT_EXPORT std::chrono::nanoseconds spin_time() noexcept;

/// Polls for an event for spin_time(), and does the work of the device meanwhile. Returns what the last `look`
/// returned; false: the caller is about to sleep, which `poller`, an EventPoller, has been told.
bool poll_soon(const Deadline& deadline, auto& poller, auto look) {
    const auto spin_end = std::min(Deadline::Clock::now() + spin_time(), deadline.point());
    for (; Deadline::Clock::now() < spin_end; poller.poll())
        if (look()) return true;
    poller.stop_polling();
    return false;
}

/// Calls `look` until it returns true or the deadline has passed: polls for spin_time(), then arms the source, looks
/// again and sleeps. The library waits for completions only in this function. Returns what the last `look` returned.
/// A source has the functions `Status arm()` and `bool sleep(const Deadline&)`; if sleep() returns false, the wait
/// ends.
bool wait_until(auto& source, const Deadline& deadline, auto look) {
    if (look()) return true;
    if (deadline.passed()) return false;
    const auto spin_end = std::min(Deadline::Clock::now() + spin_time(), deadline.point());
    while (Deadline::Clock::now() < spin_end)
        for (int i = 0; i < 16; ++i)
            if (look()) return true;
    while (!deadline.passed()) {
        if (!source.arm().ok()) return false;
        if (look()) return true;
        const bool patient = source.sleep(deadline);
        if (look()) return true;
        if (!patient) return false;
    }
    return false;
}

}  // namespace viaduct
