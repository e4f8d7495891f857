// SPDX-License-Identifier: BSD-3-Clause
// Where in the program a call was made.
#pragma once

#include <array>

namespace viaduct::check {

/// The return address of the call that has led into the libraries of Viaduct; null: none is known, as in a thread of
/// the library. Takes tens of nanoseconds where the way here is known already.
const void* find_place() noexcept;

/// In words, such as "hello+0x11f3 (main)". The offset is what addr2line(1) takes.
std::array<char, 160> describe_place(const void* place) noexcept;

}  // namespace viaduct::check
