// SPDX-License-Identifier: BSD-3-Clause
// Triplets, which contain 64-bit lengths in 1.2 and 32-bit lengths in 2.0.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "pass.hpp"

namespace viaduct::dat1 {

inline constexpr DAT_VLEN max_length = std::numeric_limits<dat2::DAT_SEG_LENGTH>::max();

/// The reason if a segment does not fit.
inline constexpr const char* too_long = "a segment has 4 GiB or more";

/// The caller must have checked the length with fits(). Reads each field separately, because the program has just
/// written them (docs/adr/0014-fields-apart.md).
inline dat2::DAT_LMR_TRIPLET triplet_in_2(const volatile DAT_LMR_TRIPLET& triplet) noexcept {
    return {.virtual_address = triplet.virtual_address,
            .segment_length = static_cast<dat2::DAT_SEG_LENGTH>(triplet.segment_length),
            .lmr_context = triplet.lmr_context};
}

inline DAT_LMR_TRIPLET triplet_of(const dat2::DAT_LMR_TRIPLET& triplet) noexcept {
    return {.lmr_context = triplet.lmr_context,
            .virtual_address = triplet.virtual_address,
            .segment_length = triplet.segment_length};
}

inline bool fits(const DAT_LMR_TRIPLET& triplet) noexcept { return triplet.segment_length <= max_length; }

/// The length only limits a transfer, so it may be reduced: the peer's memory may be larger than any transfer.
inline dat2::DAT_RMR_TRIPLET triplet_in_2(const volatile DAT_RMR_TRIPLET& triplet) noexcept {
    const DAT_VLEN length = triplet.segment_length;
    return {.virtual_address = triplet.target_address,
            .segment_length = static_cast<dat2::DAT_SEG_LENGTH>(std::min(length, max_length)),
            .rmr_context = triplet.rmr_context};
}

/// Posts segments, the third argument of the call, converted to 2.0.
template <dat::CallName name, class... To>
[[gnu::noinline]] DAT_RETURN post_any(dat2::DAT_RETURN (*post)(DAT_HANDLE, DAT_COUNT, dat2::DAT_LMR_TRIPLET*, To...),
                                      DAT_HANDLE handle, DAT_COUNT count, const DAT_LMR_TRIPLET* segments,
                                      To... arguments) noexcept {
    std::array<dat2::DAT_LMR_TRIPLET, 256> translated;  // larger than any provider's limit
    if (count < 0 || static_cast<std::size_t>(count) > translated.size())
        return bad_argument(name.text, handle, 2, explain("%d segments asked for", count));
    if (segments == nullptr)
        return count == 0 ? result_of(post(handle, count, nullptr, arguments...))
                          : bad_argument(name.text, handle, 3, "local_iov is null");
    if (!std::all_of(segments, segments + count, fits)) return bad_argument(name.text, handle, 3, too_long);
    std::transform(segments, segments + count, translated.begin(),
                   [](const DAT_LMR_TRIPLET& segment) { return triplet_in_2(segment); });
    return result_of(post(handle, count, translated.data(), arguments...));
}

/// As post_any(), in short for one segment.
template <dat::CallName name, class... To>
[[gnu::always_inline]] inline DAT_RETURN post_segments(dat2::DAT_RETURN (*post)(DAT_HANDLE, DAT_COUNT,
                                                                                dat2::DAT_LMR_TRIPLET*, To...),
                                                       DAT_HANDLE handle, DAT_COUNT count,
                                                       const DAT_LMR_TRIPLET* segments, auto... arguments) noexcept {
    if (count != 1 || segments == nullptr || !fits(*segments)) [[unlikely]]
        return post_any<name, To...>(post, handle, count, segments, same<To>(arguments)...);
    dat2::DAT_LMR_TRIPLET translated = triplet_in_2(*segments);
    return result_of(post(handle, count, &translated, same<To>(arguments)...));
}

/// The same for an RDMA read or write.
template <dat::CallName name>
[[gnu::always_inline]] inline DAT_RETURN post_segments(decltype(dat2::dat2_ep_post_rdma_write)* post, DAT_EP_HANDLE ep,
                                                       DAT_COUNT count, const DAT_LMR_TRIPLET* segments,
                                                       DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote_buffer,
                                                       DAT_COMPLETION_FLAGS flags) noexcept {
    if (remote_buffer == nullptr) return bad_argument(name.text, ep, 5, "remote_buffer is null");
    const auto remote = triplet_in_2(*remote_buffer);
    return post_segments<name>(post, ep, count, segments, cookie, &remote, flags);
}

}  // namespace viaduct::dat1
