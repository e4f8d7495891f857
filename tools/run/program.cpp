// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/program.hpp"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/algorithm/string.hpp>

#include "tools/measure/error.hpp"
#include "tools/run/elf_file.hpp"

namespace viaduct::run {
namespace {

namespace fs = std::filesystem;
using measure::Error;

/// How the names of the libraries begin that this installation replaces, and of those that it cannot replace.
constexpr std::array replaced_names{"libvipl.so", "libgnivipl.so", "vipl.so", "libdat2.so", "libdat.so", "librpma.so"};
constexpr std::array other_names{"libibverbs.so", "librdmacm.so", "libdapl",    "libfabric.so", "libucp.so",
                                 "libuct.so",     "libmlx5.so",   "libmlx4.so", "libpsm2.so"};

bool begins_with_one_of(const std::string& name, const auto& beginnings) {
    return std::ranges::any_of(beginnings, [&](const char* beginning) { return name.starts_with(beginning); });
}

bool is_executable_file(const fs::path& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

/// A library and the file in which the dynamic linker finds it; no file if it does not.
using Libraries = std::map<std::string, std::string>;

/// The lines of ldd(1): "libdat2.so.2 => /usr/lib/libdat2.so.2 (0x7f...)", "libdat2.so.2 => not found". The name of a
/// file may have blanks.
Libraries parse_list(std::FILE* stream) {
    Libraries libraries;
    std::array<char, 8192> line{};
    while (std::fgets(line.data(), line.size(), stream) != nullptr) {
        constexpr std::string_view arrow = " => ";
        const std::string text = boost::trim_copy(std::string(line.data()));
        const auto begin = text.find(arrow);
        if (begin == std::string::npos) continue;
        const auto end = text.rfind(" (0x");
        libraries[text.substr(0, begin)] =
            end == std::string::npos ? "" : text.substr(begin + arrow.size(), end - begin - arrow.size());
    }
    return libraries;
}

/// What the dynamic linker would load. It runs nothing of the program.
Libraries list_libraries(const std::string& linker, const fs::path& program, const Installation& installation) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
    std::string path = "LD_LIBRARY_PATH=" + installation.library_path();
    std::string trace = "LD_TRACE_LOADED_OBJECTS=1";
    std::string file = fs::absolute(program).string();
    std::string name = linker;
    std::array<char*, 3> environment{path.data(), trace.data(), nullptr};
    std::array<char*, 3> arguments{name.data(), file.data(), nullptr};
    pid_t child = 0;
    const int failed = posix_spawn(&child, linker.c_str(), &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::FILE* stream = fdopen(ends[0], "r");
    Libraries libraries = parse_list(stream);
    std::fclose(stream);
    if (failed == 0) waitpid(child, nullptr, 0);
    return libraries;
}

/// The interpreter of a script; "/usr/bin/env NAME" stands for what it finds. Empty if the file is no script.
fs::path interpreter_of(const fs::path& program) {
    std::ifstream stream(program);
    std::string line;
    if (!std::getline(stream, line) || !line.starts_with("#!")) return {};
    std::istringstream words(line.substr(2));
    std::string interpreter;
    words >> interpreter;
    if (fs::path(interpreter).filename() != "env") return interpreter;
    std::string name;
    while (words >> name)
        if (!name.starts_with('-') && name.find('=') == std::string::npos) return find_program(name);
    return interpreter;
}

class Examination {
public:
    Examination(fs::path program, const Installation& installation)
        : program_(std::move(program)), installation_(installation) {}

    Findings run() {
        follow_scripts();
        const auto elf = read_elf(program_);
        if (!elf) return std::move(findings_);  // execvp() has the last word on it
        warn_of_privileges();
        if (!elf->native)
            warn("'{}' is a program for another processor or word size: nothing is replaced", program_.string());
        else if (elf->interpreter.empty())
            warn("'{}' is linked statically: nothing is replaced", program_.string());
        else
            look_at_libraries(*elf);
        return std::move(findings_);
    }

private:
    template <typename... Arguments>
    void warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        findings_.warnings.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    void follow_scripts() {
        constexpr int deepest = 4;  // as in the kernel
        for (int depth = 0; depth < deepest; ++depth) {
            const auto interpreter = interpreter_of(program_);
            if (interpreter.empty()) return;
            program_ = interpreter;
        }
    }

    /// The dynamic linker ignores LD_LIBRARY_PATH and LD_PRELOAD for programs with privileges of their own.
    void warn_of_privileges() {
        struct stat status {};
        if (stat(program_.c_str(), &status) != 0) return;
        const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
        const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
        const bool has_capabilities =
            geteuid() != 0 && getxattr(program_.c_str(), "security.capability", nullptr, 0) > 0;
        if (other_user || other_group || has_capabilities)
            warn("'{}' is setuid, setgid or has capabilities: the dynamic linker replaces nothing in it",
                 program_.string());
    }

    void look_at_libraries(const ElfFile& elf) {
        const std::string linker = fs::path(elf.interpreter).filename().string();
        if (!linker.starts_with("ld-linux") && !linker.starts_with("ld64.so") && !linker.starts_with("ld.so")) {
            warn("'{}' has an unknown dynamic linker, '{}'", program_.string(), elf.interpreter);
            return;
        }
        const auto libraries = list_libraries(elf.interpreter, program_, installation_);
        std::vector<std::string> ours;
        for (const auto& [name, file] : libraries) {
            if (!begins_with_one_of(name, replaced_names)) continue;
            if (installation_.contains(file))
                ours.push_back(name);
            else
                explain(name, file, elf);
        }
        note(ours);
        warn_of_users(program_.string(), elf.needed, libraries);
        for (const auto& [name, file] : libraries) {
            if (installation_.contains(file) || begins_with_one_of(name, other_names)) continue;
            if (const auto library = read_elf(file)) warn_of_users(file, library->needed, libraries);
        }
    }

    void note(const std::vector<std::string>& ours) {
        if (ours.empty())
            findings_.notes.push_back(fmt::format(
                "'{}' is linked with none of the libraries that Viaduct replaces; if it loads one later, it gets that "
                "of Viaduct",
                program_.string()));
        else
            findings_.notes.push_back(fmt::format("'{}' runs with {} of {}", program_.string(), fmt::join(ours, ", "),
                                                  installation_.find(ours.front()).parent_path().string()));
    }

    /// Says why a library of an API is not the one of this installation.
    void explain(const std::string& name, const std::string& file, const ElfFile& elf) {
        if (installation_.find(name).empty())
            warn("'{}' needs {}, a version that this installation does not have{}", program_.string(), name,
                 file.empty() ? "" : fmt::format(": it gets '{}'", file));
        else if (!elf.rpath.empty())
            warn("'{}' gets '{}': its RPATH '{}' has precedence over LD_LIBRARY_PATH", program_.string(), file,
                 elf.rpath);
        else
            warn(
                "'{}' gets '{}' and not the one of this installation: a path in it has precedence over "
                "LD_LIBRARY_PATH",
                program_.string(), file);
    }

    void warn_of_users(const std::string& user, const std::vector<std::string>& needed, const Libraries& libraries) {
        for (const auto& name : needed) {
            if (!begins_with_one_of(name, other_names)) continue;
            const auto found = libraries.find(name);
            if (found != libraries.end() && installation_.contains(found->second)) continue;
            warn(
                "'{}' calls {} itself, which Viaduct does not replace: what it does with devices there goes to RDMA "
                "devices only",
                user, name);
        }
    }

    fs::path program_;
    const Installation& installation_;
    Findings findings_;
};

}  // namespace

fs::path find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        if (is_executable_file(name)) return name;
        std::error_code error;
        const fs::file_status status = fs::status(name, error);
        throw Error(fmt::format("cannot run '{}': {}", name,
                                fs::is_directory(status)   ? "it is a directory"
                                : fs::exists(status)       ? "it is not executable"
                                : fs::status_known(status) ? "there is no such file"
                                                           : error.message()));
    }
    const char* variable = std::getenv("PATH");
    std::vector<std::string> directories;
    boost::split(directories, std::string(variable == nullptr ? "/bin:/usr/bin" : variable), boost::is_any_of(":"));
    for (const auto& directory : directories) {
        const fs::path file = fs::path(directory.empty() ? "." : directory) / name;
        if (is_executable_file(file)) return file;
    }
    throw Error(fmt::format("there is no program '{}' in PATH", name));
}

Findings examine(const fs::path& program, const Installation& installation) {
    try {
        return Examination(program, installation).run();
    } catch (const std::exception& error) {  // it may run all the same
        return {.notes = {fmt::format("cannot tell which libraries '{}' loads: {}", program.string(), error.what())},
                .warnings = {}};
    }
}

}  // namespace viaduct::run
