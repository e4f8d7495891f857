// SPDX-License-Identifier: BSD-3-Clause
// Finds the libraries of the APIs in makefiles and in files of CMake, Autoconf and Meson.
#include <array>
#include <utility>

#include <fmt/format.h>

#include "tools/port/scan.hpp"
#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

bool is_part(char c) { return is_word(c) || c == '-' || c == '.'; }

std::string_view advice_for(std::string_view library) {
    if (library == "gnivipl")
        return "Viaduct installs libgnivipl.so as another name of libvipl.so; pkg-config vipl has the flags";
    if (library == "vipl") return "links Viaduct's libvipl.so; pkg-config vipl has the flags";
    if (library == "dat") return "links Viaduct's libdat.so (DAT 1.2); pkg-config dat has the flags";
    if (library == "dat2") return "links Viaduct's libdat2.so; pkg-config dat2 has the flags";
    if (library == "rpma") return "links Viaduct's librpma.so; pkg-config librpma has the flags";
    if (library.starts_with("dapl"))
        return "a provider is loaded as dat.conf says, and not linked: remove it, and link -ldat2 or -ldat";
    return {};
}

/// The library that a word names, or nothing. A mere name is one only where libraries are listed.
std::string library_in(std::string_view word, bool listed) {
    if (word.starts_with("-l")) return std::string(word.substr(2));
    const std::string name = lower(word);
    if (name.ends_with(".lib")) return name.substr(0, name.size() - 4);
    const std::size_t dot = name.find('.');
    if (name.starts_with("lib") && dot != std::string::npos)
        return name.ends_with(".a") || name.compare(dot, 3, ".so") == 0 ? name.substr(3, dot - 3) : "";
    if (!listed) return {};
    return word == "librpma" ? "rpma" : std::string(word);
}

/// Whether the arguments of a command are libraries or modules of pkg-config.
bool lists_libraries(std::string_view word) {
    constexpr std::array<std::string_view, 9> commands = {
        "pkg_check_modules", "pkg_search_module", "target_link_libraries", "link_libraries", "find_library",
        "dependency",        "pkg-config",        "ac_check_lib",          "ac_search_libs"};
    return among(commands, lower(word.substr(word.rfind('.') + 1)));
}

class LinkLineFinder {
public:
    LinkLineFinder(std::string_view content, std::vector<Warning>& warnings) : content_(content), warnings_(warnings) {}

    void run() {
        for (std::size_t i = 0; i < content_.size();) {
            std::size_t end = i;
            while (end < content_.size() && is_part(content_[end])) ++end;
            if (end == i)
                read_mark(i++);
            else
                read_word(std::exchange(i, end), end);
        }
    }

private:
    void read_mark(std::size_t i) {
        const char c = content_[i];
        if (continues_character(c)) ++line_start_;
        if (c == '\n') {
            if (depth_ == 0 && (i == 0 || content_[i - 1] != '\\')) listed_ = false;
            ++line_;
            line_start_ = i + 1;
            comment_ = false;
        }
        if (c == '#') comment_ = true;
        if (comment_ || !listed_) return;
        if (c == '(') ++depth_;
        if (c == ')' && --depth_ <= 0) listed_ = false;
        if (depth_ == 0 && std::string_view(";|&`").find(c) != std::string_view::npos) listed_ = false;
    }

    void read_word(std::size_t start, std::size_t end) {
        const std::string_view word = content_.substr(start, end - start);
        if (word == "dnl") comment_ = true;
        if (comment_) return;
        if (const auto advice = advice_for(library_in(word, listed_)); !advice.empty())
            warnings_.push_back({.rule = Rule::LinkLine,
                                 .position = {line_, static_cast<std::uint32_t>(start - line_start_) + 1},
                                 .text = fmt::format("{}: {}", word, advice)});
        if (!lists_libraries(word)) return;
        listed_ = true;
        depth_ = 0;
    }

    std::string_view content_;
    std::vector<Warning>& warnings_;
    std::uint32_t line_ = 1;
    std::size_t line_start_ = 0;  // moved by the bytes that continue characters: columns are in characters
    bool comment_ = false;
    bool listed_ = false;  // the words are arguments of a command that lists libraries
    int depth_ = 0;        // of its parentheses
};

}  // namespace

void find_link_lines(std::string_view content, std::vector<Warning>& warnings) {
    LinkLineFinder(content, warnings).run();
}

}  // namespace viaduct::port
