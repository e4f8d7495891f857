// SPDX-License-Identifier: BSD-3-Clause
#include "core/log.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace viaduct {
namespace {

constexpr std::array<std::string_view, 4> names{"error", "warning", "info", "debug"};

LogLevel threshold() noexcept {
    static const LogLevel level = [] {
        const char* wanted = std::getenv("VIADUCT_LOG");
        if (wanted == nullptr) return LogLevel::Warning;
        const auto* found = std::find(names.begin(), names.end(), std::string_view(wanted));
        return found == names.end() ? LogLevel::Warning : static_cast<LogLevel>(found - names.begin());
    }();
    return level;
}

}  // namespace

void log(LogLevel level, const char* format, ...) noexcept {
    if (level > threshold()) return;
    std::array<char, 512> text;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "viaduct: %s: %s\n", names[static_cast<std::size_t>(level)].data(), text.data());
}

}  // namespace viaduct
