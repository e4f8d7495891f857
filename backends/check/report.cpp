// SPDX-License-Identifier: BSD-3-Clause
#include "backends/check/report.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/settings.hpp"
#include "core/base/unique_fd.hpp"
#include "core/base/waiting.hpp"
#include "core/log.hpp"

namespace viaduct::check {
namespace {

void append(std::array<char, 2048>& line, std::size_t& used, const char* name, std::string_view value) noexcept {
    const auto put = [&](char character) {
        if (used < line.size() - 4) line[used++] = character;  // leaves room for the end
    };
    put(used == 0 ? '{' : ',');
    put('"');
    for (const char* character = name; *character != '\0'; ++character) put(*character);
    for (const char character : {'"', ':', '"'}) put(character);
    for (const char character : value) {
        if (character == '"' || character == '\\') put('\\');
        put(static_cast<unsigned char>(character) < ' ' ? ' ' : character);
    }
    put('"');
}

void write_json(const Report& report, const char* posted, const char* found) noexcept {
    const std::string_view path = setting(check_file_setting);
    if (path.empty()) return;
    std::array<char, 2048> line{};
    std::size_t used = 0;
    append(line, used, "check", check_names[static_cast<std::size_t>(report.check)]);
    append(line, used, "object", report.object.c_str());
    append(line, used, "text", report.what.c_str());
    append(line, used, "posted", posted);
    append(line, used, "found", found);
    append(line, used, "program", program_invocation_short_name);
    append(line, used, "process", Text("%d", getpid()).c_str());
    line[used++] = '}';
    line[used++] = '\n';
    const CancellationHold hold;
    constexpr mode_t everybody = 0666;
    const UniqueFd file(open(path.data(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, everybody));
    if (!file || write(file.get(), line.data(), used) < 0)
        log(LogLevel::Error, "%s: cannot write '%s': %s", check_file_setting, path.data(), std::strerror(errno));
}

}  // namespace

Text::Text(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    add_list(format, arguments);
    va_end(arguments);
}

void Text::add(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    add_list(format, arguments);
    va_end(arguments);
}

void Text::add_list(const char* format, std::va_list arguments) noexcept {
    const int length = std::vsnprintf(text_.data() + size_, text_.size() - size_, format, arguments);
    size_ = std::min(size_ + static_cast<std::size_t>(std::max(length, 0)), text_.size() - 1);
}

void tell(const Report& report) noexcept {
    const auto posted = describe_place(report.posted);
    const auto found = describe_place(report.is_found_here ? find_place() : nullptr);
    Text places;
    if (report.was_posted) places.add("; posted at %s", posted.data());
    if (report.is_found_here) places.add("%s found at %s", report.was_posted ? "," : ";", found.data());
    log(LogLevel::Warning, "check %s: %s%s", check_names[static_cast<std::size_t>(report.check)].data(),
        report.what.c_str(), places.c_str());
    write_json(report, report.was_posted ? posted.data() : "", report.is_found_here ? found.data() : "");
}

}  // namespace viaduct::check
