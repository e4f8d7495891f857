// SPDX-License-Identifier: BSD-3-Clause
// The segments of a request in the core's format.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "api/udat/provider/api.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/work.hpp"

namespace viaduct::dat {

/// The maximum number of segments of a request, even if the device supports more.
inline constexpr DAT_COUNT max_segments = 64;

inline std::uint32_t most_segments(const DeviceAttributes& device) noexcept {
    return std::min<std::uint32_t>(device.max_sges, max_segments);
}

/// Checks the segments of a call, its second and third argument, against a limit of that name.
inline DAT_RETURN check_segments(DAT_COUNT count, const DAT_LMR_TRIPLET* segments, DAT_COUNT limit,
                                 const char* name) noexcept {
    if (count < 0 || count > limit) [[unlikely]]
        return invalid_parameter(DAT_INVALID_ARG2, explain("%d segments asked for, %s is %d", count, name, limit));
    if (count > 0 && segments == nullptr) [[unlikely]]
        return invalid_parameter(DAT_INVALID_ARG3, "local_iov is null");
    return success;
}

/// Reads each field separately, because the consumer has just written them (docs/adr/0014-fields-apart.md).
inline Sge to_piece(const volatile DAT_LMR_TRIPLET& segment) noexcept {
    return {.address = reinterpret_cast<void*>(segment.virtual_address),
            .key = segment.lmr_context,
            .length = segment.segment_length};
}

/// At most `max_segments` segments. Segments of length zero are left out; their other fields have no meaning.
class Segments {
public:
    Segments(const DAT_LMR_TRIPLET* iov, DAT_COUNT count) noexcept {
        std::size_t kept = 0;
        std::uint64_t bytes = 0;
        for (DAT_COUNT i = 0; i < count; ++i) {
            if (iov[i].segment_length == 0) continue;
            new (pieces() + kept++) Sge(to_piece(iov[i]));
            bytes += iov[i].segment_length;
        }
        count_ = kept;
        bytes_ = bytes;
    }
    Segments(const Segments&) = delete;
    Segments& operator=(const Segments&) = delete;

    std::span<const Sge> span() const noexcept { return {pieces(), count_}; }
    std::uint64_t bytes() const noexcept { return bytes_; }

    /// Truncates the list to the first `bytes` bytes.
    void cut(std::uint64_t bytes) noexcept {
        std::size_t kept = 0;
        for (std::uint64_t left = bytes; left != 0 && kept < count_; ++kept) {
            Sge& piece = pieces()[kept];
            piece.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece.length, left));
            left -= piece.length;
        }
        count_ = kept;
        bytes_ = std::min(bytes_, bytes);
    }

private:
    Sge* pieces() noexcept { return reinterpret_cast<Sge*>(memory_.data()); }
    const Sge* pieces() const noexcept { return reinterpret_cast<const Sge*>(memory_.data()); }

    alignas(Sge) std::array<std::byte, max_segments * sizeof(Sge)> memory_;  // not initialized, to save time for each
                                                                             // request
    std::size_t count_;
    std::uint64_t bytes_;
};

}  // namespace viaduct::dat
