// SPDX-License-Identifier: BSD-3-Clause
// vi-run: runs an unmodified program with the libraries of this installation.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/algorithm/string/replace.hpp>

#include "core/base/check_spec.hpp"
#include "core/base/fault_spec.hpp"
#include "core/base/settings.hpp"
#include "core/provider.hpp"
#include "tools/command_line.hpp"
#include "tools/run/installation.hpp"
#include "tools/run/program.hpp"
#include "tools/run/session.hpp"

namespace {

using namespace viaduct::tools;
using namespace viaduct::run;
namespace measure = viaduct::measure;

constexpr std::string_view usage =
    "Usage: vi-run [options] PROGRAM [ARGUMENT...]\n\n"
    "Runs a program with Viaduct's VIPL, DAT and librpma in place of the libraries that it was linked with.\n";

/// Of a shell, for a program that does not exist or cannot run.
constexpr int not_found = 127;
constexpr int not_runnable = 126;

options::options_description describe() {
    options::options_description description("Options");
    auto add = description.add_options();
    add("adapter", options::value<std::vector<std::string>>()->value_name("NAME"),
        "make NAME a DAT adapter; may be given several times");
    add("backend", text("NAME"), "loopback, verbs or tcp (sets VIADUCT_BACKEND)");
    add("check", text("[=LIST]")->implicit_value("1"),
        "find latent mistakes, such as buffers that change too early (sets VIADUCT_CHECK)");
    add("device,I", text("NAME"), "the device that a program uses by default (sets VIADUCT_DEVICE)");
    add("faults", text("LIST"), "faults to inject, such as drop=0.1% (sets VIADUCT_FAULTS)");
    add("log", text("LEVEL"), "error, warning, info or debug (sets VIADUCT_LOG)");
    add("power-cut", text("[=WHEN]")->implicit_value(""),
        "end the program as if the power failed at a flush of persistent memory: N, N:SEED or random:SEED");
    add("trace", text("[=FILE]")->implicit_value(""),
        "write every call of VIPL, DAT and librpma to FILE, or to standard error");
    add("trace-format", text("NAME", "text"), "text, json (one object per line) or perfetto (for ui.perfetto.dev)");
    add("summary", "count calls, errors and times, and print a table at the end");
    add("stock", "do not replace the libraries: trace those that the program has");
    add("dry-run", "print the settings as commands of a shell, and do not run the program");
    add("quiet,q", "do not tell which libraries are replaced");
    add("version,V", "print the version and exit");
    add("help,h", "print this help and exit");
    return description;
}

/// Whether the value of an option is the next word. Short options without values may stand before one in its word.
bool takes_next_word(std::string_view word, const options::options_description& description) {
    const auto needs_value = [&description](const std::string& name, bool is_abbreviated) {
        const auto* const option = description.find_nothrow(name, is_abbreviated);
        return option != nullptr && option->semantic()->min_tokens() > 0;
    };
    if (word[1] == '-') return word.find('=') == word.npos && needs_value(std::string(word.substr(2)), true);
    for (std::size_t i = 1; i < word.size(); ++i)
        if (needs_value({'-', word[i]}, false)) return i + 1 == word.size();
    return false;
}

/// The number of words up to the program. Its own options are not for vi-run, which is why they are not parsed.
int count_own(int argc, char** argv, const options::options_description& description) {
    int own = 1;
    while (own < argc) {
        const std::string_view word = argv[own];
        if (word == "--") return own + 1;
        if (word.size() < 2 || word[0] != '-') return own;
        ++own;
        if (takes_next_word(word, description)) ++own;
    }
    return argc;
}

/// Those of the backend that the environment selects, or of all.
std::string names_of_devices() {
    std::vector<std::string> names;
    for (auto* provider : viaduct::providers())
        if (const auto devices = provider->devices(); devices.ok())
            for (const auto& device : devices.value())
                if (viaduct::find_device(device.name).ok()) names.push_back(device.name);
    constexpr std::size_t most = 16;
    const bool many = names.size() > most;
    if (many) names.resize(most);
    return fmt::format("{}{}", fmt::join(names, ", "), many ? ", ..." : "");
}

/// The part after "viaduct-" of the name of the device that programs get with these settings, for dat.conf.
std::string device_for_dat() {
    const auto device = viaduct::default_device();
    if (!device.ok()) throw measure::Error("no device can be used with these settings");
    const auto devices = device.value().provider->devices();
    if (!devices.ok() || device.value().number >= devices.value().size()) return "lo";
    const std::string name = devices.value()[device.value().number].name;
    constexpr std::string_view prefix = "viaduct-";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

void check_adapters(const std::vector<std::string>& names) {
    constexpr std::size_t longest = 255;  // DAT_NAME_MAX_LENGTH with the NUL
    for (const auto& name : names)
        if (name.empty() || name.size() > longest || name.find('\n') != std::string::npos)
            throw UsageError(fmt::format("bad adapter name '{}': expected 1 to {} characters", name, longest));
}

TraceOptions trace_options(const options::variables_map& given) {
    TraceOptions trace;
    trace.records = given.count("trace") != 0;
    trace.summary = given.count("summary") != 0;
    if (trace.records) trace.file = given["trace"].as<std::string>();
    constexpr std::array<std::string_view, 3> formats{"text", "json", "perfetto"};
    trace.format = static_cast<viaduct::trace::Format>(choose(given, "trace-format", "trace format", formats));
    if (!given["trace-format"].defaulted() && !trace.records) throw UsageError("--trace-format is for --trace");
    return trace;
}

std::string faults_of(const options::variables_map& given) {
    const auto& faults = given["faults"].as<std::string>();
    viaduct::FaultSpec spec;
    if (const auto wrong = viaduct::parse_faults(faults, spec); !wrong.empty())
        throw UsageError(fmt::format("unknown fault '{}': expected {}", wrong, viaduct::usable_faults));
    return faults;
}

std::string checks_of(const options::variables_map& given) {
    const auto& checks = given["check"].as<std::string>();
    viaduct::CheckSpec spec;
    if (const auto wrong = viaduct::parse_checks(checks, spec); !wrong.empty())
        throw UsageError(fmt::format("unknown check '{}': expected {}", wrong, viaduct::usable_checks));
    return checks;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

Settings settings_of(const options::variables_map& given, const Installation& installation) {
    Settings settings;
    if (given.count("stock") == 0) settings.emplace_back("LD_LIBRARY_PATH", installation.library_path());
    const auto set = [&](const char* name, const std::string& value) {
        settings.emplace_back(name, value);
        setenv(name, value.c_str(), 1);  // for the devices below
    };
    constexpr std::array<std::string_view, 4> levels{"error", "warning", "info", "debug"};
    if (given.count("backend") != 0)
        set("VIADUCT_BACKEND", std::string(backends[choose(given, "backend", "backend", backends)]));
    if (given.count("log") != 0) set("VIADUCT_LOG", std::string(levels[choose(given, "log", "log level", levels)]));
    if (given.count("power-cut") != 0) {
        auto when = given["power-cut"].as<std::string>();
        if (when.empty()) when = fmt::format("random:{}", std::random_device()());
        set(viaduct::PmemSetting::variable, pmem_setting(when));
        settings.emplace_back("LD_PRELOAD", preloading(installation.plugin("msync")));
        if (given.count("quiet") == 0) complain(fmt::format("vi-run: --power-cut={}\n", when));
    }
    if (given.count("device") != 0) {
        const auto& name = given["device"].as<std::string>();
        if (!viaduct::find_device(name).ok())
            throw UsageError(fmt::format("unknown device '{}'{}: choose one of {}", name,
                                         given.count("backend") != 0 ? " of this backend" : "", names_of_devices()));
        set("VIADUCT_DEVICE", name);
    }
    if (given.count("adapter") != 0) {
        const auto& names = given["adapter"].as<std::vector<std::string>>();
        check_adapters(names);
        set("DAT_OVERRIDE", write_dat_conf(installation, names, device_for_dat()).string());
    }
    if (given.count("check") != 0) {
        settings.emplace_back(viaduct::check_setting, checks_of(given));
        settings.emplace_back("LD_PRELOAD", preloading(installation.plugin("release")));
    }
    if (given.count("faults") != 0) settings.emplace_back(viaduct::fault_setting, faults_of(given));
    return settings;
}

void tell(const Findings& findings, bool quiet) {
    if (!quiet)
        for (const auto& note : findings.notes) complain(fmt::format("vi-run: {}\n", note));
    for (const auto& warning : findings.warnings) complain(fmt::format("vi-run: warning: {}\n", warning));
}

int vi_run(int argc, char** argv) {
    const auto description = describe();
    const int own = count_own(argc, argv, description);
    const bool dashes = own > 1 && std::string_view(argv[own - 1]) == "--";
    const auto given = parse(std::min(own, argc) - (dashes ? 1 : 0), argv, description);
    if (answer_information(given, "vi-run", usage, description)) return 0;
    const bool dry = given.count("dry-run") != 0;
    if (own >= argc && !dry) throw UsageError("no program given");
    const auto trace = trace_options(given);
    for (const char* other : {"trace", "summary"}) exclude(given, "dry-run", other);
    for (const char* other : {"trace", "summary", "stock"}) exclude(given, "power-cut", other);
    for (const char* other : {"power-cut", "stock", "summary", "trace"}) exclude(given, "check", other);
    const auto installation = find_installation();
    const auto settings = settings_of(given, installation);
    std::filesystem::path program;
    if (own < argc) {
        try {
            program = find_program(argv[own]);
        } catch (const measure::Error& error) {
            complain(fmt::format("vi-run: {}\n", error.what()));
            const bool is_path = std::string_view(argv[own]).find('/') != std::string_view::npos;
            std::error_code ignored;
            const auto type = std::filesystem::status(argv[own], ignored).type();
            return is_path && type != std::filesystem::file_type::not_found ? not_runnable : not_found;
        }
        if (given.count("stock") == 0) tell(examine(program, installation), given.count("quiet") != 0);
    }
    if (dry) {
        for (const auto& [name, value] : settings)
            fmt::print("export {}='{}';\n", name, boost::replace_all_copy(value, "'", "'\\''"));
        return 0;
    }
    for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
    if (trace.records || trace.summary) return run_traced(trace, installation.plugin("trace"), program, argv + own);
    if (given.count("power-cut") != 0) return run_until_power_cut(program, argv + own, given.count("quiet") != 0);
    if (given.count("check") != 0) return run_checked(program, argv + own, given.count("quiet") != 0);
    execvp(program.c_str(), argv + own);
    complain(fmt::format("vi-run: cannot run '{}': {}\n", program.string(), std::strerror(errno)));
    return not_runnable;
}

}  // namespace

int main(int argc, char** argv) { return run_tool("vi-run", vi_run, argc, argv); }
