// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <chrono>

#include "backends/support/deadline_map.hpp"

using viaduct::Deadline;
using viaduct::support::DeadlineMap;
using namespace std::chrono_literals;

TEST_CASE("deadline map: returns the earliest deadline and the time until then") {
    DeadlineMap<int> map;
    CHECK(map.timeout_ms() == -1);
    CHECK(map.add(Deadline::after(1h), 1));
    CHECK(map.timeout_ms() > 3'590'000);
    CHECK_FALSE(map.add(Deadline::after(2h), 2));
    CHECK(map.add(Deadline::after(1min), 3));
    CHECK(map.timeout_ms() <= 60'000);
    CHECK(map.timeout_ms() > 50'000);
    CHECK(map.add(Deadline::now(), 4));
    CHECK(map.timeout_ms() == 0);
}

TEST_CASE("deadline map: returns expired entries, the earliest first") {
    DeadlineMap<int> map;
    const Deadline soon = Deadline::after(0s);
    map.add(Deadline::after(1h), 1);
    map.add(soon, 2);
    map.add(soon, 3);
    map.add(Deadline::now(), 4);
    CHECK(map.take_due() == 4);
    CHECK(map.take_due() == 2);
    CHECK(map.take_due() == 3);
    CHECK_FALSE(map.take_due().has_value());
    CHECK(map.timeout_ms() > 0);
}

TEST_CASE("deadline map: an entry that follows a removed one wakes nobody") {
    DeadlineMap<int> map;
    const Deadline first = Deadline::after(1h);
    CHECK(map.add(first, 1));
    CHECK(map.timeout_ms() > 3'590'000);
    map.remove(first, 1);
    CHECK(map.timeout_ms() <= 100);
    CHECK(map.timeout_ms() > 0);
    CHECK_FALSE(map.add(Deadline::after(1h), 2));
    CHECK(map.add(Deadline::after(1ms), 3));
    CHECK(map.timeout_ms() <= 1);
}

TEST_CASE("deadline map: a removed entry shortens no more than one sleep") {
    DeadlineMap<int> map;
    const Deadline soon = Deadline::after(1ms);
    map.add(soon, 1);
    map.remove(soon, 1);
    while (!soon.passed()) {
    }
    CHECK(map.timeout_ms() == -1);
}

TEST_CASE("deadline map: removed entries and infinite deadlines are not stored") {
    DeadlineMap<int> map;
    const Deadline soon = Deadline::after(0s);
    CHECK_FALSE(map.add(Deadline::never(), 1));
    CHECK(map.timeout_ms() == -1);
    map.add(soon, 2);
    map.add(soon, 3);
    map.remove(soon, 3);
    map.remove(Deadline::now(), 2);  // has another deadline
    map.remove(Deadline::never(), 1);
    CHECK(map.take_due() == 2);
    CHECK_FALSE(map.take_due().has_value());
}
