// SPDX-License-Identifier: BSD-3-Clause
// Counts the calls in the traces of vi-run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace viaduct::port {

class Trace {
public:
    /// Adds the calls in a file that vi-run --trace wrote, in any of its formats. Returns why that is not possible, or
    /// nothing.
    std::string add(const std::string& path);

    /// How often a function or macro of an API ran, or nothing if a trace does not show it.
    std::optional<std::uint64_t> count_of(std::string_view name) const;

    /// How often each function was called. Extended operations of DAT count one by one.
    const std::map<std::string, std::uint64_t, std::less<>>& calls() const { return calls_; }

private:
    bool add_line(std::string_view line);

    std::map<std::string, std::uint64_t, std::less<>> calls_;
};

/// What a trace shows where a source has this name: macros are traced as the functions that they call. Empty: nothing.
std::string_view traced_as(std::string_view name);

}  // namespace viaduct::port
