// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "backends/support/post_each.hpp"

using viaduct::Code;
using viaduct::Status;
using viaduct::support::post_each;

TEST_CASE("post_each: posts in order, and stops at the first request that cannot be posted") {
    constexpr std::array requests{1, 2, 3, 4};
    std::vector<int> posted_requests;
    std::size_t posted = 7;
    int last = 4;
    const auto post = [&](int request) {
        if (request > last) return Status{Code::QueueFull, "full"};
        posted_requests.push_back(request);
        return Status();
    };

    CHECK(post_each<int>(requests, posted, post).ok());
    CHECK(posted == 4);
    CHECK(posted_requests == std::vector{1, 2, 3, 4});

    last = 2;
    CHECK(post_each<int>(requests, posted, post).code() == Code::QueueFull);
    CHECK(posted == 2);
    CHECK(posted_requests == std::vector{1, 2, 3, 4, 1, 2});

    CHECK(post_each<int>({}, posted, post).ok());
    CHECK(posted == 0);
}
