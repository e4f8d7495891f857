// SPDX-License-Identifier: BSD-3-Clause
// vi-info: what this installation of Viaduct has, what runs on it, and why something does not.
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tools/command_line.hpp"
#include "tools/info/info.hpp"

namespace {

using namespace viaduct::tools;
namespace info = viaduct::info;

constexpr std::string_view usage =
    "Usage: vi-info [--json] [DEVICE]\n"
    "       vi-info [--json] --listeners\n"
    "       vi-info [--json] --processes [PID]\n"
    "       vi-info [--json] --watch [PID]\n"
    "       vi-info [--json] --why HOST[:SERVICE]\n"
    "       vi-info [--json] --error API CODE\n\n"
    "Shows the backends, devices, adapters of DAT, libraries and settings of this host, or one device in full.\n";

options::options_description describe() {
    options::options_description description("Options");
    auto add = description.add_options();
    add("listeners,l", "show the services that listen on this host");
    add("processes,p", "show what the processes of this user do, or one of them");
    add("watch,W", "show once a second what the endpoints of processes do, until it is interrupted");
    add("why,w", text("HOST[:SERVICE]"), "check each step to a host and say which one fails");
    add("error,e", text("API"), "explain a code of vipl, dat, dat1 (DAT 1.2) or rpma, by number or name");
    add("json", "print a JSON document");
    add("version,V", "print the version and exit");
    add("help,h", "print this help and exit");
    return description;
}

/// Puts negative numbers behind "--", unless the user has, so that they are not taken for options.
std::vector<char*> protect_numbers(int argc, char** argv) {
    std::vector<char*> arguments(argv, argv + argc);
    static char separator[] = "--";
    if (std::ranges::find(arguments, std::string_view(separator)) != arguments.end()) return arguments;
    const auto is_number = [](const char* argument) {
        const std::string_view text(argument);
        return text.size() > 1 && text[0] == '-' && std::isdigit(static_cast<unsigned char>(text[1])) != 0;
    };
    const auto numbers = std::stable_partition(arguments.begin(), arguments.end(), std::not_fn(is_number));
    if (numbers != arguments.end()) arguments.insert(numbers, separator);
    return arguments;
}

int print(const options::variables_map& given, const info::Json& document, void (*print_text)(const info::Json&),
          int status = 0) {
    if (given.count("json") != 0)
        fmt::print("{}\n", document.dump(2, ' ', false, info::Json::error_handler_t::replace));
    else
        print_text(document);
    return status;
}

/// As top(1): on a terminal, each picture replaces the one before.
int watch(const std::string& process, bool json) {
    constexpr int interval_ms = 1000;
    constexpr unsigned short lines_above = 3;
    const auto& stop = stop_on_signal();
    info::Watch watch(process);
    watch.next();
    while (poll(nullptr, 0, interval_ms) == 0 && !stop) {
        const info::Json rates = watch.next();
        winsize terminal{};
        const bool on_terminal = ioctl(STDOUT_FILENO, TIOCGWINSZ, &terminal) == 0 && terminal.ws_row > lines_above;
        if (json)
            fmt::print("{}\n", rates.dump(-1, ' ', false, info::Json::error_handler_t::replace));
        else {
            if (on_terminal) fmt::print("\x1b[H\x1b[2J");
            info::print_rates(rates, on_terminal ? terminal.ws_row - lines_above : rates["endpoints"].size());
            if (!on_terminal) fmt::print("\n");
        }
        if (std::fflush(stdout) != 0) return 1;
    }
    return 0;
}

int info_main(int argc, char** argv) {
    const auto description = describe();
    auto arguments = protect_numbers(argc, argv);
    const auto given = parse(static_cast<int>(arguments.size()), arguments.data(), description);
    if (answer_information(given, "vi-info", usage, description)) return 0;
    const char* const modes[] = {"listeners", "processes", "watch", "why", "error"};
    for (const char* mode : modes)
        for (const char* other : modes)
            if (mode != other) exclude(given, mode, other);
    const auto target = given.count("target") != 0 ? given["target"].as<std::string>() : std::string();
    if (given.count("error") != 0) {
        if (target.empty()) throw UsageError("--error needs an API and a code, such as --error dat 0x8006002a");
        return print(given, info::describe_code(given["error"].as<std::string>(), target), info::print_code);
    }
    if (given.count("processes") != 0) return print(given, info::describe_processes(target), info::print_processes);
    if (given.count("watch") != 0) return watch(target, given.count("json") != 0);
    if ((given.count("listeners") != 0 || given.count("why") != 0) && !target.empty())
        throw UsageError("'" + target + "' is one argument too many");
    if (given.count("listeners") != 0) return print(given, info::describe_listeners(), info::print_listeners);
    if (given.count("why") != 0) {
        const auto way = info::describe_way(given["why"].as<std::string>());
        return print(given, way, info::print_way, way["works"].get<bool>() ? 0 : 1);
    }
    if (!target.empty()) return print(given, info::describe_device(target), info::print_device);
    return print(given, info::describe_installation(), info::print_installation);
}

}  // namespace

int main(int argc, char** argv) { return run_tool("vi-info", info_main, argc, argv); }
