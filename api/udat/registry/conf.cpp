// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/registry/conf.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <system_error>

#include "core/base/numbers.hpp"
#include "core/log.hpp"

namespace viaduct::dat {
namespace {

constexpr const char* default_path = "/etc/dat.conf";

constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

/// Skips blanks. Returns false if there is no further field, or only a comment.
bool find_field(std::string_view& text) noexcept {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    return !text.empty() && text.front() != '#';
}

/// Removes a field from the start of the text.
Result<std::string> take_field(std::string_view& text) {
    const bool quoted = text.front() == '"';
    if (quoted) text.remove_prefix(1);
    std::string field;
    for (; !text.empty(); text.remove_prefix(1)) {
        if (quoted ? text.front() == '"' : is_blank(text.front())) {
            text.remove_prefix(1);
            return field;
        }
        if (quoted && text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
        field += text.front();
    }
    if (quoted) return Status(Code::InvalidParameter, "a quotation mark is missing");
    return field;
}

/// Parses "MAJOR.MINOR".
bool read_version(std::string_view text, DAT_UINT32& major, DAT_UINT32& minor) noexcept {
    return take_number(text, major) && take_text(text, ".") && take_number(text, minor) && text.empty();
}

/// Parses one of two words. The first one means true.
std::optional<bool> choice(std::string_view word, std::string_view yes, std::string_view no) noexcept {
    if (word != yes && word != no) return std::nullopt;
    return word == yes;
}

enum Field { IaName, Api, ThreadSafety, Default, LibraryName, ProviderVersion, IaParams, PlatformParams, fields };

Result<Entry> entry_of(std::array<std::string, fields>& line) {
    const auto bad = [](const char* what) { return Status(Code::InvalidParameter, what); };
    Entry entry;
    Offer& offer = entry.offer;
    if (line[IaName].empty()) return bad("the name of the interface adapter is empty");
    if (line[IaName].size() >= DAT_NAME_MAX_LENGTH) return bad("the name of the interface adapter is too long");
    const std::string_view api = line[Api];
    if (api.empty() || (api.front() != 'u' && api.front() != 'k') ||
        !read_version(api.substr(1), offer.major, offer.minor))
        return bad("the API version is neither uMAJOR.MINOR nor kMAJOR.MINOR");
    const auto thread_safe = choice(line[ThreadSafety], "threadsafe", "nonthreadsafe");
    if (!thread_safe) return bad("the third field is neither \"threadsafe\" nor \"nonthreadsafe\"");
    const auto is_default = choice(line[Default], "default", "nondefault");
    if (!is_default) return bad("the fourth field is neither \"default\" nor \"nondefault\"");
    if (line[LibraryName].empty()) return bad("the name of the library is empty");
    const std::string_view version = line[ProviderVersion];
    const std::size_t dot = version.find('.');
    DAT_UINT32 major = 0;
    DAT_UINT32 minor = 0;
    if (dot == 0 || dot == std::string_view::npos || !read_version(version.substr(dot + 1), major, minor))
        return bad("the version of the provider is not ID.MAJOR.MINOR");
    entry.applies = api.front() == 'u' && *is_default;
    offer.ia_name = std::move(line[IaName]);
    offer.thread_safe = *thread_safe;
    entry.library = std::move(line[LibraryName]);
    entry.ia_params = std::move(line[IaParams]);
    return entry;
}

}  // namespace

Result<Entry> parse_line(std::string_view line) {
    std::array<std::string, fields> values;
    std::size_t count = 0;
    for (; find_field(line); ++count) {
        if (count == fields) return Status(Code::InvalidParameter, "the line has more than eight fields");
        auto field = take_field(line);
        if (!field.ok()) return field.status();
        values.at(count) = std::move(*field);
    }
    if (count == fields) return entry_of(values);
    if (count != 0) return Status(Code::InvalidParameter, "the line has fewer than eight fields");
    Entry nothing;
    nothing.applies = false;
    return nothing;
}

ConfFile read_conf_file() {
    const char* const override = std::getenv("DAT_OVERRIDE");
    ConfFile conf{.path = override != nullptr ? override : default_path, .overrides = override != nullptr};
    errno = 0;
    std::ifstream file(conf.path);
    conf.readable = static_cast<bool>(file);
    conf.error = conf.readable ? 0 : errno;
    std::string text;
    for (unsigned number = 1; std::getline(file, text); ++number) {
        auto entry = parse_line(text);
        if (!entry.ok() || !entry->offer.ia_name.empty()) conf.lines.push_back({number, std::move(entry)});
    }
    return conf;
}

std::vector<Entry> read_conf() {
    ConfFile conf = read_conf_file();
    const char* const path = conf.path.c_str();
    if (Status::from_errno(conf.error, path).code() == Code::NoResources)  // the file may exist
        throw std::system_error(conf.error, std::generic_category());
    if (!conf.readable && conf.overrides) log(LogLevel::Warning, "DAT_OVERRIDE: cannot read %s", path);
    std::vector<Entry> entries;
    for (auto& [number, entry] : conf.lines) {
        if (!entry.ok())
            log(LogLevel::Warning, "%s:%u: line ignored: %s", path, number, entry.status().where());
        else if (entry->applies)
            entries.push_back(std::move(*entry));
    }
    return entries;
}

}  // namespace viaduct::dat
