// SPDX-License-Identifier: BSD-3-Clause
// The pieces of a request, as the core has them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "api/udat/provider/api.hpp"
#include "core/attributes.hpp"
#include "core/work.hpp"

namespace viaduct::dat {

/// How many pieces a request may have, whatever the device could do.
inline constexpr DAT_COUNT max_segments = 64;

inline std::uint32_t most_segments(const DeviceAttributes& device) noexcept {
    return std::min<std::uint32_t>(device.max_sges, max_segments);
}

/// At most `max_segments` of them. Of a segment without length the other fields mean nothing: it is left out.
class Segments {
public:
    Segments(const DAT_LMR_TRIPLET* iov, DAT_COUNT count) noexcept {
        std::size_t kept = 0;
        std::uint64_t bytes = 0;
        for (DAT_COUNT i = 0; i < count; ++i) {
            if (iov[i].segment_length == 0) continue;
            new (pieces() + kept++) Sge{.address = reinterpret_cast<void*>(iov[i].virtual_address),
                                        .key = iov[i].lmr_context,
                                        .length = iov[i].segment_length};
            bytes += iov[i].segment_length;
        }
        count_ = kept;
        bytes_ = bytes;
    }
    Segments(const Segments&) = delete;
    Segments& operator=(const Segments&) = delete;

    std::span<const Sge> span() const noexcept { return {pieces(), count_}; }
    std::uint64_t bytes() const noexcept { return bytes_; }

    /// Leaves out what is beyond the first `bytes`.
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

    alignas(Sge) std::array<std::byte, max_segments * sizeof(Sge)> memory_;  // not cleared for each request
    std::size_t count_;
    std::uint64_t bytes_;
};

}  // namespace viaduct::dat
