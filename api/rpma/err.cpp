// SPDX-License-Identifier: BSD-3-Clause
// Names of errors and events. Their texts are those of librpma, because programs print them.
#include <algorithm>
#include <iterator>
#include <new>
#include <set>
#include <string>

#include "api/rpma/api.hpp"
#include "api/rpma/translate.hpp"
#include "core/base/fork.hpp"
#include "viaduct/detail/mutex.hpp"

using namespace viaduct;

namespace {

struct Error {
    int code;
    const char* name;
    const char* text;
};

#define ERROR(code, text) \
    { code, #code, text }
constexpr Error errors[] = {
    ERROR(RPMA_E_UNKNOWN, "Unknown error"),
    ERROR(RPMA_E_NOSUPP, "Not supported"),
    ERROR(RPMA_E_PROVIDER, "Provider error occurred"),
    ERROR(RPMA_E_NOMEM, "Out of memory"),
    ERROR(RPMA_E_INVAL, "Invalid argument"),
    ERROR(RPMA_E_NO_COMPLETION, "No next completion available"),
    ERROR(RPMA_E_NO_EVENT, "No next event available"),
    ERROR(RPMA_E_AGAIN, "Temporary error, try again"),
    ERROR(RPMA_E_SHARED_CHANNEL, "Completion channel is shared"),
    ERROR(RPMA_E_NOT_SHARED_CHNL, "Completion channel is not shared"),
};

const Error& error_of(int code) noexcept {
    static constexpr Error success{0, "an unknown code", "Success"};
    static constexpr Error unknown{0, "an unknown code", "Unknown error"};
    if (code == 0) return success;
    const auto* const found = std::ranges::find(errors, code, &Error::code);
    return found == std::end(errors) ? unknown : *found;
}

const char* text_of(int code) noexcept { return error_of(code).text; }

/// Texts that exist until the process ends.
class Texts {
public:
    /// Null: there are too many. Throws std::bad_alloc.
    const char* find(const std::string& text) {
        constexpr std::size_t most = 4096;
        const LockGuard lock(mutex_);
        const auto found = texts_.find(text);
        if (found != texts_.end()) return found->c_str();
        return texts_.size() < most ? texts_.insert(text).first->c_str() : nullptr;
    }

private:
    ProcessMutex mutex_;
    std::set<std::string> texts_ VIADUCT_GUARDED_BY(mutex_);
};

Texts& texts() {
    static auto& texts = *new Texts;
    return texts;
}

}  // namespace

const char* rpma::name_of(int result) noexcept { return error_of(result).name; }

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
