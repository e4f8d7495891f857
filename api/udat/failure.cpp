// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/failure.hpp"

#include <dat2/dat_error.h>

#include <algorithm>
#include <iterator>

#include "core/base/failure.hpp"

namespace viaduct::dat {
namespace {

struct Name {
    DAT_UINT32 value;
    const char* text;
};

#define NAME(enumerator) \
    Name { enumerator, #enumerator }

constexpr Name types[] = {
    NAME(DAT_SUCCESS),
    NAME(DAT_ABORT),
    NAME(DAT_CONN_QUAL_IN_USE),
    NAME(DAT_INSUFFICIENT_RESOURCES),
    NAME(DAT_INTERNAL_ERROR),
    NAME(DAT_INVALID_HANDLE),
    NAME(DAT_INVALID_PARAMETER),
    NAME(DAT_INVALID_STATE),
    NAME(DAT_LENGTH_ERROR),
    NAME(DAT_MODEL_NOT_SUPPORTED),
    NAME(DAT_PROVIDER_NOT_FOUND),
    NAME(DAT_PRIVILEGES_VIOLATION),
    NAME(DAT_PROTECTION_VIOLATION),
    NAME(DAT_QUEUE_EMPTY),
    NAME(DAT_QUEUE_FULL),
    NAME(DAT_TIMEOUT_EXPIRED),
    NAME(DAT_PROVIDER_ALREADY_REGISTERED),
    NAME(DAT_PROVIDER_IN_USE),
    NAME(DAT_INVALID_ADDRESS),
    NAME(DAT_INTERRUPTED_CALL),
    NAME(DAT_CONN_QUAL_UNAVAILABLE),
    NAME(DAT_RESERVED_LMR),
    NAME(DAT_PORT_IN_USE),
    NAME(DAT_COMM_NOT_SUPPORTED),
    NAME(DAT_EXTENSION_BASE),
    NAME(DAT_NOT_IMPLEMENTED),
};

/// In the order of their values, without gaps.
constexpr Name subtypes[] = {
    {DAT_NO_SUBTYPE, ""},
    NAME(DAT_SUB_INTERRUPTED),
    NAME(DAT_RESOURCE_MEMORY),
    NAME(DAT_RESOURCE_DEVICE),
    NAME(DAT_RESOURCE_TEP),
    NAME(DAT_RESOURCE_TEVD),
    NAME(DAT_RESOURCE_PROTECTION_DOMAIN),
    NAME(DAT_RESOURCE_MEMORY_REGION),
    NAME(DAT_RESOURCE_ERROR_HANDLER),
    NAME(DAT_RESOURCE_CREDITS),
    NAME(DAT_RESOURCE_SRQ),
    NAME(DAT_INVALID_HANDLE_IA),
    NAME(DAT_INVALID_HANDLE_EP),
    NAME(DAT_INVALID_HANDLE_LMR),
    NAME(DAT_INVALID_HANDLE_RMR),
    NAME(DAT_INVALID_HANDLE_PZ),
    NAME(DAT_INVALID_HANDLE_PSP),
    NAME(DAT_INVALID_HANDLE_RSP),
    NAME(DAT_INVALID_HANDLE_CR),
    NAME(DAT_INVALID_HANDLE_CNO),
    NAME(DAT_INVALID_HANDLE_EVD_CR),
    NAME(DAT_INVALID_HANDLE_EVD_REQUEST),
    NAME(DAT_INVALID_HANDLE_EVD_RECV),
    NAME(DAT_INVALID_HANDLE_EVD_CONN),
    NAME(DAT_INVALID_HANDLE_EVD_ASYNC),
    NAME(DAT_INVALID_HANDLE_SRQ),
    NAME(DAT_INVALID_HANDLE_CSP),
    NAME(DAT_INVALID_HANDLE1),
    NAME(DAT_INVALID_HANDLE2),
    NAME(DAT_INVALID_HANDLE3),
    NAME(DAT_INVALID_HANDLE4),
    NAME(DAT_INVALID_HANDLE5),
    NAME(DAT_INVALID_HANDLE6),
    NAME(DAT_INVALID_HANDLE7),
    NAME(DAT_INVALID_HANDLE8),
    NAME(DAT_INVALID_HANDLE9),
    NAME(DAT_INVALID_HANDLE10),
    NAME(DAT_INVALID_ARG1),
    NAME(DAT_INVALID_ARG2),
    NAME(DAT_INVALID_ARG3),
    NAME(DAT_INVALID_ARG4),
    NAME(DAT_INVALID_ARG5),
    NAME(DAT_INVALID_ARG6),
    NAME(DAT_INVALID_ARG7),
    NAME(DAT_INVALID_ARG8),
    NAME(DAT_INVALID_ARG9),
    NAME(DAT_INVALID_ARG10),
    NAME(DAT_INVALID_STATE_EP_UNCONNECTED),
    NAME(DAT_INVALID_STATE_EP_ACTCONNPENDING),
    NAME(DAT_INVALID_STATE_EP_PASSCONNPENDING),
    NAME(DAT_INVALID_STATE_EP_TENTCONNPENDING),
    NAME(DAT_INVALID_STATE_EP_CONNECTED),
    NAME(DAT_INVALID_STATE_EP_DISCONNECTED),
    NAME(DAT_INVALID_STATE_EP_RESERVED),
    NAME(DAT_INVALID_STATE_EP_COMPLPENDING),
    NAME(DAT_INVALID_STATE_EP_DISCPENDING),
    NAME(DAT_INVALID_STATE_EP_PROVIDERCONTROL),
    NAME(DAT_INVALID_STATE_EP_NOTREADY),
    NAME(DAT_INVALID_STATE_EP_RECV_WATERMARK),
    NAME(DAT_INVALID_STATE_EP_PZ),
    NAME(DAT_INVALID_STATE_EP_EVD_REQUEST),
    NAME(DAT_INVALID_STATE_EP_EVD_RECV),
    NAME(DAT_INVALID_STATE_EP_EVD_CONNECT),
    NAME(DAT_INVALID_STATE_EP_UNCONFIGURED),
    NAME(DAT_INVALID_STATE_EP_UNCONFRESERVED),
    NAME(DAT_INVALID_STATE_EP_UNCONFPASSIVE),
    NAME(DAT_INVALID_STATE_EP_UNCONFTENTATIVE),
    NAME(DAT_INVALID_STATE_CNO_IN_USE),
    NAME(DAT_INVALID_STATE_CNO_DEAD),
    NAME(DAT_INVALID_STATE_EVD_OPEN),
    NAME(DAT_INVALID_STATE_EVD_ENABLED),
    NAME(DAT_INVALID_STATE_EVD_DISABLED),
    NAME(DAT_INVALID_STATE_EVD_WAITABLE),
    NAME(DAT_INVALID_STATE_EVD_UNWAITABLE),
    NAME(DAT_INVALID_STATE_EVD_IN_USE),
    NAME(DAT_INVALID_STATE_EVD_CONFIG_NOTIFY),
    NAME(DAT_INVALID_STATE_EVD_CONFIG_SOLICITED),
    NAME(DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD),
    NAME(DAT_INVALID_STATE_EVD_WAITER),
    NAME(DAT_INVALID_STATE_EVD_ASYNC),
    NAME(DAT_INVALID_STATE_IA_IN_USE),
    NAME(DAT_INVALID_STATE_LMR_IN_USE),
    NAME(DAT_INVALID_STATE_LMR_FREE),
    NAME(DAT_INVALID_STATE_PZ_IN_USE),
    NAME(DAT_INVALID_STATE_PZ_FREE),
    NAME(DAT_INVALID_STATE_SRQ_OPERATIONAL),
    NAME(DAT_INVALID_STATE_SRQ_ERROR),
    NAME(DAT_INVALID_STATE_SRQ_IN_USE),
    NAME(DAT_INVALID_STATE_SRQ_SHUTDOWN),
    NAME(DAT_PRIVILEGES_READ),
    NAME(DAT_PRIVILEGES_WRITE),
    NAME(DAT_PRIVILEGES_RDMA_READ),
    NAME(DAT_PRIVILEGES_RDMA_WRITE),
    NAME(DAT_PROTECTION_READ),
    NAME(DAT_PROTECTION_WRITE),
    NAME(DAT_PROTECTION_RDMA_READ),
    NAME(DAT_PROTECTION_RDMA_WRITE),
    NAME(DAT_INVALID_ADDRESS_UNSUPPORTED),
    NAME(DAT_INVALID_ADDRESS_UNREACHABLE),
    NAME(DAT_INVALID_ADDRESS_MALFORMED),
    NAME(DAT_NAME_NOT_REGISTERED),
    NAME(DAT_MAJOR_NOT_FOUND),
    NAME(DAT_MINOR_NOT_FOUND),
    NAME(DAT_THREAD_SAFETY_NOT_FOUND),
};
#undef NAME

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
    return subtype < std::size(subtypes) ? subtypes[subtype].text : nullptr;
}

std::uint32_t refuse(std::uint32_t result, const char* reason) noexcept {
    failure::because(reason);
    return result;
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
