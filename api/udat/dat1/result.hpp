// SPDX-License-Identifier: BSD-3-Clause
// Return codes of both releases.
#pragma once

#include "releases.hpp"

namespace viaduct::dat1 {

/// The code of 1.2 that says what the one of 2.0 does.
DAT_RETURN result_of(dat2::DAT_RETURN result) noexcept;

/// The other way round, for a type and subtype that 2.0 has, too.
dat2::DAT_RETURN result_in_2(DAT_RETURN result) noexcept;

/// Where 2.0's call has an argument more, the `place`-th, those behind it have lower numbers in 1.2.
DAT_RETURN without_argument(DAT_RETURN result, unsigned place) noexcept;

constexpr DAT_RETURN error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) noexcept {
    return DAT_CLASS_ERROR | DAT_RETURN{type} | DAT_RETURN{subtype};
}

constexpr DAT_RETURN bad_argument(unsigned place) noexcept {
    return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | (DAT_INVALID_ARG1 + place - 1);
}

}  // namespace viaduct::dat1
