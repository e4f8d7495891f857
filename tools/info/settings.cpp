// SPDX-License-Identifier: BSD-3-Clause
// The environment variables that Viaduct reads.
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/base/check_spec.hpp"
#include "core/base/fault_spec.hpp"
#include "core/base/settings.hpp"
#include "tools/info/info.hpp"

namespace viaduct::info {
namespace {

constexpr std::string_view prefix = "VIADUCT_";
constexpr std::string_view prefix_of_tests = "VIADUCT_TEST_";
constexpr std::array<std::string_view, 18> names{"VIADUCT_BACKEND",
                                                 "VIADUCT_DEVICE",
                                                 "VIADUCT_TCP_KEY_FILE",
                                                 "VIADUCT_TCP_CERT",
                                                 "VIADUCT_TCP_KEY",
                                                 "VIADUCT_TCP_CA",
                                                 "VIADUCT_TCP_SECURITY",
                                                 "VIADUCT_TCP_INSECURE",
                                                 "VIADUCT_TCP_INTERFACES",
                                                 "VIADUCT_TCP_TIMEOUT_MS",
                                                 "VIADUCT_CONNECT_RETRY_MS",
                                                 "VIADUCT_SPIN_US",
                                                 "VIADUCT_PMEM",
                                                 "VIADUCT_LOG",
                                                 "VIADUCT_FAULTS",
                                                 "VIADUCT_CHECK",
                                                 "VIADUCT_CHECK_FILE",
                                                 "DAT_OVERRIDE"};

/// What programs and tests of Viaduct pass on; nobody means these.
constexpr std::array<std::string_view, 3> internal_names{"VIADUCT_TRACE_BOARD", "VIADUCT_POWER_CUT_REPORT",
                                                         "VIADUCT_CRASH_SEED"};

template <class Names>
std::string problem_of_choice(std::string_view value, const Names& choices) {
    if (std::ranges::find(choices, value) != std::end(choices)) return "";
    return fmt::format("'{}' is none of {}", value, fmt::join(choices, ", "));
}

std::string problem_of_interfaces(std::string_view list) {
    while (!list.empty()) {
        const std::size_t comma = std::min(list.find(','), list.size());
        const std::string name(list.substr(0, comma));
        if (if_nametoindex(name.c_str()) == 0) return fmt::format("there is no network interface '{}'", name);
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return "";
}

/// A certificate needs its key and an authority.
std::string problem_of_certificate(std::string_view name) {
    constexpr std::array<const char*, 3> together{"VIADUCT_TCP_CERT", "VIADUCT_TCP_KEY", "VIADUCT_TCP_CA"};
    if (std::ranges::find(together, name) == together.end()) return "";
    std::vector<std::string_view> missing;
    for (const char* each : together)
        if (setting(each).empty()) missing.emplace_back(each);
    return missing.empty() ? "" : fmt::format("no tcp device can be opened without {}", fmt::join(missing, " and "));
}

/// Says what is wrong with the value of a variable that Viaduct reads.
std::string problem_of(std::string_view name, const std::string& value) {
    constexpr std::array<std::string_view, 5> files{"VIADUCT_TCP_KEY_FILE", "DAT_OVERRIDE", "VIADUCT_TCP_CERT",
                                                    "VIADUCT_TCP_KEY", "VIADUCT_TCP_CA"};
    if (value.empty() && name != files[0] && name != files[1]) return "";
    if (std::ranges::find(files, name) != files.end())
        return access(value.c_str(), R_OK) == 0 ? problem_of_certificate(name)
                                                : fmt::format("'{}' cannot be read", value);
    if (name == "VIADUCT_LOG") return problem_of_choice(value, std::array{"error", "warning", "info", "debug"});
    if (name == "VIADUCT_TCP_SECURITY") return problem_of_choice(value, std::array{"encrypted", "authenticated"});
    if (name == "VIADUCT_TCP_INTERFACES") return problem_of_interfaces(value);
    if (name == "VIADUCT_BACKEND") {
        if (value == "ofi") return "it means tcp, and this version is the last one that takes it";
        std::vector<std::string_view> backends;
        for (const backend::Provider* provider : providers()) backends.push_back(provider->name());
        return problem_of_choice(value, backends);
    }
    if (name == "VIADUCT_DEVICE" && !find_device(value).ok())
        return fmt::format("there is no device '{}'{}", value,
                           setting("VIADUCT_BACKEND").empty() ? "" : " of this backend");
    if (FaultSpec spec; name == fault_setting)
        if (const auto wrong = parse_faults(value, spec); !wrong.empty())
            return fmt::format("'{}' cannot be used, only {}", wrong, usable_faults);
    if (CheckSpec spec; name == check_setting)
        if (const auto wrong = parse_checks(value, spec); !wrong.empty())
            return fmt::format("'{}' cannot be used, only {}", wrong, usable_checks);
    if (name == PmemSetting::variable && !PmemSetting::parse(value))
        return fmt::format("'{}' is none of {}", value, PmemSetting::usable);
    for (const NumberSetting& setting : number_settings)
        if (name == setting.variable && !setting.parse(value))
            return fmt::format("'{}' is not a number from {} to {}", value, setting.least, setting.most);
    return "";
}

/// The name that a variable of the backend ofi has now.
std::string name_now(const std::string& name) {
    constexpr std::string_view old = "VIADUCT_OFI_";
    return name.starts_with(old) ? "VIADUCT_TCP_" + name.substr(old.size()) : name;
}

}  // namespace

std::string_view most_similar(std::string_view typed, std::span<const std::string_view> candidates) {
    std::string_view best;
    std::size_t least = std::max<std::size_t>(2, typed.size() / 4) + 1;
    for (const std::string_view candidate : candidates)
        if (const std::size_t edits = tools::distance(typed, candidate); edits < least) {
            least = edits;
            best = candidate;
        }
    return best;
}

std::vector<Setting> find_settings() {
    std::vector<Setting> found;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const std::size_t equals = std::min(text.find('='), text.size());
        Setting setting{.name = std::string(text.substr(0, equals)),
                        .value = std::string(text.substr(std::min(equals + 1, text.size())))};
        const std::string name = name_now(setting.name);
        const bool known = std::ranges::find(names, name) != names.end();
        if (std::ranges::find(internal_names, setting.name) != internal_names.end()) continue;
        if (!known && (!setting.name.starts_with(prefix) || setting.name.starts_with(prefix_of_tests))) continue;
        const std::string_view similar = known ? "" : most_similar(setting.name, names);
        if (known)
            setting.problem = problem_of(name, setting.value);
        else
            setting.problem = similar.empty() ? "Viaduct has no such setting"
                                              : fmt::format("Viaduct has no such setting; did you mean {}?", similar);
        if (known && name != setting.name)
            setting.problem = fmt::format("it is {} now, and this version is the last one that takes it{}{}", name,
                                          setting.problem.empty() ? "" : "; ", setting.problem);
        found.push_back(std::move(setting));
    }
    std::ranges::sort(found, {}, &Setting::name);
    return found;
}

}  // namespace viaduct::info
