// SPDX-License-Identifier: BSD-3-Clause
// Settings in environment variables. An empty variable counts as not set. A value that cannot be used is reported once.
// Settings of the backend tcp may still have the names of its predecessor, ofi.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "core/base/numbers.hpp"
#include "viaduct/detail/export.hpp"

namespace viaduct {

/// The value of a variable; empty if it is not set.
VIADUCT_EXPORT std::string_view setting(const char* variable) noexcept;
/// Whether it is set, maybe to an empty value.
VIADUCT_EXPORT bool is_set(const char* variable) noexcept;

/// A variable that holds a number, and the numbers that can be used.
struct NumberSetting {
    const char* variable;
    unsigned least = 0;
    unsigned most = std::numeric_limits<unsigned>::max();

    std::optional<unsigned> parse(std::string_view value) const noexcept {
        const auto number = whole_number<unsigned>(value);
        return number && *number >= least && *number <= most ? number : std::nullopt;
    }
};

inline constexpr NumberSetting connect_retry_setting{.variable = "VIADUCT_CONNECT_RETRY_MS"};
inline constexpr NumberSetting spin_setting{.variable = "VIADUCT_SPIN_US"};
inline constexpr NumberSetting tcp_timeout_setting{
    .variable = "VIADUCT_TCP_TIMEOUT_MS", .least = 1, .most = std::numeric_limits<int>::max()};
inline constexpr NumberSetting tcp_insecure_setting{.variable = "VIADUCT_TCP_INSECURE", .most = 1};

inline constexpr NumberSetting number_settings[] = {connect_retry_setting, spin_setting, tcp_timeout_setting,
                                                    tcp_insecure_setting};

/// The process that vi-run --power-cut runs in.
inline constexpr NumberSetting power_cut_report_setting{
    .variable = "VIADUCT_POWER_CUT_REPORT", .least = 1, .most = std::numeric_limits<int>::max()};

/// What VIADUCT_PMEM asks for: "strict" alone, or with a loss of power: "strict:N", "strict:N:SEED" or
/// "strict:random:SEED".
struct PmemSetting {
    static constexpr const char* variable = "VIADUCT_PMEM";
    static constexpr std::string_view usable = "strict, strict:N, strict:N:SEED or strict:random:SEED";

    bool cuts = false;
    std::uint64_t flush = 0;  ///< the number of the flush at which the power fails; 0: a random one
    std::uint64_t seed = 0;

    VIADUCT_EXPORT static std::optional<PmemSetting> parse(std::string_view value) noexcept;
};

/// The value of such a variable; none if it is not set or cannot be used.
VIADUCT_EXPORT std::optional<unsigned> number_setting(const NumberSetting& setting) noexcept;

/// Logs a warning that quotes the value of a variable and says what can be used. One warning for each variable;
/// `variable` is a string literal.
VIADUCT_EXPORT void warn_of_setting(const char* variable, std::string_view usable) noexcept;

}  // namespace viaduct
