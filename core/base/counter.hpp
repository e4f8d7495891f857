// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct {

/// Adds to a number that one thread at a time changes, under a lock or otherwise in order, and that any thread reads.
template <class Number>
[[gnu::always_inline]] inline void add_alone(std::atomic<Number>& number, Number amount) noexcept {
#if defined(__x86_64__)
    // Compilers do not merge a relaxed load, an addition and a relaxed store into one instruction. This one is not
    // locked: no other thread writes, and readers see the old or the new value.
    static_assert(sizeof number == sizeof amount);
    if constexpr (sizeof amount == 8)
        asm inline("addq %1, %0" : "+m"(number) : "er"(amount) : "cc");
    else
        asm inline("addl %1, %0" : "+m"(number) : "er"(amount) : "cc");
#else
    number.store(number.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
#endif
}

/// The same for a subtraction.
[[gnu::always_inline]] inline void subtract_alone(std::atomic<std::uint32_t>& number, std::uint32_t amount) noexcept {
#if defined(__x86_64__)
    asm inline("subl %1, %0" : "+m"(number) : "er"(amount) : "cc");
#else
    number.store(number.load(std::memory_order_relaxed) - amount, std::memory_order_relaxed);
#endif
}

/// A number that one thread at a time increases, and that any thread reads.
class Counter {
public:
    void add(std::uint64_t amount = 1) noexcept { add_alone(value_, amount); }
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

    /// For the thread that increases it.
    void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

}  // namespace viaduct
