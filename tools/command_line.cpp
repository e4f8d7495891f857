// SPDX-License-Identifier: BSD-3-Clause
#include "tools/command_line.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/host_names.hpp"
#include "core/base/numbers.hpp"
#include "core/base/settings.hpp"
#include "core/provider.hpp"

namespace viaduct::tools {
namespace {

std::atomic<bool> stopped{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Standard streams that are closed would become sockets of the library: puts something in their place that takes
/// nothing.
void occupy_standard_streams() noexcept {
    int fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDONLY);
    if (fd >= 0) close(fd);
}

bool is_client(const options::variables_map& given) { return given.count("target") != 0 && given.count("listen") == 0; }

/// Selects the device for a host, among those that the options and the environment leave. Device 0 if there is none:
/// connecting reports why.
std::uint32_t device_towards(const std::string& name) {
    const auto route = measure::find_way(name, resolve_host(name));
    if (!route.ok()) return 0;
    const DeviceId& device = route.value().device;
    setenv("VIADUCT_BACKEND", std::string(device.provider->name()).c_str(), 1);
    return device.number;
}

/// Selects the device that has an address of this host.
std::uint32_t device_of(const std::string& name) {
    const auto addresses = resolve_host(name);
    if (!is_this_host(addresses)) throw UsageError("this host does not have the address " + name);
    const auto selected = selected_provider();
    const bool any = setting("VIADUCT_BACKEND").empty() && setting("VIADUCT_DEVICE").empty();
    for (backend::Provider* const provider : providers()) {
        if (!any && (!selected.ok() || selected.value() != provider)) continue;
        const auto devices = provider->devices();
        if (!devices.ok()) continue;
        const auto found = std::ranges::find_first_of(devices.value(), addresses, {}, &backend::DeviceSummary::host);
        if (found == devices.value().end()) continue;
        setenv("VIADUCT_BACKEND", std::string(provider->name()).c_str(), 1);
        return static_cast<std::uint32_t>(found - devices.value().begin());
    }
    throw UsageError("no device has the address " + name + "; 'vi-info' lists the devices");
}

/// Boost replaces these in the text of an error, and does not end if what it puts there contains the same.
void refuse_placeholders(std::string_view argument) {
    for (const std::string_view name : {"%canonical_option%", "%option%", "%original_token%", "%value%", "%prefix%"})
        if (argument.find(name) != argument.npos)
            throw UsageError(fmt::format("'{}' contains {}, which no option can", argument, name));
}

}  // namespace

options::typed_value<std::string>* text(const char* placeholder) {
    return options::value<std::string>()->value_name(placeholder);
}

options::typed_value<std::string>* text(const char* placeholder, const char* default_value) {
    return text(placeholder)->default_value(default_value);
}

options::typed_value<Count>* count(const char* placeholder) { return options::value<Count>()->value_name(placeholder); }

options::variables_map parse_words(int argc, char** argv, const options::options_description& description,
                                   const char* first, const char* others) {
    for (const char* const argument : std::span(argv, static_cast<std::size_t>(argc))) refuse_placeholders(argument);
    options::options_description all(description);
    all.add_options()(first, options::value<std::string>())(others, options::value<std::vector<std::string>>());
    options::positional_options_description positional;
    positional.add(first, 1).add(others, -1);
    options::variables_map given;
    try {
        options::store(options::command_line_parser(argc, argv).options(all).positional(positional).run(), given);
        options::notify(given);
    } catch (const options::error& error) {
        throw UsageError(error.what());
    }
    return given;
}

options::variables_map parse(int argc, char** argv, const options::options_description& description) {
    auto given = parse_words(argc, argv, description, "target", "excess");
    if (given.count("excess") != 0)
        throw UsageError(
            fmt::format("'{}' is one argument too many", given["excess"].as<std::vector<std::string>>().front()));
    return given;
}

void add_common_options(options::options_description& description) {
    auto add = description.add_options();
    add("api", text("NAME", "vipl"), "programming interface: vipl, dat, rpma or core");
    add("backend", text("NAME"),
        "loopback, verbs or tcp (default: $VIADUCT_BACKEND, or the one that reaches the server)");
    add("device,I", count("N")->default_value(0), "number of the device to open");
    add("version,V", "print the version and exit");
    add("help,h", "print this help and exit");
}

bool answer_information(const options::variables_map& given, std::string_view tool, std::string_view usage,
                        const options::options_description& description) {
    if (given.count("help") != 0) {
        std::ostringstream text;
        text << description;
        fmt::print("{}\n{}\nSee {}(1) for details.\n", usage, text.str(), tool);
        return true;
    }
    if (given.count("version") != 0) {
        fmt::print("{} (Viaduct) {}\n", tool, VIADUCT_VERSION);
        return true;
    }
    return false;
}

std::unique_ptr<measure::Api> open_api(const options::variables_map& given) {
    const auto kind = choose<measure::ApiKind>(given, "api", "API");
    return measure::open_api(kind, choose_device(given));
}

void retry_for(measure::Timeout patience) {
    if (!setting(connect_retry_setting.variable).empty()) return;
    const std::uint64_t limit = connect_retry_setting.most;
    setenv(connect_retry_setting.variable, fmt::format("{}", std::min<std::uint64_t>(patience.count(), limit)).c_str(),
           1);
}

std::uint32_t choose_device(const options::variables_map& given) {
    if (given.count("backend") != 0) {
        (void)choose(given, "backend", "backend", backends);
        setenv("VIADUCT_BACKEND", given["backend"].as<std::string>().c_str(), 1);
    }
    if (given.count("listen") != 0) {
        const std::string host = listen_target(given).host;
        if (!host.empty() && !given["device"].defaulted())
            throw UsageError("--device cannot be used with an address to listen on, which selects the device");
        if (!host.empty()) return device_of(host);
    }
    if (is_client(given) && given["device"].defaulted() && setting("VIADUCT_DEVICE").empty())
        return device_towards(measure::parse_target(given["target"].as<std::string>()).host);
    return static_cast<std::uint32_t>(count_of(given, "device", max_uint32));
}

measure::Target listen_target(const options::variables_map& given) {
    const auto& attached = given["listen"].as<std::string>();  // as in --listen=7471
    if (given.count("target") == 0)
        return measure::parse_listen_target(attached.empty() ? measure::default_service : attached);
    if (!attached.empty()) throw UsageError("a server listens on one service and takes no host to connect to");
    return measure::parse_listen_target(given["target"].as<std::string>());
}

std::size_t choose(const options::variables_map& given, const char* option, std::string_view what,
                   std::span<const std::string_view> choices) {
    const auto& value = given[option].as<std::string>();
    const auto found = std::ranges::find(choices, value);
    if (found == choices.end())
        throw UsageError(fmt::format("unknown {} '{}': choose one of {}", what, value, fmt::join(choices, ", ")));
    return static_cast<std::size_t>(found - choices.begin());
}

measure::ServerOptions server_options(const options::variables_map& given, const measure::Api& api,
                                      const measure::Target& target) {
    if (!target.host.empty() && std::ranges::count(resolve_host(target.host), api.device().host) == 0)
        throw measure::Error(
            fmt::format("{} is not the address of {}, which VIADUCT_DEVICE selects", target.host, api.device().name));
    const auto print = [quiet = given.count("quiet") != 0](const std::string& line) {
        if (quiet) return;
        fmt::print("{}\n", line);
        std::fflush(stdout);
    };
    const measure::Target own{.host = measure::text_of(api.device().host), .service = target.service};
    const std::string listening =
        fmt::format("listening on {} ({}, {})", own.text(), api.name(), measure::backend_name());
    return {.version = VIADUCT_VERSION,
            .clients = count_of(given, "count"),
            .on_listening = [=] { print(listening); },
            .tell = print,
            .complain =
                [](const std::string& line) {
                    viaduct::tools::complain(fmt::format("{}: {}\n", program_invocation_short_name, line));
                }};
}

std::chrono::duration<double> parse_seconds(const std::string& option, const std::string& text) {
    const double seconds = whole_number<double>(text).value_or(-1);
    constexpr double longest = 1e9;
    if (!(seconds >= 0 && seconds <= longest))
        throw UsageError("bad value '" + text + "' for --" + option + ": expected seconds, such as 0.2");
    return std::chrono::duration<double>(seconds);
}

std::uint64_t count_of(const options::variables_map& given, const char* option, Count largest) {
    const Count count = given[option].as<Count>();
    if (count < 0 || count > largest)
        throw UsageError(fmt::format("--{} {} is out of range: expected 0 to {}", option, count, largest));
    return static_cast<std::uint64_t>(count);
}

void exclude(const options::variables_map& given, const char* one, const char* other) {
    const auto chosen = [&](const char* option) { return given.count(option) != 0 && !given[option].defaulted(); };
    if (chosen(one) && chosen(other))
        throw UsageError(fmt::format("--{} and --{} cannot be used together", one, other));
}

const std::atomic<bool>& stop_on_signal() {
    struct sigaction action {};
    action.sa_handler = [](int) { stopped.store(true); };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    return stopped;
}

void complain(const std::string& text) noexcept { (void)std::fputs(text.c_str(), stderr); }

int run_tool(std::string_view tool, int (*tool_main)(int, char**), int argc, char** argv) noexcept {
    constexpr int failure = 2;
    occupy_standard_streams();
    try {
        const int status = tool_main(argc, argv);
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
            throw measure::Error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
        return status;
    } catch (const UsageError& error) {
        complain(fmt::format("{}: {}\nTry '{} --help'.\n", tool, error.what(), tool));
    } catch (const std::exception& error) {
        complain(fmt::format("{}: {}\n", tool, error.what()));
    }
    return failure;
}

}  // namespace viaduct::tools
