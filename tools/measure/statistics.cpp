// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/statistics.hpp"

#include <cmath>
#include <functional>

namespace viaduct::measure {

double Histogram::deviation() const noexcept {
    if (count_ == 0) return 0;
    return std::sqrt(std::max(0.0, squares_ / static_cast<double>(count_) - mean() * mean()));
}

void Histogram::merge(const Histogram& other) noexcept {
    std::ranges::transform(counts_, other.counts_, counts_.begin(), std::plus());
    count_ += other.count_;
    sum_ += other.sum_;
    squares_ += other.squares_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
}

double Histogram::begin_of(std::size_t bucket) noexcept {
    if (bucket < 2 * sub_count) return static_cast<double>(bucket);
    const auto shift = bucket / sub_count - 1;
    return std::ldexp(static_cast<double>(bucket - shift * sub_count), static_cast<int>(shift));
}

double Histogram::percentile(double q) const noexcept {
    if (count_ == 0) return 0;
    constexpr double exactly = 1 - 1e-12;  // 0.999 of 1000 is 999, however 0.999 was rounded
    const double wanted = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_) * exactly);
    const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, count_);
    std::uint64_t seen = 0;
    std::size_t bucket = 0;
    while ((seen += counts_[bucket]) < rank) ++bucket;
    // Buckets of width 1 hold one value; wider ones are told by their middle.
    const double middle = (begin_of(bucket) + end_of(bucket) - 1) / 2;
    return std::clamp(middle, static_cast<double>(min_), static_cast<double>(max_));
}

std::vector<Histogram::Bar> Histogram::bars() const {
    constexpr std::size_t merged = sub_count / 8;
    std::vector<Bar> bars;
    for (std::size_t first = 0; first < bucket_count; first += merged) {
        std::uint64_t count = 0;
        for (std::size_t bucket = first; bucket < first + merged; ++bucket) count += counts_[bucket];
        if (count != 0) bars.push_back({begin_of(first), end_of(first + merged - 1), count});
    }
    return bars;
}

}  // namespace viaduct::measure
