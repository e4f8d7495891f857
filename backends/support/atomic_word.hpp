// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations on a word that other threads and processes access. Each is one processor instruction.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::support {

/// The caller has checked the alignment.
inline std::atomic_ref<std::uint64_t> atomic_word(std::byte* place) noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place));
}

/// Each returns the previous value.
inline std::uint64_t fetch_add(std::byte* place, std::uint64_t add) noexcept {
    return atomic_word(place).fetch_add(add);
}

inline std::uint64_t compare_swap(std::byte* place, std::uint64_t compare, std::uint64_t swap) noexcept {
    atomic_word(place).compare_exchange_strong(compare, swap);
    return compare;
}

}  // namespace viaduct::support
