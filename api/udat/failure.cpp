// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/failure.hpp"

#include <dat2/dat_error.h>

#include <iterator>

#include "api/support/failure.hpp"

namespace viaduct::dat {
namespace {

struct Name {
    DAT_UINT32 value;
    const char* text;
};

#define CONSTANT(name) {name, #name},
constexpr Name types[] = {
#include "dat_return_type.inc"
};
constexpr Name subtypes[] = {
#include "dat_return_subtype.inc"
};
#undef CONSTANT

constexpr bool without_gap() {
    for (std::size_t i = 0; i < std::size(subtypes); ++i)
        if (subtypes[i].value != i) return false;
    return true;
}
static_assert(without_gap() && std::size(subtypes) == DAT_THREAD_SAFETY_NOT_FOUND + 1);

/// Whether a program that makes no mistake expects this result.
bool is_expected(std::uint32_t type) noexcept {
    return type == DAT_SUCCESS || type == DAT_QUEUE_EMPTY || type == DAT_TIMEOUT_EXPIRED ||
           type == DAT_INTERRUPTED_CALL;
}

/// Errors in the use of the API are of interest only to those who debug the program.
LogLevel level_of(std::uint32_t type) noexcept {
    switch (type) {
        case DAT_ABORT:
        case DAT_INVALID_HANDLE:
        case DAT_INVALID_PARAMETER:
        case DAT_INVALID_STATE:
        case DAT_LENGTH_ERROR:
        case DAT_QUEUE_FULL: return LogLevel::Debug;
        default: return LogLevel::Info;
    }
}

}  // namespace

const char* name_of_type(std::uint32_t result) noexcept {
    const auto* const found = std::ranges::find(types, DAT_GET_TYPE(result), &Name::value);
    return found == std::end(types) ? nullptr : found->text;
}

const char* name_of_subtype(std::uint32_t result) noexcept {
    const DAT_UINT32 subtype = DAT_GET_SUBTYPE(result);
    if (subtype == DAT_NO_SUBTYPE) return "";
    return subtype < std::size(subtypes) ? subtypes[subtype].text : nullptr;
}

std::uint32_t report(const char* call, const void* object, std::uint32_t result) noexcept {
    const std::uint32_t type = DAT_GET_TYPE(result);
    if (is_expected(type)) return result;
    const LogLevel level = level_of(type);
    const char* name = "";
    if (is_logged(level)) {
        const char* const subtype = name_of_subtype(result);
        const bool plain = subtype == nullptr || *subtype == '\0';
        const char* const known = name_of_type(result);
        name = explain("%s%s%s", known == nullptr ? "unknown error" : known, plain ? "" : " ", plain ? "" : subtype);
    }
    failure::report(level, {.call = call, .object = object, .code = static_cast<long>(result), .name = name});
    return result;
}

}  // namespace viaduct::dat
