// SPDX-License-Identifier: BSD-3-Clause
// Finds sources, the uses of the three APIs in them, and what deserves a warning.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/port/clang.hpp"
#include "tools/port/mapping.hpp"
#include "tools/port/tokenizer.hpp"

namespace viaduct::port {

enum class FileKind { Source, Build };  ///< C and C++; makefiles and the like

struct SourceFile {
    std::filesystem::path path;
    FileKind kind = FileKind::Source;
    std::string problem;  ///< why it cannot be scanned; empty: none yet
};

/// The files under these paths, sorted. Of directories, those whose names say that they are sources or build files;
/// hidden directories are left out, and symbolic links to directories are not followed. A file with several paths
/// counts once.
std::vector<SourceFile> find_sources(const std::vector<std::string>& paths);

/// Reads a file. On failure `file.problem` says why.
std::string read_source(SourceFile& file);

enum class UseKind {
    Call,
    Reference,
    Declaration,
    Include,
    Member,  ///< a call through a member of this name, as of a table of functions
};
std::string_view text_of(UseKind kind);

struct Position {
    std::uint32_t line = 0;  ///< from 1
    std::uint32_t column = 0;
};

struct Use {
    const Entry* entry = nullptr;  ///< null: the name looks like one of an API, but Viaduct does not have it
    std::string name;
    UseKind kind = UseKind::Reference;
    Position position;
    std::size_t token = 0;  ///< its index
};

/// A reason for a warning.
enum class Rule {
    Unreliable,
    ReliableReception,
    Discriminator,
    DeviceName,
    DepthLimit,
    PointerIn32Bits,
    NoRetry,
    PollAndNotify,
    VerbsCall,
    LinkLine,
    Dat12,
    UnknownName,
};

struct RuleText {
    Rule rule;
    std::string_view name;
    std::string_view summary;
};
extern const std::vector<RuleText> rules;
const RuleText& about(Rule rule);

struct Warning {
    Rule rule = Rule::UnknownName;
    Position position;
    std::string text;
};

struct FileReport {
    std::string path;
    std::string problem = {};  ///< why it was skipped; empty: it was scanned
    std::string parser = {};   ///< what read it
    std::string reason = {};   ///< why libclang did not
    std::uint32_t lines = 0;
    std::vector<Use> uses = {};  ///< in the order of the file
    std::vector<Warning> warnings = {};
    std::uint32_t disabled = 0;  ///< uses between #if 0 and #endif, which are not listed
    std::string copied = {};     ///< the API whose header this is a copy of; its names are not listed
};

/// A call that opens a device by a name that is not in the call.
struct Opening {
    std::string call;
    std::string name;  ///< of a macro or variable
    Position position;
};

/// What macros and variables stand for: strings, in quotes, or other names.
using Strings = std::map<std::string, std::string, std::less<>>;

/// How many uses of an API there are, for each kind of mapping.
struct ApiTotals {
    struct Mapped {
        std::size_t uses = 0;
        std::set<std::string> decisions;  ///< made once for all uses that have the same counterpart
    };

    std::size_t uses = 0;
    std::map<How, Mapped> how;  ///< the kinds of mapping to the target: all, or none if no use is translated
};

struct Totals {
    std::map<std::string, ApiTotals> apis;
    std::size_t lines = 0;
    std::size_t scanned = 0;
    std::size_t skipped = 0;
    std::size_t warnings = 0;

    void add(const FileReport& file, std::string_view target);
};

/// What the entry of a use becomes in the target, or null if the uses of its API are not translated.
inline const Counterpart* translation_of(const Use& use, std::string_view target) {
    if (use.entry == nullptr || use.entry->api == target) return nullptr;
    const auto found = use.entry->to.find(target);
    return found == use.entry->to.end() ? nullptr : &found->second;
}

/// Whether an identifier after this token is used, not declared. Types and other names come before declarations.
bool precedes_a_use(const Token& token);

/// Whether one of them is of an API, and does not only look so.
bool uses_an_api(const std::vector<Use>& uses);

/// The names of a source that belong to an API or look so.
std::vector<Use> find_uses(const Tokens& tokens, std::uint32_t& disabled);

/// Appends the warnings for a source.
void find_warnings(const Tokens& tokens, const std::vector<Use>& uses, std::vector<Warning>& warnings);

/// The calls that open devices whose names are elsewhere.
std::vector<Opening> find_openings(const Tokens& tokens, const std::vector<Use>& uses);

/// Adds the strings that macros and variables of a source stand for.
void find_strings(const Tokens& tokens, Strings& strings);

/// Appends the warnings for a build file.
void find_link_lines(std::string_view content, std::vector<Warning>& warnings);

/// Removes the uses of names that mean something else, and adds those that macros hide.
void correct_uses(const Tokens& tokens, const Meanings& meanings, std::vector<Use>& uses);

/// Scans files, one after another, and reports the names that no file declares.
class Scanner {
public:
    /// Uses libclang where it can, with these commands. Without them, only the tokenizer.
    explicit Scanner(std::optional<CompileCommands> commands) : commands_(std::move(commands)) {}

    void scan(SourceFile file);
    /// Warns of what becomes different in DAT 2.0, if that is the target and the sources use DAT 1.2.
    std::vector<FileReport> finish(std::string_view target = {});

private:
    void scan_source(const std::string& content, FileReport& report);
    void warn_of_missing_retries();
    void warn_of_device_names();
    void warn_of_dat_1_2();

    std::optional<CompileCommands> commands_;
    std::vector<FileReport> files_;
    std::set<std::string, std::less<>> used_;
    std::map<std::size_t, std::vector<Opening>> openings_;  ///< by the index of the file
    Strings strings_;
    bool includes_dat2_ = false;
    std::set<std::string, std::less<>> declared_;  ///< names that look like those of an API, but are the program's
};

}  // namespace viaduct::port
