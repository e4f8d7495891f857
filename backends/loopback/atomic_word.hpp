// SPDX-License-Identifier: BSD-3-Clause
// What atomic operations do to a word that other threads and processes see: each is one instruction of the processor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::loopback {

/// Aligned memory, as the checks have made sure.
inline std::atomic_ref<std::uint64_t> atomic_word(std::byte* place) noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place));
}

/// Each returns what was there before.
inline std::uint64_t fetch_add(std::byte* place, std::uint64_t add) noexcept {
    return atomic_word(place).fetch_add(add);
}

inline std::uint64_t compare_swap(std::byte* place, std::uint64_t compare, std::uint64_t swap) noexcept {
    atomic_word(place).compare_exchange_strong(compare, swap);
    return compare;
}

}  // namespace viaduct::loopback
