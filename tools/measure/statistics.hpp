// SPDX-License-Identifier: BSD-3-Clause
// Statistics that take a sample in a few nanoseconds and constant memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace viaduct::measure {

/// Counts samples in buckets whose width is at most 1/64 of their value; values below 128 are exact.
class Histogram {
public:
    void record(std::uint64_t value) noexcept {
        ++counts_[bucket_of(value)];
        ++count_;
        sum_ += value;
        squares_ += static_cast<double>(value) * static_cast<double>(value);
        min_ = std::min(min_, value);
        max_ = std::max(max_, value);
    }

    std::uint64_t count() const noexcept { return count_; }
    std::uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
    std::uint64_t max() const noexcept { return max_; }
    double mean() const noexcept { return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_); }

    /// The standard deviation.
    double deviation() const noexcept;

    /// Adds the samples of another one.
    void merge(const Histogram& other) noexcept;

    /// The value that a share `q` (0..1) of the samples does not exceed: the middle of its bucket.
    double percentile(double q) const noexcept;

    /// Values from `first` up to, not including, `end`.
    struct Bar {
        double first;
        double end;
        std::uint64_t count;
    };

    /// The samples in at most eight bars for each doubling of the value, for people to look at; empty bars are left
    /// out.
    std::vector<Bar> bars() const;

private:
    static constexpr unsigned sub_bits = 6;
    static constexpr std::size_t sub_count = 1U << sub_bits;
    static constexpr std::size_t bucket_count = (64 - sub_bits - 1) * sub_count + 2 * sub_count;

    static constexpr unsigned shift_of(std::uint64_t value) noexcept {
        return value < 2 * sub_count ? 0 : static_cast<unsigned>(std::bit_width(value)) - sub_bits - 1;
    }
    static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
        const unsigned shift = shift_of(value);
        return shift * sub_count + (value >> shift);
    }
    static double begin_of(std::size_t bucket) noexcept;
    static double end_of(std::size_t bucket) noexcept { return begin_of(bucket + 1); }

    std::array<std::uint64_t, bucket_count> counts_{};
    std::uint64_t count_ = 0;
    std::uint64_t sum_ = 0;
    double squares_ = 0;
    std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_ = 0;
};

/// Latencies as they are measured, in ticks.
struct MeasuredLatency {
    Histogram histogram;
    double nanoseconds_per_count = 1;    ///< from a value of the histogram to a time
    bool keeps_samples = false;          ///< each of them, besides the histogram
    std::vector<std::uint64_t> samples;  ///< in the order of time; their place is reserved before they are measured

    void record(std::uint64_t value) noexcept {
        histogram.record(value);
        if (keeps_samples) [[unlikely]]
            samples.push_back(value);
    }
};

}  // namespace viaduct::measure
