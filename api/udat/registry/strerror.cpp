// SPDX-License-Identifier: BSD-3-Clause
// Names of the types and subtypes of results, and the reason of the last failure.
#include <array>
#include <cstdio>

#include "api/support/failure.hpp"
#include "api/udat/registry/api.hpp"

using namespace viaduct::dat;

namespace {

/// Adds the reason for which this thread last got the result.
const char* with_reason(const char* minor, DAT_RETURN result) noexcept {
    thread_local std::array<char, DAT_NAME_MAX_LENGTH + viaduct::Reason::capacity> text;
    const char* const reason = viaduct::failure::last(static_cast<long>(result));
    if (*reason == '\0') return minor;
    std::snprintf(text.data(), text.size(), "%s%s%s", minor, *minor == '\0' ? "" : ": ", reason);
    return text.data();
}

}  // namespace

DAT_RETURN dat_strerror(DAT_RETURN result, const char** major_message, const char** minor_message) {
    if (major_message == nullptr) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    const char* const type = name_of_type(result);
    const char* const subtype = name_of_subtype(result);
    *major_message = type != nullptr ? type : "unknown error";
    if (minor_message != nullptr)
        *minor_message = subtype != nullptr ? with_reason(subtype, result) : "unknown minor error";
    const bool known = type != nullptr && subtype != nullptr;
    return known ? DAT_RETURN{DAT_SUCCESS} : error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
}
