// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <catch2/catch.hpp>

#include "backends/support/sge_list.hpp"

using viaduct::Sge;
using viaduct::support::total_length;

TEST_CASE("pieces: the total length may exceed 32 bits") {
    CHECK(total_length({}) == 0);
    const std::array pieces{Sge{.length = 7}, Sge{.length = 0}, Sge{.length = 0xFFFFFFFF}, Sge{.length = 0xFFFFFFFF}};
    CHECK(total_length(std::span(pieces).first(1)) == 7);
    CHECK(total_length(pieces) == 0x2'0000'0005);
}
