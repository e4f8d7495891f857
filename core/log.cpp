// SPDX-License-Identifier: BSD-3-Clause
#include "core/log.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "core/base/settings.hpp"

namespace viaduct {
namespace {

constexpr std::array<std::string_view, 4> names{"error", "warning", "info", "debug"};

void write(LogLevel level, const char* text) noexcept {
    std::fprintf(stderr, "viaduct: %s: %s\n", names[static_cast<std::size_t>(level)].data(), text);
}

LogLevel read_threshold() noexcept {
    const std::string_view wanted = setting("VIADUCT_LOG");
    if (wanted.empty()) return LogLevel::Warning;
    const auto* found = std::find(names.begin(), names.end(), wanted);
    if (found != names.end()) return static_cast<LogLevel>(found - names.begin());
    std::array<char, 512> text;  // not with log(), which calls this function
    std::snprintf(text.data(), text.size(), "VIADUCT_LOG: cannot use '%s', only error, warning, info or debug",
                  wanted.data());
    write(LogLevel::Warning, text.data());
    return LogLevel::Warning;
}

LogLevel threshold() noexcept {
    static const LogLevel level = read_threshold();
    return level;
}

}  // namespace

bool is_logged(LogLevel level) noexcept { return level <= threshold(); }

void log(LogLevel level, const char* format, ...) noexcept {
    if (!is_logged(level)) return;
    std::array<char, 512> text;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    write(level, text.data());
}

}  // namespace viaduct
