// SPDX-License-Identifier: BSD-3-Clause
// Limits how many lines of a kind the log shows, because peers can cause lines as fast as they can connect.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

namespace viaduct {

/// Not thread-safe.
class LogLimit {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::uint64_t lines = 100;  ///< of a kind in a period
    static constexpr Clock::duration period = std::chrono::seconds(1);

    enum class Verdict : std::uint8_t { Show, ShowLast, Suppress };

    /// Decides about a line. Kinds are told apart by the address of their format. ShowLast: further lines of this kind
    /// will be suppressed until the period is over.
    Verdict next(const char* format, Clock::time_point now) noexcept {
        Kind& kind = find(format);
        if (kind.count == 0 || now - kind.begin >= period) {
            suppressed_ += kind.count - std::min(kind.count, lines);
            kind.begin = now;
            kind.count = 0;
        }
        ++kind.count;
        if (kind.count < lines) return Verdict::Show;
        return kind.count == lines ? Verdict::ShowLast : Verdict::Suppress;
    }

    /// Returns how many lines were suppressed in periods that are over, and have not been returned yet.
    std::uint64_t take_suppressed(Clock::time_point now) noexcept {
        for (Kind& kind : kinds_) {
            if (kind.count <= lines || now - kind.begin < period) continue;
            suppressed_ += kind.count - lines;
            kind.count = 0;
        }
        return std::exchange(suppressed_, 0);
    }

private:
    struct Kind {
        const char* format = nullptr;
        Clock::time_point begin;
        std::uint64_t count = 0;  // of lines since then
    };

    Kind& find(const char* format) noexcept {
        auto* const found = std::find_if(kinds_.begin(), kinds_.end() - 1, [format](const Kind& kind) {
            return kind.format == format || kind.format == nullptr;
        });
        found->format = format;
        return *found;
    }

    std::array<Kind, 128> kinds_;  // the last one is shared by those that find no place
    std::uint64_t suppressed_ = 0;
};

}  // namespace viaduct
