// SPDX-License-Identifier: BSD-3-Clause
// A process that has no descriptors left.
#pragma once

#include <sys/resource.h>

#include <catch2/catch.hpp>

namespace viaduct::testing {

/// Calls `work` while the process can open no descriptors. It may check nothing: Catch2's checks under
/// UndefinedBehaviorSanitizer open a pipe.
template <class Work>
auto without_descriptors(Work work) {
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto result = work();
    setrlimit(RLIMIT_NOFILE, &before);
    return result;
}

}  // namespace viaduct::testing
