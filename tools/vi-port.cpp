// SPDX-License-Identifier: BSD-3-Clause
// vi-port: reads C and C++ sources, and says what to do to move them from one API to another.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/command_line.hpp"
#include "tools/port/report.hpp"
#include "tools/port/rewrite.hpp"
#include "tools/port/text.hpp"

namespace {

using namespace viaduct::tools;
namespace port = viaduct::port;
namespace fs = std::filesystem;

constexpr std::string_view usage =
    "Usage: vi-port scan [--to API] [options] PATH...\n"
    "       vi-port explain [--to API] [--json] NAME...\n"
    "       vi-port rewrite --to API [--output FILE | --in-place] FILE...\n\n"
    "Reads C and C++ sources that use VIPL, DAT or librpma, reports what they use and\n"
    "what it becomes in another API, and rewrites what one call or name replaces.\n";

using Words = std::vector<std::string>;

constexpr std::string_view standard_output = "-";  // as the name of a file

options::options_description describe() {
    options::options_description description("Options");
    auto add = description.add_options();
    add("to", text("API"), "the API to move to: vipl, dat, rpma or core");
    add("json", "print JSON");
    add("sarif", text("FILE"), "scan: also write the results to FILE, as SARIF 2.1.0");
    add("html", text("FILE"), "scan: also write a page with the sources and the guidance to FILE");
    add("parser", text("NAME"),
        "what reads the sources, libclang where it can by default: auto, libclang or tokenizer");
    add("build-path,p", text("DIR"), "the directory of compile_commands.json, for libclang");
    add("trace", options::value<Words>()->value_name("FILE")->composing(),
        "scan: order the calls by how often they ran; FILE was written by vi-run --trace. May be given several times");
    add("summary,s", "scan: print only the totals");
    add("output,o", text("FILE"), "rewrite: write to FILE, not to a file beside the source; -: to standard output");
    add("in-place,i", "rewrite: change the source, and keep its first copy, whose name ends in .orig");
    add("force,f", "rewrite: overwrite files that exist");
    add("version,V", "print the version and exit");
    add("help,h", "print this help and exit");
    return description;
}

std::string target_of(const options::variables_map& given) {
    if (given.count("to") == 0) return {};
    return std::string(port::targets[choose(given, "to", "API", port::targets)]);
}

Words words_of(const options::variables_map& given, const char* what) {
    if (given.count("words") == 0) throw UsageError(std::string("no ") + what + " given");
    return given["words"].as<Words>();
}

void refuse(const options::variables_map& given, std::initializer_list<const char*> foreign) {
    for (const char* option : foreign)
        if (given.count(option) != 0)
            throw UsageError(fmt::format("--{} cannot be used with {}", option, given["command"].as<std::string>()));
}

/// Texts of files may be in any encoding; what is not UTF-8 is replaced.
std::string dump(const nlohmann::ordered_json& json) {
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

[[noreturn]] void fail_to_write(const fs::path& path, const std::string& reason) {
    throw viaduct::measure::Error("cannot write " + path.string() + ": " + reason);
}

/// `name` is what the file is called if it cannot be written.
void write_file(const std::string& path, const std::string& content, const fs::path& name) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << content;
    file.close();
    if (!file) fail_to_write(name, std::strerror(errno));
}

/// Those that a file has, or that a new one gets.
fs::perms permissions_of(const fs::path& file) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (fs::exists(status)) return status.permissions();
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return static_cast<fs::perms>(0666 & ~mask);
}

/// Writes a file beside its place, and moves it there if all goes well.
void replace_file(const fs::path& place, const std::string& content, fs::perms permissions) {
    std::string path = place.string() + ".XXXXXX";
    const int fd = ::mkstemp(path.data());
    if (fd < 0) fail_to_write(place, std::strerror(errno));
    ::close(fd);
    std::error_code error;
    try {
        write_file(path, content, place);
        fs::permissions(path, permissions);
        fs::rename(path, place);
    } catch (const fs::filesystem_error& failure) {
        fs::remove(path, error);
        fail_to_write(place, failure.code().message());
    } catch (const viaduct::measure::Error&) {
        fs::remove(path, error);
        throw;
    }
}

/// What is a regular file, or new, is written as a whole or not at all. A symbolic link stays one, and may lead to a
/// descriptor, as /dev/stdout does.
void write_output(const fs::path& output, const std::string& content, fs::perms permissions) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(output, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) return write_file(output.string(), content, output);
    replace_file(output, content, permissions);
}

void write_report(const fs::path& output, const std::string& content) {
    write_output(output, content, permissions_of(output));
}

/// An output must not be one of the sources.
template <class Paths>
void refuse_source(const fs::path& output, const Paths& sources) {
    std::error_code error;
    for (const auto& source : sources)
        if (fs::equivalent(source, output, error))
            throw UsageError(fmt::format("{} is a source; only rewrite --in-place changes it", output.string()));
}

