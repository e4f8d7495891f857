// SPDX-License-Identifier: BSD-3-Clause
// The flags of sources, from compile_commands.json.
#include <array>
#include <cstdint>
#include <fstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "tools/port/clang.hpp"
#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// Flags with a value, which may be a path.
struct Flag {
    std::string_view name;
    bool path = false;
};
constexpr std::array<Flag, 7> flags_with_values = {{{"-I", true},
                                                    {"-isystem", true},
                                                    {"-iquote", true},
                                                    {"-idirafter", true},
                                                    {"-D", false},
                                                    {"-U", false},
                                                    {"-x", false}}};

/// The flags of a command that libclang needs, and no others: a command comes with the sources, which may be anybody's.
Words select(const Words& command, const fs::path& directory) {
    Words flags;
    for (std::size_t i = 0; i < command.size(); ++i) {
        const std::string_view word = command[i];
        if (word.starts_with("-std=")) flags.emplace_back(word);
        for (const auto& [name, path] : flags_with_values) {
            if (!word.starts_with(name)) continue;
            std::string value(word.substr(name.size()));
            if (value.empty() && i + 1 < command.size()) value = command[++i];
            flags.emplace_back(name);
            flags.push_back(path ? (directory / value).lexically_normal().string() : value);
            break;
        }
    }
    return flags;
}

fs::path key_of(const fs::path& path) {
    std::error_code error;
    fs::path result = fs::weakly_canonical(path, error);
    return error ? path : result;
}

}  // namespace

std::vector<std::string> split_command(std::string_view command) {
    Words words;
    std::string word;
    bool begun = false;
    char quote = '\0';
    for (std::size_t i = 0; i < command.size(); ++i) {
        const char c = command[i];
        const bool escapes = c == '\\' && quote != '\'' && i + 1 < command.size();
        if (escapes) {
            word += command[++i];
        } else if (c == quote) {
            quote = '\0';
        } else if (quote == '\0' && (c == '"' || c == '\'')) {
            quote = c;
        } else if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
            if (begun) words.push_back(std::exchange(word, {}));
            begun = false;
            continue;
        } else {
            word += c;
        }
        begun = true;
    }
    if (begun) words.push_back(word);
    return words;
}

std::string CompileCommands::read(const fs::path& directory) {
    const fs::path path = directory / "compile_commands.json";
    constexpr std::uintmax_t largest = 256 * 1024 * 1024;
    std::error_code error;
    if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > largest || error)
        return "cannot read " + path.string();
    std::ifstream file(path);
    if (!file) return "cannot read " + path.string();
    const nlohmann::json commands = nlohmann::json::parse(file, nullptr, false);
    if (!commands.is_array()) return path.string() + " is no compilation database";
    for (const auto& command : commands)
        if (command.is_object()) add(command);
    return {};
}

void CompileCommands::add(const nlohmann::json& command) {
    const auto text = [&](const char* key) {
        const auto value = command.find(key);
        return value != command.end() && value->is_string() ? value->get<std::string>() : std::string();
    };
    const fs::path directory = text("directory");
    Words words = split_command(text("command"));
    if (const auto arguments = command.find("arguments"); arguments != command.end() && arguments->is_array())
        for (const auto& word : *arguments)
            if (word.is_string()) words.push_back(word);
    flags_[key_of(directory / text("file"))] = select(words, directory);
}

std::vector<std::string> CompileCommands::flags_for(const fs::path& source) const {
    constexpr std::array<std::string_view, 5> cpp_suffixes = {".C", ".cc", ".cpp", ".cxx", ".c++"};
    const fs::path path = key_of(source);
    if (const auto found = flags_.find(path); found != flags_.end()) return found->second;
    for (const auto& [other, flags] : flags_) {
        if (other.parent_path() != path.parent_path()) continue;
        Words borrowed = flags;
        if (path.extension() != ".c" && among(cpp_suffixes, other.extension()))  // a .h would be in C
            borrowed.insert(borrowed.begin(), {"-x", "c++"});
        return borrowed;
    }
    return {};
}

}  // namespace viaduct::port
