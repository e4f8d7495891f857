// SPDX-License-Identifier: BSD-3-Clause
// The SGEs of a request in the hardware's format.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "backends/verbs/rdma_core.hpp"
#include "backends/verbs/regions.hpp"
#include "viaduct/work.hpp"

namespace viaduct::verbs {

/// The limit of this backend, even if a device supports more.
inline constexpr std::uint32_t max_pieces = 64;

class Pieces {
public:
    /// The number of SGEs must not exceed the limit of the device, which is at most max_pieces.
    Pieces(std::span<const Sge> sges, bool to_write, const RegionTable& regions) noexcept
        : count_(static_cast<int>(sges.size())) {
        for (std::size_t i = 0; i < sges.size(); ++i)
            pieces_[i] = {.addr = reinterpret_cast<std::uintptr_t>(sges[i].address),
                          .length = sges[i].length,
                          .lkey = sges[i].key};
        if (!regions.plain()) [[unlikely]]
            look_up_keys(to_write, regions);
    }
    explicit Pieces(const ibv_sge& piece) noexcept : count_(1) { pieces_[0] = piece; }
    Pieces() noexcept {}  // NOLINT(modernize-use-equals-default): that would clear them all

    /// For a receive that must fail unless the message is empty.
    static Pieces unusable() noexcept { return Pieces(ibv_sge{.addr = 0, .length = 1, .lkey = 0}); }

    ibv_sge* data() noexcept { return pieces_.data(); }
    int count() const noexcept { return count_; }

private:
    [[gnu::noinline]] void look_up_keys(bool to_write, const RegionTable& regions) noexcept {
        for (int i = 0; i < count_; ++i) {
            ibv_sge& piece = pieces_[static_cast<std::size_t>(i)];
            piece.lkey = regions.local_key(piece.lkey, to_write);
        }
    }

    std::array<ibv_sge, max_pieces> pieces_;  // only the first count_ are valid
    int count_ = 0;
};

}  // namespace viaduct::verbs
