// SPDX-License-Identifier: BSD-3-Clause
// Return codes of both releases.
#pragma once

#include "releases.hpp"

namespace viaduct::dat1 {

/// Converts a result of 2.0 to the equivalent one of 1.2.
[[gnu::noinline]] DAT_RETURN failure_of(dat2::DAT_RETURN result) noexcept;
inline DAT_RETURN result_of(dat2::DAT_RETURN result) noexcept {
    return result == DAT_SUCCESS ? DAT_RETURN{DAT_SUCCESS} : failure_of(result);
}

/// Converts a result of 1.2 whose type and subtype also exist in 2.0.
dat2::DAT_RETURN result_in_2(DAT_RETURN result) noexcept;

/// For calls that have an additional argument in 2.0, number `place`: adjusts the numbers of the arguments after it.
DAT_RETURN without_argument(DAT_RETURN result, unsigned place) noexcept;

constexpr DAT_RETURN error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) noexcept {
    return DAT_CLASS_ERROR | DAT_RETURN{type} | DAT_RETURN{subtype};
}

constexpr DAT_RETURN bad_argument(unsigned place) noexcept {
    return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | (DAT_INVALID_ARG1 + place - 1);
}

}  // namespace viaduct::dat1
