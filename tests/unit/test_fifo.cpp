// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <new>
#include <vector>

#include "core/base/fifo.hpp"

using viaduct::Fifo;

TEST_CASE("fifo: has room only for the requested number") {
    Fifo<int> fifo;
    CHECK(fifo.empty());
    CHECK(fifo.room() == 0);
    REQUIRE(fifo.reserve(0));
    CHECK(fifo.room() == 0);
    REQUIRE(fifo.reserve(20));
    CHECK(fifo.room() >= 20);
    const std::size_t room = fifo.room();
    fifo.push(1);
    CHECK(fifo.size() == 1);
    CHECK(fifo.room() == room - 1);
    fifo.pop();
    CHECK(fifo.empty());
    CHECK(fifo.room() == room);
    CHECK(Fifo<int>(5).room() >= 5);
}

TEST_CASE("fifo: keeps the order when it wraps around and when it grows") {
    Fifo<int> fifo;
    int next = 0;
    int expected = 0;
    for (int round = 0; round < 50; ++round) {
        REQUIRE(fifo.reserve(fifo.size() + 7));
        for (int i = 0; i < 7; ++i) fifo.push(next++);
        for (int i = 0; i < 5; ++i) {
            REQUIRE(fifo.front() == expected++);
            fifo.pop();
        }
    }
    REQUIRE(fifo.size() == 100);
    for (std::size_t i = 0; i < fifo.size(); ++i) {
        CHECK(fifo[i] == expected++);
        fifo[i] = -1;
    }
    CHECK(fifo.front() == -1);
}

TEST_CASE("fifo: growth moves elements, and slots are reused") {
    Fifo<std::vector<int>> fifo(1);
    const std::size_t room = fifo.room();
    for (std::size_t i = 0; i < room; ++i) {
        fifo.vacant().assign(100, static_cast<int>(i));
        fifo.commit();
    }
    const int* const first = fifo.front().data();
    REQUIRE(fifo.reserve(room + 1));
    CHECK(fifo.front().data() == first);  // not copied
    CHECK(fifo.front() == std::vector<int>(100, 0));
    const std::size_t places = fifo.size() + fifo.room();
    for (std::size_t i = 0; i < places; ++i) {  // wraps around
        fifo.push({});
        fifo.pop();
    }
    fifo.vacant().assign(50, 1);
    const int* const kept = fifo.vacant().data();
    fifo.commit();
    while (!fifo.empty()) fifo.pop();
    for (std::size_t i = 1; i < places; ++i) {
        fifo.vacant();
        fifo.commit();
        fifo.pop();
    }
    CHECK(fifo.vacant().data() == kept);
}

TEST_CASE("fifo: if there is no memory, nothing changes") {
    Fifo<int> fifo(1);
    fifo.push(7);
    constexpr std::size_t too_many = std::size_t{1} << 62;  // too large to try an allocation
    CHECK_FALSE(fifo.reserve(too_many));
    CHECK(fifo.size() == 1);
    CHECK(fifo.front() == 7);
    CHECK_THROWS_AS(Fifo<int>(too_many), std::bad_alloc);
}
