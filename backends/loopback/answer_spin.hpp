// SPDX-License-Identifier: BSD-3-Clause
// Decides which connection requests spin for their answer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace viaduct::loopback {

/// After a late answer, one request does not spin; while the answers remain late, two do not, then four, up to 16.
/// Thread-safe; threads that connect at the same time may disturb each other's count.
class AnswerSpin {
public:
    bool is_worthwhile() noexcept {
        const std::uint32_t left = without_spin_.load(std::memory_order_relaxed);
        if (left != 0) without_spin_.store(left - 1, std::memory_order_relaxed);
        return left == 0;
    }

    /// Called with the outcome of each spin.
    void answered(bool in_time) noexcept {
        const std::uint32_t pause =
            in_time ? 0 : std::clamp(2 * pause_.load(std::memory_order_relaxed), 1u, longest_pause);
        pause_.store(pause, std::memory_order_relaxed);
        if (!in_time) without_spin_.store(pause, std::memory_order_relaxed);
    }

private:
    static constexpr std::uint32_t longest_pause = 16;

    std::atomic<std::uint32_t> pause_{0};         // after the last answer
    std::atomic<std::uint32_t> without_spin_{0};  // requests left
};

}  // namespace viaduct::loopback
