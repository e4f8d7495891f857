// SPDX-License-Identifier: BSD-3-Clause
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "tests/support/rig.hpp"
#include "tests/support/traces.hpp"
#include "viaduct/shareable_memory.hpp"

using namespace viaduct;
using viaduct::testing::must;

TEST_CASE("shareable memory: zeroed, page-aligned and of the requested size") {
    for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 20}) {
        const auto memory = must(ShareableMemory::allocate(size));
        CHECK(memory.size() == size);
        CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % static_cast<std::uintptr_t>(getpagesize()) == 0);
        CHECK(std::ranges::all_of(memory.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
        std::ranges::fill(memory.bytes(), std::byte{1});
    }
}

TEST_CASE("shareable memory: impossible sizes are refused") {
    CHECK(ShareableMemory::allocate(0).status().code() == Code::InvalidParameter);
    CHECK(ShareableMemory::allocate(std::numeric_limits<std::size_t>::max()).status().code() == Code::NoResources);
    CHECK(ShareableMemory::allocate(std::size_t{1} << 62).status().code() == Code::NoResources);
}

TEST_CASE("shareable memory: beyond the limit of the process for files it is refused") {
    rlimit usual{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &usual) == 0);
    const rlimit few{.rlim_cur = 4096, .rlim_max = usual.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &few) == 0);
    const Code largest = ShareableMemory::allocate(4096).status().code();
    const Code larger = ShareableMemory::allocate(4097).status().code();
    REQUIRE(setrlimit(RLIMIT_FSIZE, &usual) == 0);
    CHECK(largest == Code::Ok);
    CHECK(larger == Code::NoResources);
}

TEST_CASE("shareable memory: has one owner and leaves nothing behind") {
    const auto before = testing::find_traces();
    {
        auto first = must(ShareableMemory::allocate(100));
        first.bytes()[0] = std::byte{9};
        ShareableMemory second = std::move(first);
        CHECK(second.bytes()[0] == std::byte{9});
        auto third = must(ShareableMemory::allocate(200));
        third = std::move(second);
        CHECK(third.size() == 100);
        CHECK(third.bytes()[0] == std::byte{9});
    }
    CHECK(testing::leaked_since(before).empty());
}
