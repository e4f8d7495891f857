// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "core/base/log_limit.hpp"

using namespace viaduct;
using Verdict = LogLimit::Verdict;

namespace {

constexpr const char* one = "one";
constexpr const char* other = "other";
constexpr LogLimit::Clock::time_point start{std::chrono::hours(1)};
constexpr LogLimit::Clock::duration short_time = std::chrono::milliseconds(1);

/// Uses up the lines of a kind.
void exhaust(LogLimit& limit, const char* kind, LogLimit::Clock::time_point now) {
    for (std::uint64_t i = 1; i < LogLimit::lines; ++i) CHECK(limit.next(kind, now) == Verdict::Show);
    CHECK(limit.next(kind, now) == Verdict::ShowLast);
}

}  // namespace

TEST_CASE("log: further lines of a kind are suppressed until the period is over") {
    LogLimit limit;
    exhaust(limit, one, start);
    CHECK(limit.next(one, start) == Verdict::Suppress);
    CHECK(limit.next(one, start + LogLimit::period - short_time) == Verdict::Suppress);
    exhaust(limit, one, start + LogLimit::period);
    CHECK(limit.next(one, start + LogLimit::period) == Verdict::Suppress);
}

TEST_CASE("log: lines of other kinds are shown") {
    LogLimit limit;
    exhaust(limit, one, start);
    exhaust(limit, other, start);
    CHECK(limit.next(one, start) == Verdict::Suppress);
    CHECK(limit.next(other, start) == Verdict::Suppress);
}

TEST_CASE("log: suppressed lines are counted once, when their period is over") {
    LogLimit limit;
    exhaust(limit, one, start);
    CHECK(limit.next(one, start) == Verdict::Suppress);
    CHECK(limit.next(one, start) == Verdict::Suppress);
    CHECK(limit.take_suppressed(start + LogLimit::period - short_time) == 0);
    SECTION("and another kind comes next") { CHECK(limit.next(other, start + LogLimit::period) == Verdict::Show); }
    SECTION("and the same kind comes next") { CHECK(limit.next(one, start + LogLimit::period) == Verdict::Show); }
    CHECK(limit.take_suppressed(start + LogLimit::period) == 2);
    CHECK(limit.take_suppressed(start + LogLimit::period) == 0);
}

TEST_CASE("log: a full period without too many lines suppresses nothing") {
    LogLimit limit;
    exhaust(limit, one, start);
    CHECK(limit.take_suppressed(start + LogLimit::period) == 0);
    CHECK(limit.next(one, start + LogLimit::period) == Verdict::Show);
}

TEST_CASE("log: more kinds than places are limited together") {
    LogLimit limit;
    const char kinds[1000]{};
    for (const char& kind : kinds) (void)limit.next(&kind, start);
    CHECK(limit.next(&kinds[999], start) == Verdict::Suppress);
    CHECK(limit.next(&kinds[0], start) == Verdict::Show);
}
