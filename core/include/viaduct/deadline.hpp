// SPDX-License-Identifier: BSD-3-Clause
// A point on the steady clock after which a call stops waiting.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace viaduct {

class Deadline {
public:
    using Clock = std::chrono::steady_clock;

    static Deadline never() noexcept { return Deadline(Clock::time_point::max()); }
    static Deadline now() noexcept { return Deadline(Clock::time_point::min()); }

    /// A timeout from now. A timeout that exceeds the range of the clock is never().
    template <class Rep, class Period>
    static Deadline after(std::chrono::duration<Rep, Period> timeout) noexcept {
        const auto start = Clock::now();
        const auto room = std::chrono::duration_cast<std::chrono::duration<double>>(Clock::time_point::max() - start);
        if (std::chrono::duration<double>(timeout) >= room) return never();
        return Deadline(start + std::chrono::duration_cast<Clock::duration>(timeout));
    }

    bool infinite() const noexcept { return point_ == Clock::time_point::max(); }
    bool passed() const noexcept { return !infinite() && (immediate() || Clock::now() >= point_); }
    Clock::time_point point() const noexcept { return point_; }

    /// Milliseconds left, rounded up, as poll(2) takes them: -1 for never.
    int poll_timeout_ms() const noexcept {
        if (infinite()) return -1;
        if (immediate()) return 0;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(point_ - Clock::now()).count();
        return static_cast<int>(std::clamp<long long>(left, 0, std::numeric_limits<int>::max()));
    }

    friend bool operator<(const Deadline& a, const Deadline& b) noexcept { return a.point_ < b.point_; }

private:
    explicit Deadline(Clock::time_point point) noexcept : point_(point) {}
    bool immediate() const noexcept { return point_ == Clock::time_point::min(); }

    Clock::time_point point_;
};

/// What ended a sleep: an event, the deadline, a signal, or that the object of the wait was closed.
enum class Woken : std::uint8_t { Ready, Late, Signal, Closed };

}  // namespace viaduct
