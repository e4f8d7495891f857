// SPDX-License-Identifier: BSD-3-Clause
// Names of errors and events. Their texts are those of librpma, because programs print them.
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "api/rpma/api.hpp"
#include "api/rpma/translate.hpp"
#include "core/base/fork.hpp"

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

/// Texts that exist until the process ends.
class Texts {
public:
    /// Null: there are too many. Throws std::bad_alloc.
    const char* find(const std::string& text) {
        constexpr std::size_t most = 4096;
        const std::lock_guard lock(mutex_);
        const auto found = texts_.find(text);
        if (found != texts_.end()) return found->c_str();
        return texts_.size() < most ? texts_.insert(text).first->c_str() : nullptr;
    }

private:
    ProcessMutex mutex_;
    std::set<std::string> texts_;
};

Texts& texts() {
    static auto& texts = *new Texts;
    return texts;
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

/// Programs keep the pointer, so a text never changes. If there are too many of them, the text is that of librpma
/// alone.
const char* rpma_err_2str(int ret) try {
    const char* const why = failure::last(ret);
    if (ret == 0 || *why == '\0') return text_of(ret);
    const CancellationHold hold;
    const char* const text = texts().find(std::string(text_of(ret)) + ": " + why);
    return text != nullptr ? text : text_of(ret);
} catch (const std::bad_alloc&) {
    return text_of(ret);
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
