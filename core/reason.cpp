// SPDX-License-Identifier: BSD-3-Clause
#include "core/explain.hpp"

#include <pthread.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

namespace viaduct {
namespace {

/// The texts that a thread has formatted last.
struct Explanations {
    std::array<std::array<char, 256>, 4> texts;
    std::size_t next = 0;
};

/// Returns null if there is no memory. They are not thread_local: little room is left for that where the library is
/// opened late, and the process would end if there were no memory to have them destroyed.
Explanations* explanations() noexcept {
    static const auto key = [] {
        std::optional<pthread_key_t> made(pthread_key_t{});
        if (pthread_key_create(&*made, [](void* texts) { delete static_cast<Explanations*>(texts); }) != 0)
            made.reset();
        return made;
    }();
    if (!key) return nullptr;
    if (void* const known = pthread_getspecific(*key); known != nullptr) return static_cast<Explanations*>(known);
    std::unique_ptr<Explanations> made(new (std::nothrow) Explanations);
    return made != nullptr && pthread_setspecific(*key, made.get()) == 0 ? made.release() : nullptr;
}

}  // namespace

const char* explain(const char* format, ...) noexcept {
    Explanations* const kept = explanations();
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
