// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/settings.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "core/log.hpp"

namespace viaduct {
namespace {

/// Returns true on the first call with this name.
bool is_first_warning(std::string_view variable) noexcept {
    static std::array<std::atomic<const char*>, 32> warned{};
    for (std::atomic<const char*>& place : warned) {
        const char* known = nullptr;
        if (place.compare_exchange_strong(known, variable.data())) return true;
        if (variable == known) return false;
    }
    return false;
}

/// Null: it is not set, neither under its old name.
const char* find(const char* variable) noexcept {
    const char* const value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return value;
    constexpr std::string_view prefix = "VIADUCT_";
    constexpr std::string_view own = "TCP_";
    constexpr std::string_view old = "OFI_";
    const std::string_view name = variable;
    std::array<char, 64> old_name{};
    if (name.size() >= old_name.size() || name.substr(std::min(prefix.size(), name.size()), own.size()) != own)
        return value;
    std::ranges::copy(name, old_name.begin());
    std::ranges::copy(old, old_name.begin() + prefix.size());
    const char* const old_value = std::getenv(old_name.data());
    if (old_value == nullptr) return value;
    if (is_first_warning(variable))
        log(LogLevel::Warning, "%s is called %s now, and this version still takes it", old_name.data(), variable);
    return old_value;
}

}  // namespace

std::string_view setting(const char* variable) noexcept {
    const char* const value = find(variable);
    return value != nullptr ? value : "";
}

bool is_set(const char* variable) noexcept { return find(variable) != nullptr; }

std::optional<unsigned> number_setting(const NumberSetting& wanted) noexcept {
    const std::string_view value = setting(wanted.variable);
    if (value.empty()) return std::nullopt;
    if (const auto number = wanted.parse(value)) return number;
    std::array<char, 64> usable;
    std::snprintf(usable.data(), usable.size(), "a number from %u to %u", wanted.least, wanted.most);
    warn_of_setting(wanted.variable, usable.data());
    return std::nullopt;
}

std::optional<PmemSetting> PmemSetting::parse(std::string_view value) noexcept {
    if (!take_text(value, "strict")) return std::nullopt;
    if (value.empty()) return PmemSetting{};
    if (!take_text(value, ":")) return std::nullopt;
    PmemSetting setting{.cuts = true};
    if (!take_text(value, "random:")) {
        if (!take_number(value, setting.flush) || setting.flush == 0) return std::nullopt;
        if (value.empty()) return setting;
        if (!take_text(value, ":")) return std::nullopt;
    }
    if (!take_number(value, setting.seed) || !value.empty()) return std::nullopt;
    return setting;
}

void warn_of_setting(const char* variable, std::string_view usable) noexcept {
    if (!is_first_warning(variable)) return;
    log(LogLevel::Warning, "%s: cannot use '%s', only %.*s", variable, setting(variable).data(),
        static_cast<int>(usable.size()), usable.data());
}

}  // namespace viaduct
