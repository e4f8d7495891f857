// SPDX-License-Identifier: BSD-3-Clause
// Names of errors and events. Their texts are those of librpma, because programs print them.
#include <array>
#include <cstdio>

#include "api/rpma/api.hpp"
#include "api/rpma/translate.hpp"

using namespace viaduct;

namespace {

const char* text_of(int ret) noexcept {
    switch (ret) {
        case 0: return "Success";
        case RPMA_E_NOSUPP: return "Not supported";
        case RPMA_E_PROVIDER: return "Provider error occurred";
        case RPMA_E_NOMEM: return "Out of memory";
        case RPMA_E_INVAL: return "Invalid argument";
        case RPMA_E_NO_COMPLETION: return "No next completion available";
        case RPMA_E_NO_EVENT: return "No next event available";
        case RPMA_E_AGAIN: return "Temporary error, try again";
        case RPMA_E_SHARED_CHANNEL: return "Completion channel is shared";
        case RPMA_E_NOT_SHARED_CHNL: return "Completion channel is not shared";
        default: return "Unknown error";
    }
}

}  // namespace

const char* rpma::name_of(int result) noexcept {
    switch (result) {
        case RPMA_E_UNKNOWN: return "RPMA_E_UNKNOWN";
        case RPMA_E_NOSUPP: return "RPMA_E_NOSUPP";
        case RPMA_E_PROVIDER: return "RPMA_E_PROVIDER";
        case RPMA_E_NOMEM: return "RPMA_E_NOMEM";
        case RPMA_E_INVAL: return "RPMA_E_INVAL";
        case RPMA_E_NO_COMPLETION: return "RPMA_E_NO_COMPLETION";
        case RPMA_E_NO_EVENT: return "RPMA_E_NO_EVENT";
        case RPMA_E_AGAIN: return "RPMA_E_AGAIN";
        case RPMA_E_SHARED_CHANNEL: return "RPMA_E_SHARED_CHANNEL";
        case RPMA_E_NOT_SHARED_CHNL: return "RPMA_E_NOT_SHARED_CHNL";
        default: return "an unknown code";
    }
}

const char* rpma_err_2str(int ret) {
    const char* const why = failure::last(ret);
    if (ret == 0 || *why == '\0') return text_of(ret);
    thread_local std::array<char, 64 + Reason::capacity> text;
    std::snprintf(text.data(), text.size(), "%s: %s", text_of(ret), why);
    return text.data();
}

const char* rpma_utils_conn_event_2str(enum rpma_conn_event conn_event) {
    switch (static_cast<int>(conn_event)) {
        case RPMA_CONN_UNDEFINED: return "Undefined connection event";
        case RPMA_CONN_ESTABLISHED: return "Connection established";
        case RPMA_CONN_CLOSED: return "Connection closed";
        case RPMA_CONN_LOST: return "Connection lost";
        case RPMA_CONN_REJECTED: return "Connection rejected";
        case RPMA_CONN_UNREACHABLE: return "Connection unreachable";
        default: return "Unsupported connection event";
    }
}
