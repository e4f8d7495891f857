// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <limits>
#include <numeric>

#include "tools/measure/statistics.hpp"

using namespace viaduct::measure;

TEST_CASE("an empty histogram") {
    const Histogram histogram;
    CHECK(histogram.count() == 0);
    CHECK(histogram.min() == 0);
    CHECK(histogram.max() == 0);
    CHECK(histogram.mean() == 0);
    CHECK(histogram.percentile(0.5) == 0);
    CHECK(histogram.bars().empty());
}

TEST_CASE("the deviation of a histogram, and of two that are merged") {
    Histogram histogram;
    Histogram other;
    for (const std::uint64_t value : {2, 4, 4, 4}) histogram.record(value);
    for (const std::uint64_t value : {5, 5, 7, 9}) other.record(value);
    histogram.merge(other);
    CHECK(histogram.count() == 8);
    CHECK(histogram.min() == 2);
    CHECK(histogram.max() == 9);
    CHECK(histogram.mean() == Approx(5));
    CHECK(histogram.deviation() == Approx(2));
    CHECK(histogram.percentile(0.5) == 4);
    CHECK(Histogram().deviation() == 0);
}

TEST_CASE("small values are exact") {
    Histogram histogram;
    for (std::uint64_t value = 1; value <= 100; ++value) histogram.record(value);
    CHECK(histogram.percentile(0) == 1);
    CHECK(histogram.percentile(0.01) == 1);
    CHECK(histogram.percentile(0.5) == 50);
    CHECK(histogram.percentile(0.99) == 99);
    CHECK(histogram.percentile(0.999) == 100);
    CHECK(histogram.percentile(1) == 100);
    CHECK(histogram.mean() == Approx(50.5));
}

TEST_CASE("a percentile is not above its rank because of rounding") {
    Histogram histogram;
    for (int i = 0; i < 999; ++i) histogram.record(1);
    histogram.record(7);
    CHECK(histogram.percentile(99.9 / 100) == 1);
    CHECK(histogram.percentile(1) == 7);
}

TEST_CASE("percentiles of large values are within one percent") {
    Histogram histogram;
    constexpr std::uint64_t step = 1'000'003;
    for (std::uint64_t i = 1; i <= 10'000; ++i) histogram.record(i * step);
    for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999}) {
        CAPTURE(q);
        CHECK(histogram.percentile(q) == Approx(q * 10'000 * step).epsilon(0.01));
    }
    CHECK(histogram.min() == step);
    CHECK(histogram.max() == 10'000 * step);
}

TEST_CASE("percentiles stay within the samples") {
    Histogram histogram;
    histogram.record(1'000'001);
    for (const double q : {0.0, 0.5, 1.0}) CHECK(histogram.percentile(q) == 1'000'001);
}

TEST_CASE("the whole range of values has its buckets") {
    Histogram histogram;
    std::uint64_t recorded = 0;
    for (unsigned bit = 0; bit < 64; ++bit, recorded += 3) {
        const std::uint64_t power = std::uint64_t{1} << bit;
        histogram.record(power - 1);
        histogram.record(power);
        histogram.record(power + 1);
    }
    histogram.record(std::numeric_limits<std::uint64_t>::max());
    CHECK(histogram.count() == recorded + 1);
    CHECK(histogram.percentile(1) == Approx(18446744073709551615.0).epsilon(0.01));
}

TEST_CASE("bars contain each sample once, in order and without overlap") {
    Histogram histogram;
    for (std::uint64_t value = 1; value < 1'000'000; value = value * 5 / 4 + 1) histogram.record(value);
    const auto bars = histogram.bars();
    std::uint64_t total = 0;
    double end = 0;
    for (const auto& bar : bars) {
        CHECK(bar.first >= end);
        CHECK(bar.first < bar.end);
        CHECK(bar.count != 0);
        end = bar.end;
        total += bar.count;
    }
    CHECK(total == histogram.count());
}
