// SPDX-License-Identifier: BSD-3-Clause
// Triplets, which contain 64-bit lengths in 1.2 and 32-bit lengths in 2.0.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "pass.hpp"

namespace viaduct::dat1 {

inline constexpr DAT_VLEN max_length = std::numeric_limits<dat2::DAT_SEG_LENGTH>::max();

/// The caller must have checked the length with fits().
inline dat2::DAT_LMR_TRIPLET triplet_in_2(const DAT_LMR_TRIPLET& triplet) noexcept {
    return {.virtual_address = triplet.virtual_address,
            .segment_length = static_cast<dat2::DAT_SEG_LENGTH>(triplet.segment_length),
            .lmr_context = triplet.lmr_context};
}

inline DAT_LMR_TRIPLET triplet_of(const dat2::DAT_LMR_TRIPLET& triplet) noexcept {
    return {.lmr_context = triplet.lmr_context,
            .pad = 0,
            .virtual_address = triplet.virtual_address,
            .segment_length = triplet.segment_length};
}

inline bool fits(const DAT_LMR_TRIPLET& triplet) noexcept { return triplet.segment_length <= max_length; }

/// The length only limits a transfer, so it may be reduced: the peer's memory may be larger than any transfer.
inline dat2::DAT_RMR_TRIPLET triplet_in_2(const DAT_RMR_TRIPLET& triplet) noexcept {
    return {.virtual_address = triplet.target_address,
            .segment_length = static_cast<dat2::DAT_SEG_LENGTH>(std::min(triplet.segment_length, max_length)),
            .rmr_context = triplet.rmr_context};
}

/// The argument numbers of an array of segments and of its length.
struct SegmentArguments {
    unsigned count;
    unsigned segments;
};

/// Calls `call` with the segments converted to 2.0. The array is larger than any provider's limit.
template <class Call>
DAT_RETURN with_segments(DAT_VLEN count, const DAT_LMR_TRIPLET* segments, SegmentArguments places,
                         Call&& call) noexcept {
    std::array<dat2::DAT_LMR_TRIPLET, 256> translated;
    if (count > translated.size()) return bad_argument(places.count);
    if (segments == nullptr) return count == 0 ? call(nullptr) : bad_argument(places.segments);
    if (!std::all_of(segments, segments + count, fits)) return bad_argument(places.segments);
    std::transform(segments, segments + count, translated.begin(),
                   [](const DAT_LMR_TRIPLET& segment) { return triplet_in_2(segment); });
    return call(translated.data());
}

}  // namespace viaduct::dat1
