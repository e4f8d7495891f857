// SPDX-License-Identifier: BSD-3-Clause
// Converts types of one release to those of the other.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "result.hpp"

namespace viaduct::dat1 {

/// Converts a value to the type of the other release, which is identical except for its name. Memory that pointers
/// refer to has the same layout.
template <class To, class From>
To same(From from) noexcept {
    if constexpr (std::is_convertible_v<From, To>) {
        return from;
    } else if constexpr (std::is_enum_v<To>) {
        return static_cast<To>(from);
    } else if constexpr (std::is_pointer_v<To> && std::is_pointer_v<From>) {
        static_assert(sizeof(std::remove_pointer_t<To>) == sizeof(std::remove_pointer_t<From>));
        return reinterpret_cast<To>(from);
    } else {
        return std::bit_cast<To>(from);
    }
}

/// Calls a function of 2.0 that takes the same arguments in 1.2. Not noexcept: a waiting thread may be cancelled.
template <class... To>
DAT_RETURN pass(dat2::DAT_RETURN (*call)(To...), auto... arguments) {
    return result_of(call(same<To>(arguments)...));
}

/// Copies a member that exists in both releases, whatever its offset and size. Use COPY(member) where `to` and `from`
/// are visible.
#define COPY(member) copy_member(to.member, from.member);

template <class To, class From>
void copy_member(To& to, const From& from) noexcept {
    if constexpr (std::is_integral_v<To>) {
        to = static_cast<To>(from);
    } else if constexpr (std::is_pointer_v<To>) {
        to = same<To>(from);
    } else {
        static_assert(sizeof(To) == sizeof(From));
        // Copies bytes, because a program may have stored any value in an enumeration, and because some members that
        // the consumer wants filled are declared const.
        std::memcpy(const_cast<void*>(static_cast<const void*>(&to)), &from, sizeof to);
    }
}

/// Queries an object with a call of 2.0 and tells the program what it says. `unknown`: bits of the mask that are not in
/// 1.2. `mask`: the mask in 2.0.
template <class To, class Mask, class From>
DAT_RETURN query(const char* call, dat2::DAT_RETURN (*ask)(DAT_HANDLE, Mask, From*), DAT_HANDLE handle,
                 std::uint64_t unknown, std::uint64_t mask, To* param, void (*tell)(To&, const From&)) {
    if (unknown != 0) return bad_argument(call, handle, 2, "the mask has unknown bits");
    if (param == nullptr) return bad_argument(call, handle, 3, "the parameters are null");
    From found{};
    const DAT_RETURN result = pass(ask, handle, static_cast<Mask>(mask), &found);
    if (result == DAT_SUCCESS) tell(*param, found);
    return result;
}

/// Makes room in a mask for `width` new bits that 2.0 inserted before `bit`.
constexpr std::uint64_t with_gap(std::uint64_t mask, std::uint64_t bit, unsigned width) noexcept {
    return (mask & (bit - 1)) | (mask & ~(bit - 1)) << width;
}

}  // namespace viaduct::dat1
