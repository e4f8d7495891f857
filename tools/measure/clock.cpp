// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/clock.hpp"

#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace viaduct::measure {

namespace detail {

bool has_steady_counter() noexcept {
#if defined(__x86_64__)
    constexpr unsigned power_management_leaf = 0x80000007;
    constexpr unsigned invariant_tsc = 1U << 8;  // in edx
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(power_management_leaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & invariant_tsc) != 0;
#else
    return false;
#endif
}

}  // namespace detail

namespace {

double calibrate() noexcept {
    using Clock = std::chrono::steady_clock;
    using Nanoseconds = std::chrono::duration<double, std::nano>;
    if (!detail::steady_counter) return Nanoseconds(Clock::duration(1)).count();
    const auto start = Clock::now();
    const Ticks first = ticks();
    auto end = start;
    while (end - start < std::chrono::milliseconds(10)) end = Clock::now();
    return Nanoseconds(end - start).count() / static_cast<double>(ticks() - first);
}

}  // namespace

std::uint64_t cpu_time_ns() noexcept {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

double nanoseconds_per_tick() noexcept {
    static const double length = calibrate();
    return length;
}

}  // namespace viaduct::measure
