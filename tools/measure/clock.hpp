// SPDX-License-Identifier: BSD-3-Clause
// A clock cheap enough to be read for each message: the time stamp counter where it is steady, else steady_clock.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace viaduct::measure {

using Ticks = std::uint64_t;

namespace detail {

/// Whether the processor has a counter that runs at one pace on all cores.
bool has_steady_counter() noexcept;
inline const bool steady_counter = has_steady_counter();

}  // namespace detail

inline Ticks ticks() noexcept {
#if defined(__x86_64__)
    if (detail::steady_counter) return __rdtsc();
#endif
    return static_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// The processor time of this process so far, of all its threads, in user mode and in the kernel.
std::uint64_t cpu_time_ns() noexcept;

/// The length of a tick; the first call takes some milliseconds to measure it.
double nanoseconds_per_tick() noexcept;

}  // namespace viaduct::measure
