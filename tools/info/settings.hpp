// SPDX-License-Identifier: BSD-3-Clause
// The environment variables that Viaduct reads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::info {

/// A variable that is set.
struct Setting {
    std::string name;
    std::string value;
    std::string problem;  ///< why it has no effect, or not the intended one; empty: nothing is wrong
};

/// The variables in the environment that Viaduct reads, and those whose names begin like theirs.
std::vector<Setting> find_settings();

/// The candidate that is most similar to what a user typed; empty if none is similar.
std::string_view most_similar(std::string_view typed, std::span<const std::string_view> candidates);

}  // namespace viaduct::info
