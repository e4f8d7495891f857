// SPDX-License-Identifier: BSD-3-Clause
// Finds and reads the files to scan.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tools/port/scan.hpp"
#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_file = 8 * 1024 * 1024;

/// The kind that a name tells, if it tells one.
std::optional<FileKind> kind_of(const fs::path& path) {
    constexpr std::array<std::string_view, 16> sources = {".c",   ".C",   ".cc",  ".cpp", ".cxx", ".c++",
                                                          ".h",   ".H",   ".hh",  ".hpp", ".hxx", ".h++",
                                                          ".inl", ".ipp", ".tcc", ".inc"};
    constexpr std::array<std::string_view, 6> build_suffixes = {".mk", ".mak", ".am", ".cmake", ".pro", ".gyp"};
    constexpr std::array<std::string_view, 5> make_suffixes = {".inc", ".config", ".conf", ".defs", ".rules"};
    constexpr std::array<std::string_view, 8> build_names = {"GNUmakefile",  "Imakefile",    "CMakeLists.txt",
                                                             "configure.ac", "configure.in", "configure",
                                                             "meson.build",  "SConstruct"};
    const std::string name = path.filename().string();
    const std::string suffix = path.extension().string();
    const std::string beginning = lower(name.substr(0, name.find('.')));
    const bool for_make = beginning == "makefile" || (beginning == "make" && among(make_suffixes, suffix));
    if (among(sources, suffix) && !(for_make && suffix == ".inc")) return FileKind::Source;
    if (among(build_names, name) || among(build_suffixes, suffix) || for_make) return FileKind::Build;
    return std::nullopt;
}

/// The iterator leaves out silently what it may not read.
void note_unreadable(const fs::path& directory, std::vector<SourceFile>& files) {
    if (::access(directory.c_str(), R_OK | X_OK) != 0)
        files.push_back({.path = directory, .kind = FileKind::Source, .problem = "the directory cannot be read"});
}

void add_directory(const fs::path& directory, std::vector<SourceFile>& files) {
    note_unreadable(directory, files);
    std::error_code error;
    fs::recursive_directory_iterator it(directory, fs::directory_options::skip_permission_denied, error);
    for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
        const fs::path& path = it->path();
        std::error_code ignored;
        if (it->is_directory(ignored) && !it->is_symlink(ignored)) {
            if (path.filename().string().starts_with('.'))
                it.disable_recursion_pending();
            else
                note_unreadable(path, files);
        } else if (const auto kind = kind_of(path); kind && !it->is_directory(ignored)) {
            files.push_back({.path = path, .kind = *kind, .problem = {}});
        }
    }
    if (error) files.push_back({.path = directory, .kind = FileKind::Source, .problem = error.message()});
}

}  // namespace

std::vector<SourceFile> find_sources(const std::vector<std::string>& paths) {
    std::vector<SourceFile> files;
    for (const auto& path : paths) {
        std::error_code error;
        if (fs::is_directory(path, error))
            add_directory(path, files);
        else
            files.push_back({.path = path, .kind = kind_of(path).value_or(FileKind::Source), .problem = {}});
    }
    std::ranges::sort(files, {}, &SourceFile::path);
    std::set<fs::path> seen;
    std::erase_if(files, [&](const SourceFile& file) {
        std::error_code error;
        const fs::path real = fs::canonical(file.path, error);
        return !seen.insert(error ? file.path : real).second;
    });
    return files;
}

std::string read_source(SourceFile& file) {
    const auto fail = [&](std::string problem) {
        file.problem = std::move(problem);
        return std::string();
    };
    if (!file.problem.empty()) return {};
    std::error_code error;
    const fs::file_status status = fs::status(file.path, error);
    if (error) return fail(error.message());
    if (!fs::is_regular_file(status)) return fail("not a regular file");
    const std::uintmax_t size = fs::file_size(file.path, error);
    if (error) return fail(error.message());
    if (size > largest_file) return fail(fmt::format("larger than {} MiB", largest_file / 1024 / 1024));
    std::ifstream stream(file.path, std::ios::binary);
    std::string content(size, '\0');
    stream.read(content.data(), static_cast<std::streamsize>(size));
    if (!stream && stream.gcount() == 0 && size != 0) return fail("cannot be read");
    content.resize(static_cast<std::size_t>(stream.gcount()));  // it may have become shorter
    return content.find('\0') != std::string::npos ? fail("a binary file") : content;
}

}  // namespace viaduct::port