/// Reports whether two names are of one file, which need not exist.
bool is_same_file(const fs::path& one, const fs::path& other) {
    std::error_code error;
    const auto place_of = [&](const fs::path& name) { return fs::weakly_canonical(fs::absolute(name, error), error); };
    return one == other || fs::equivalent(one, other, error) || (place_of(one) == place_of(other) && !error);
}

std::optional<port::Trace> trace_of(const options::variables_map& given) {
    if (given.count("trace") == 0) return std::nullopt;
    port::Trace trace;
    for (const auto& path : given["trace"].as<Words>())
        if (const auto problem = trace.add(path); !problem.empty())
            throw viaduct::measure::Error(fmt::format("cannot use the trace {}: {}", port::printable(path), problem));
    return trace;
}

/// How libclang parses; nothing: not at all.
std::optional<port::CompileCommands> commands_of(const options::variables_map& given, const Words& paths) {
    constexpr std::array<std::string_view, 3> parsers{"auto", "libclang", "tokenizer"};
    const auto parser = given.count("parser") == 0 ? "auto" : parsers[choose(given, "parser", "parser", parsers)];
    port::CompileCommands commands;
    if (given.count("build-path") != 0) {
        if (const auto problem = commands.read(given["build-path"].as<std::string>()); !problem.empty())
            throw viaduct::measure::Error(problem);
    } else if (parser != "tokenizer") {
        for (const auto& path : paths) commands.read(path);  // it may be there
    }
    return parser == "tokenizer" ? std::nullopt : std::optional(commands);
}

int scan(const options::variables_map& given) {
    refuse(given, {"output", "in-place", "force"});
    if (given.count("sarif") != 0 && given.count("html") != 0 &&
        is_same_file(given["sarif"].as<std::string>(), given["html"].as<std::string>()))
        throw UsageError("--sarif and --html need different files");
    const std::string target = target_of(given);
    auto trace = trace_of(given);
    const Words paths = words_of(given, "path");
    port::Scanner scanner(commands_of(given, paths));
    auto files = port::find_sources(paths);
    for (const char* option : {"sarif", "html"})
        if (given.count(option) != 0)
            refuse_source(given[option].as<std::string>(), files | std::views::transform(&port::SourceFile::path));
    for (auto& file : files) scanner.scan(std::move(file));
    const port::Scan result = port::make_scan(scanner.finish(target), target, std::move(trace));
    if (given.count("sarif") != 0)
        write_report(given["sarif"].as<std::string>(), dump(port::to_sarif(result, VIADUCT_VERSION)) + "\n");
    if (given.count("html") != 0) write_report(given["html"].as<std::string>(), port::to_html(result));
    const bool summary = given.count("summary") != 0;
    if (given.count("json") != 0)
        fmt::print("{}\n", dump(port::to_json(result, summary)));
    else
        port::print_text(result, summary);
    return result.totals.skipped == 0 ? 0 : 1;
}

int explain(const options::variables_map& given) {
    refuse(given, {"sarif", "html", "parser", "build-path", "trace", "summary", "output", "in-place", "force"});
    const std::string target = target_of(given);
    auto json = nlohmann::ordered_json::array();
    int status = 0;
    bool first = true;
    for (const auto& name : words_of(given, "name")) {
        const auto entries = port::Mapping::get().find_all(name);
        if (entries.empty()) {
            const Words similar = port::Mapping::get().similar(name);
            complain(fmt::format("vi-port: {} is no name of VIPL, DAT or librpma{}\n", port::printable(name),
                                 similar.empty() ? "" : ". Similar: " + port::join(similar)));
            status = 1;
        }
        for (const auto* entry : entries) {
            if (given.count("json") != 0) {
                json.push_back(port::to_json(*entry, target));
                continue;
            }
            if (!std::exchange(first, false)) fmt::print("\n");
            port::print_entry(*entry, target);
        }
    }
    if (given.count("json") != 0) fmt::print("{}\n", dump(json));
    return status;
}

/// Where the result goes: by default beside the source, where hello.c becomes hello.rpma.c.
fs::path output_of(const fs::path& source, const std::string& target, const options::variables_map& given) {
    if (given.count("in-place") != 0) return source;
    if (given.count("output") != 0) return given["output"].as<std::string>();
    return source.parent_path() / (source.stem().string() + "." + target + source.extension().string());
}

/// Changes a source, which keeps its permissions. The first copy stays: it is the source as it was.
void replace_source(const fs::path& source, const std::string& content, bool force) {
    const fs::path copy = source.string() + ".orig";
    std::error_code error;
    const bool copied = fs::exists(fs::symlink_status(copy, error));
    if (copied && !force) throw viaduct::measure::Error(copy.string() + " exists; --force keeps it and goes on");
    const fs::path place = fs::canonical(source, error);  // a symbolic link stays one
    if (error) fail_to_write(source, error.message());
    if (!copied && !fs::copy_file(source, copy, error)) {
        const std::string reason = error.message();
        fs::remove(copy, error);
        fail_to_write(copy, reason);
    }
    try {
        replace_file(place, content, permissions_of(source));
    } catch (const viaduct::measure::Error&) {
        if (!copied) fs::remove(copy, error);
        throw;
    }
}

