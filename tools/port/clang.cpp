// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/clang.hpp"

#include <clang-c/Index.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/port/mapping.hpp"
#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

std::string take(CXString string) {
    const char* const words = clang_getCString(string);
    std::string result = words == nullptr ? "" : words;
    clang_disposeString(string);
    return result;
}

// ---- In the process that parses ----

/// Reports what it finds as JSON.
class Reporter {
public:
    Reporter(std::string_view source, int output) : source_(source), output_(output) {}

    void run(const std::vector<std::string>& command) {
        std::vector<const char*> arguments;
        for (const auto& word : command) arguments.push_back(word.c_str());
        CXTranslationUnit unit = nullptr;
        clang_parseTranslationUnit2FullArgv(clang_createIndex(0, 0), nullptr, arguments.data(),
                                            static_cast<int>(arguments.size()), nullptr, 0,
                                            CXTranslationUnit_DetailedPreprocessingRecord, &unit);
        unit_ = unit;
        if (unit != nullptr) main_file_ = clang_getFile(unit, command.back().c_str());
        const std::string problem = unit == nullptr ? "it cannot parse this" : first_error();
        if (problem.empty()) {
            clang_visitChildren(clang_getTranslationUnitCursor(unit), note_macro, this);
            clang_visitChildren(clang_getTranslationUnitCursor(unit), visit, this);
        }
        std::vector<unsigned> own;
        for (const auto& [offset, is_own] : own_)
            if (is_own) own.push_back(offset);
        const nlohmann::json found = {{"problem", problem}, {"own", own}, {"hidden", hidden_}};
        dprintf(output_, "%s", found.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    }

private:
    std::string first_error() const {
        for (unsigned i = 0; i < clang_getNumDiagnostics(unit_); ++i) {
            CXDiagnostic diagnostic = clang_getDiagnostic(unit_, i);
            if (clang_getDiagnosticSeverity(diagnostic) < CXDiagnostic_Error) continue;
            unsigned line = 0;
            clang_getFileLocation(clang_getDiagnosticLocation(diagnostic), nullptr, &line, nullptr, nullptr);
            return fmt::format("line {}: {}", line, take(clang_getDiagnosticSpelling(diagnostic)));
        }
        return {};
    }

    /// Whether something is written in the main file, or comes from a macro that is used there.
    bool is_in_main_file(CXCursor cursor) const {
        CXFile file = nullptr;
        clang_getFileLocation(clang_getCursorLocation(cursor), &file, nullptr, nullptr, nullptr);
        return file != nullptr && clang_File_isEqual(file, main_file_) != 0;
    }

    unsigned offset_of(CXCursor cursor) const {
        unsigned offset = 0;
        clang_getFileLocation(clang_getCursorLocation(cursor), nullptr, nullptr, nullptr, &offset);
        return offset;
    }

    // ---- Macros ----

    static CXChildVisitResult note_macro(CXCursor cursor, CXCursor, CXClientData data) {
        auto& self = *static_cast<Reporter*>(data);
        if (clang_getCursorKind(cursor) == CXCursor_MacroDefinition)
            self.macros_.insert_or_assign(take(clang_getCursorSpelling(cursor)), cursor);
        if (clang_getCursorKind(cursor) == CXCursor_MacroExpansion && self.is_in_main_file(cursor))
            self.expansions_.emplace(self.offset_of(cursor), take(clang_getCursorSpelling(cursor)));
        return CXChildVisit_Continue;
    }

    /// Adds the words in the definition of a macro, and in those of the macros that it uses.
    void add_words(const std::string& macro, std::set<std::string>& words) const {
        const auto definition = macros_.find(macro);
        if (!words.insert(macro).second || definition == macros_.end()) return;
        CXToken* tokens = nullptr;
        unsigned count = 0;
        clang_tokenize(unit_, clang_getCursorExtent(definition->second), &tokens, &count);
        for (unsigned i = 0; i < count; ++i) add_words(take(clang_getTokenSpelling(unit_, tokens[i])), words);
        clang_disposeTokens(unit_, tokens, count);
    }

    // ---- Names ----

    static CXChildVisitResult visit(CXCursor cursor, CXCursor, CXClientData data) {
        auto& self = *static_cast<Reporter*>(data);
        if (!self.is_in_main_file(cursor)) return CXChildVisit_Continue;
        self.examine(cursor);
        return CXChildVisit_Recurse;
    }

    void examine(CXCursor cursor) {
        const CXCursor meant = clang_getCursorReferenced(cursor);
        const std::string name = take(clang_getCursorSpelling(meant));
        if (name.empty() || Mapping::get().find(name) == nullptr) return;
        const unsigned offset = offset_of(cursor);
        if (offset <= source_.size() && source_.substr(offset, name.size()) == name) {
            const bool own = is_own(meant);
            const auto [known, is_new] = own_.emplace(offset, own);
            known->second = known->second && own;
            return;
        }
        const auto expansion = expansions_.find(offset);
        const bool function =
            clang_getCursorKind(cursor) == CXCursor_DeclRefExpr && clang_getCursorKind(meant) == CXCursor_FunctionDecl;
        if (!function || expansion == expansions_.end()) return;
        std::set<std::string> words;
        add_words(expansion->second, words);
        if (!words.contains(name)) hidden_.emplace(offset, name);
    }

    /// Whether a declaration is the program's own, and not one of an API: a variable, a parameter or a type inside a
    /// function, a member of a namespace or a class, or a static function or variable.
    bool is_own(CXCursor declaration) const {
        constexpr std::array<CXCursorKind, 3> tags = {CXCursor_StructDecl, CXCursor_UnionDecl, CXCursor_EnumDecl};
        constexpr std::array<CXCursorKind, 6> members_of = {CXCursor_Namespace,  CXCursor_ClassDecl,
                                                            CXCursor_StructDecl, CXCursor_UnionDecl,
                                                            CXCursor_CXXMethod,  CXCursor_ClassTemplate};
        CXCursor parent = clang_getCursorSemanticParent(declaration);
        if (clang_getCursorKind(parent) == CXCursor_EnumDecl) parent = clang_getCursorSemanticParent(parent);
        if (among(members_of, clang_getCursorKind(parent))) return true;
        const CXLinkageKind linkage = clang_getCursorLinkage(declaration);
        // Of a structure, there may be only the mention, as in the parameters of a function.
        const bool is_mention = among(tags, clang_getCursorKind(declaration)) &&
                                clang_Cursor_isNull(clang_getCursorDefinition(declaration)) != 0;
        if (clang_getCursorKind(parent) == CXCursor_FunctionDecl) return linkage != CXLinkage_External && !is_mention;
        return linkage == CXLinkage_Internal && is_in_main_file(declaration);
    }

    std::string_view source_;
    int output_;
    CXTranslationUnit unit_ = nullptr;
    CXFile main_file_ = nullptr;
    std::map<std::string, CXCursor> macros_;
    std::map<unsigned, std::string> expansions_;  // in the main file, by their offsets
    std::map<unsigned, bool> own_;                // for each name of an API, by its offset
    std::set<std::pair<unsigned, std::string>> hidden_;
};

/// Sets a limit, unless there is a lower one already. Returns the limit.
rlim_t limit(int resource, rlim_t most) {
    rlimit value{};
    if (getrlimit(static_cast<__rlimit_resource>(resource), &value) == 0) most = std::min(most, value.rlim_cur);
    value = {most, most};
    setrlimit(static_cast<__rlimit_resource>(resource), &value);
    return most;
}

/// Bounds what a hostile source can cost.
void limit_resources() {
    constexpr rlim_t most_work_s = 6;
    constexpr unsigned patience = 3;  // times the work: it may wait, for example for a pipe
    alarm(patience * static_cast<unsigned>(limit(RLIMIT_CPU, most_work_s)));
    limit(RLIMIT_CORE, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers map far more than they use
    constexpr rlim_t most_memory = rlim_t{2} << 30;
    limit(RLIMIT_AS, most_memory);
#endif
}

[[noreturn]] void parse_and_exit(std::string_view source, const std::vector<std::string>& command,
                                 int output) noexcept {
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere < 0) _exit(1);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
    limit_resources();
    try {
        Reporter(source, output).run(command);
        _exit(0);
    } catch (...) {
        _exit(1);
    }
}

// ---- In the process that asks ----

std::vector<std::string> command_for(const std::string& path, const CompileCommands& commands) {
    std::vector<std::string> command = split_command(
        "clang -fsyntax-only -w -Wno-implicit-function-declaration -Wno-implicit-int -Wno-int-conversion "
        "-Wno-return-type -Wno-incompatible-function-pointer-types -fno-spell-checking");
    for (auto& flag : commands.flags_for(path)) command.push_back(std::move(flag));
    // The headers of this installation, behind all others.
    std::error_code error;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / VIADUCT_BIN_TO_INCLUDE;
    if (!error) command.insert(command.end(), {"-idirafter", own.lexically_normal().string()});
    command.push_back(std::filesystem::absolute(path).string());
    return command;
}

std::string read_all(int input) {
    std::string text;
    std::array<char, 4096> buffer{};
    while (true) {
        const ssize_t count = read(input, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
}

Meanings meanings_in(const std::string& answer) {
    const nlohmann::json found = nlohmann::json::parse(answer, nullptr, false);
    if (!found.is_object()) return {.problem = "it crashed, or needed too much time or memory"};
    Meanings meanings{.problem = found["problem"], .own = found["own"]};
    for (const auto& [offset, name] : found["hidden"].get<std::vector<std::pair<std::uint32_t, std::string>>>())
        meanings.hidden.push_back({.name = name, .offset = offset});
    return meanings;
}

}  // namespace

Meanings parse_with_libclang(const std::string& path, std::string_view source, const CompileCommands& commands) {
    Mapping::get();
    const std::vector<std::string> command = command_for(path, commands);
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return {.problem = std::strerror(errno)};
    const pid_t child = fork();
    if (child == 0) parse_and_exit(source, command, ends[1]);
    close(ends[1]);
    const std::string text = child > 0 ? read_all(ends[0]) : "";
    close(ends[0]);
    if (child > 0) waitpid(child, nullptr, 0);
    return meanings_in(text);
}

}  // namespace viaduct::port
