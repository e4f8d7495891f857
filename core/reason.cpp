// SPDX-License-Identifier: BSD-3-Clause
#include "core/reason.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

namespace viaduct {
namespace {

/// The texts that a thread has formatted last.
struct Explanations {
    std::array<std::array<char, 256>, 4> texts;
    std::size_t next = 0;
};

}  // namespace

const char* explain(const char* format, ...) noexcept {
    thread_local std::unique_ptr<Explanations> kept;  // little room is left for TLS where the library is opened late
    if (kept == nullptr) kept.reset(new (std::nothrow) Explanations);
    if (kept == nullptr) return format;
    auto& text = kept->texts[kept->next++ % kept->texts.size()];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    return text.data();
}

Reason::Reason(const char* text) noexcept { std::snprintf(text_.data(), text_.size(), "%s", text); }

Reason::Reason(const Status& status) noexcept {
    const int number = status.sys_errno();
    const char* const words = number == 0 ? nullptr : strerrordesc_np(number);
    if (number == 0)
        *this = Reason(status.where());
    else
        std::snprintf(text_.data(), text_.size(), "%s (errno %d: %s)", status.where(), number,
                      words == nullptr ? "unknown" : words);
}

}  // namespace viaduct
