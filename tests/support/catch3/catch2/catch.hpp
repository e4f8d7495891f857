// SPDX-License-Identifier: BSD-3-Clause
// The header of Catch2 2 for Catch2 3, whose matchers have other names, so that the tests can be compiled with either.
#pragma once

#include <catch2/catch_all.hpp>

#include <string>

using Catch::Approx;

namespace Catch {

using Matchers::StartsWith;

inline auto Contains(const std::string& text) { return Matchers::ContainsSubstring(text); }

}  // namespace Catch
