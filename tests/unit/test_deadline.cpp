// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <chrono>
#include <limits>

#include "viaduct/deadline.hpp"

using viaduct::Deadline;
using namespace std::chrono_literals;

TEST_CASE("deadline: never() does not expire and polls indefinitely") {
    const auto never = Deadline::never();
    CHECK(never.infinite());
    CHECK_FALSE(never.passed());
    CHECK(never.poll_timeout_ms() == -1);
}

TEST_CASE("deadline: now() has expired and polls once") {
    const auto now = Deadline::now();
    CHECK_FALSE(now.infinite());
    CHECK(now.passed());
    CHECK(now.poll_timeout_ms() == 0);
}

TEST_CASE("deadline: the remaining time of a timeout is between 0 and its length") {
    const auto hour = Deadline::after(1h);
    CHECK_FALSE(hour.infinite());
    CHECK_FALSE(hour.passed());
    CHECK(hour.poll_timeout_ms() > 0);
    CHECK(hour.poll_timeout_ms() <= 3600 * 1000);
    CHECK(hour.point() > Deadline::Clock::now());
}

TEST_CASE("deadline: with a length of 0 or less it has expired") {
    CHECK(Deadline::after(0s).passed());
    CHECK(Deadline::after(-1s).passed());
    CHECK(Deadline::after(-1s).poll_timeout_ms() == 0);
    CHECK_FALSE(Deadline::after(0s).infinite());
}

TEST_CASE("deadline: the remaining time is rounded up to avoid early wake-ups") {
    const auto soon = Deadline::after(200us);
    const int left = soon.poll_timeout_ms();
    CHECK((left == 1 || soon.passed()));
}

TEST_CASE("deadline: a timeout beyond the range of the clock is infinite") {
    CHECK(Deadline::after(std::chrono::hours::max()).infinite());
    CHECK(Deadline::after(std::chrono::nanoseconds::max()).infinite());
    CHECK(Deadline::after(std::chrono::milliseconds(std::numeric_limits<std::int64_t>::max())).infinite());
    CHECK(Deadline::after(std::chrono::duration<unsigned long, std::milli>(~0ul)).infinite());
}

TEST_CASE("deadline: times that do not fit the int of poll() are reduced") {
    const auto year = Deadline::after(24h * 365);
    CHECK_FALSE(year.infinite());
    CHECK(year.poll_timeout_ms() == std::numeric_limits<int>::max());
}

TEST_CASE("deadline: earlier ones sort first") {
    CHECK(Deadline::now() < Deadline::after(1s));
    CHECK(Deadline::after(1s) < Deadline::after(1h));
    CHECK(Deadline::after(1h) < Deadline::never());
    CHECK_FALSE(Deadline::never() < Deadline::never());
}
