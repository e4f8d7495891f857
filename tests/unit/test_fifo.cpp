// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "backends/verbs/fifo.hpp"

using viaduct::verbs::Fifo;

TEST_CASE("fifo: has room only for what was asked for") {
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
}

TEST_CASE("fifo: keeps the order where it goes round and where it grows") {
    Fifo<int> fifo;
    int next = 0;
    int expected = 0;
    for (int round = 0; round < 50; ++round) {
        REQUIRE(fifo.reserve(7));
        for (int i = 0; i < 7; ++i) fifo.push(next++);
        for (int i = 0; i < 5; ++i) {
            REQUIRE(fifo.front() == expected++);
            fifo.pop();
        }
    }
    CHECK(fifo.size() == 100);
    fifo.for_each([&](int& item) {
        CHECK(item == expected++);
        item = -1;
    });
    CHECK(fifo.front() == -1);
}
