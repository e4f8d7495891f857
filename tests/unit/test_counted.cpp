// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <stdexcept>

#include "backends/support/device_base.hpp"

using viaduct::Code;

namespace {

struct Counted {
    Counted(std::atomic<std::uint32_t>& count, bool fails) : used(count) {
        if (fails) throw std::runtime_error("fails");
    }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --used; }

    std::atomic<std::uint32_t>& used;
};

}  // namespace

TEST_CASE("counted: there are at most as many objects as the limit") {
    std::atomic<std::uint32_t> used{0};
    const auto make = [&used](bool fails) {
        return viaduct::support::make_counted<Counted>(used, 2, "too many", used, fails);
    };
    auto first = make(false);
    REQUIRE(first.ok());
    CHECK_THROWS_AS(make(true), std::runtime_error);
    CHECK(used == 1);
    const auto second = make(false);
    REQUIRE(second.ok());
    CHECK(make(false).status().code() == Code::NoResources);
    CHECK(used == 2);
    first->reset();
    CHECK(make(false).ok());
}
