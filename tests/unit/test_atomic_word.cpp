// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <thread>

#include "backends/support/atomic_word.hpp"

namespace support = viaduct::support;

TEST_CASE("atomic_word: operations return the previous value") {
    alignas(8) std::uint64_t word = ~std::uint64_t{0};
    auto* const place = reinterpret_cast<std::byte*>(&word);
    CHECK(support::fetch_add(place, 3) == ~std::uint64_t{0});
    CHECK(word == 2);  // wraps around
    CHECK(support::compare_swap(place, 5, 6) == 2);
    CHECK(word == 2);
    CHECK(support::compare_swap(place, 2, 6) == 2);
    CHECK(word == 6);
    support::atomic_word(place).store(1);
    CHECK(word == 1);
}

TEST_CASE("atomic_word: threads lose no addition") {
    alignas(8) std::uint64_t word = 0;
    constexpr std::uint64_t rounds = 100000;
    const auto add = [&word] {
        auto* const place = reinterpret_cast<std::byte*>(&word);
        for (std::uint64_t i = 0; i < rounds; ++i) support::fetch_add(place, 1);
    };
    std::thread other(add);
    add();
    other.join();
    CHECK(word == 2 * rounds);
}
