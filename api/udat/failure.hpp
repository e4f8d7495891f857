// SPDX-License-Identifier: BSD-3-Clause
// How the entry points of DAT report that they fail. All results here are those of DAT 2.0, but this includes none of
// its headers, because libdat.so.1 has those of both releases.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace viaduct::dat {

/// The name of a call, as an argument of templates.
template <std::size_t size>
struct CallName {
    constexpr CallName(const char (&name)[size]) noexcept {
        std::copy_n(name, size, text);
    }  // NOLINT: implicit by intent
    char text[size];
};

/// The names of the parts of a result, or null. DAT_NO_SUBTYPE has an empty name.
const char* name_of_type(std::uint32_t result) noexcept;
const char* name_of_subtype(std::uint32_t result) noexcept;

/// Reports the result of a call, if it is a failure, with the reason that was left. Returns the result. `object` is the
/// handle that the call was made with, or null.
[[gnu::cold, gnu::noinline]] std::uint32_t report(const char* call, const void* object, std::uint32_t result) noexcept;

}  // namespace viaduct::dat