/// The new source has the permissions of the old one.
void write_source(const fs::path& source, const fs::path& output, const std::string& content,
                  const options::variables_map& given) {
    const bool force = given.count("force") != 0;
    if (given.count("in-place") != 0) return replace_source(source, content, force);
    std::error_code error;
    if (!force && fs::exists(output, error))
        throw viaduct::measure::Error(output.string() + " exists; --force overwrites it");
    write_output(output, content, permissions_of(source));
}

nlohmann::ordered_json report_of(const std::string& source, const std::string& output, const port::Rewriting& result,
                                 bool with_libclang) {
    nlohmann::ordered_json json = {{"source", source},
                                   {"output", output},
                                   {"parser", with_libclang ? "libclang" : "tokenizer"},
                                   {"replaced", result.replaced},
                                   {"todos", nlohmann::json::array()}};
    for (const auto& todo : result.todos) {
        json["todos"].push_back({{"line", todo.line}, {"name", todo.name}, {"advice", todo.advice}});
        if (!todo.reason.empty()) json["todos"].back()["reason"] = todo.reason;
    }
    return json;
}

std::string text_of(const std::string& path, const fs::path& output, const port::Rewriting& result) {
    std::string text;
    for (const auto& todo : result.todos)
        text +=
            fmt::format("{}:{}: {}: {}{}\n", port::printable(path), todo.line, todo.name, todo.advice, todo.remark());
    const bool unchanged = result.replaced == 0 && result.todos.empty();
    return text + port::printable(output.string()) +
           (unchanged ? ": unchanged, because nothing in it has to be moved\n"
                      : fmt::format(": {} replaced, {} left to do\n", result.replaced, result.todos.size()));
}

/// Returns the exit status.
int rewrite_file(const std::string& path, const std::string& target,
                 const std::optional<port::CompileCommands>& commands, const options::variables_map& given,
                 nlohmann::ordered_json& json) {
    port::SourceFile file{.path = path, .kind = port::FileKind::Source, .problem = {}};
    const std::string source = port::read_source(file);
    if (!file.problem.empty()) {
        complain(fmt::format("vi-port: {}: {}\n", port::printable(path), file.problem));
        return 1;
    }
    const port::Meanings meanings =
        commands ? port::parse_with_libclang(path, source, *commands) : port::Meanings{.problem = "not wanted"};
    const port::Rewriting result = port::rewrite(source, target, meanings, path);
    const fs::path output = output_of(path, target, given);
    const bool to_output = output == standard_output;
    if (to_output)
        fmt::print("{}", result.text);
    else
        write_source(path, output, result.text, given);
    json.push_back(report_of(path, output, result, meanings.problem.empty()));
    if (to_output)
        complain(text_of(path, output, result));
    else if (given.count("json") == 0)
        fmt::print("{}", text_of(path, output, result));
    return 0;
}

int rewrite(const options::variables_map& given) {
    refuse(given, {"sarif", "html", "trace", "summary"});
    exclude(given, "output", "in-place");
    const std::string target = target_of(given);
    if (target.empty()) throw UsageError("rewrite needs --to");
    const Words paths = words_of(given, "file");
    if (given.count("output") != 0 && paths.size() > 1) throw UsageError("--output is for one file");
    const bool to_output = given.count("output") != 0 && given["output"].as<std::string>() == standard_output;
    if (to_output && given.count("json") != 0) throw UsageError("--json cannot be used with --output -");
    const auto commands = commands_of(given, {});
    auto json = nlohmann::ordered_json::array();
    int status = 0;
    if (given.count("in-place") == 0 && !to_output)
        for (const auto& path : paths) refuse_source(output_of(path, target, given), paths);
    for (const auto& path : paths) {
        try {
            status = std::max(status, rewrite_file(path, target, commands, given, json));
        } catch (const viaduct::measure::Error& error) {  // the others may succeed
            complain(fmt::format("vi-port: {}\n", port::printable(error.what())));
            status = 2;
        }
    }
    if (given.count("json") != 0) fmt::print("{}\n", dump(json));
    return status;
}

int run(int argc, char** argv) {
    const auto description = describe();
    const auto given = parse_words(argc, argv, description, "command", "words");
    if (answer_information(given, "vi-port", usage, description)) return 0;
    if (given.count("command") == 0) throw UsageError("no command given");
    const auto& command = given["command"].as<std::string>();
    if (command == "scan") return scan(given);
    if (command == "explain") return explain(given);
    if (command == "rewrite") return rewrite(given);
    throw UsageError("unknown command '" + command + "': choose scan, explain or rewrite");
}

}  // namespace

int main(int argc, char** argv) {
    (void)std::signal(SIGXFSZ, SIG_IGN);  // writing then fails
    return run_tool("vi-port", run, argc, argv);
}
