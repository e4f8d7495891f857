// SPDX-License-Identifier: BSD-3-Clause
// Return codes of both releases.
#pragma once

#include "api/support/failure.hpp"
#include "api/udat/failure.hpp"
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

using failure::failed;

/// Leaves the reason of a wrong argument, and returns the result.
inline DAT_RETURN bad_argument(unsigned place, const char* reason) noexcept {
    return failed(DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | (DAT_INVALID_ARG1 + place - 1), reason);
}

/// Reports a failure that this library finds, and returns the result. The calls of 2.0 report their own failures, in
/// most cases with the same names as in 1.2.
[[gnu::cold, gnu::noinline]] DAT_RETURN report(const char* call, const void* handle, DAT_RETURN result) noexcept;

/// Reports that an argument is wrong, and returns the result. One call, so that entry points keep nothing for it.
[[gnu::cold, gnu::noinline]] DAT_RETURN bad_argument(const char* call, const void* handle, unsigned place,
                                                     const char* reason) noexcept;

/// Runs the body of an entry point and reports its failure. The calls of 2.0 in it report nothing.
DAT_RETURN enter(const char* call, const void* handle, auto&& body) noexcept {
    failure::clear();
    DAT_RETURN result = DAT_SUCCESS;
    {
        const failure::Silence silence;
        result = body();
    }
    return result == DAT_SUCCESS ? result : report(call, handle, result);
}

}  // namespace viaduct::dat1
