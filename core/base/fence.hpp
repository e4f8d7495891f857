// SPDX-License-Identifier: BSD-3-Clause
// Fences of which one side pays for both.
#pragma once

#include <atomic>

namespace viaduct {

/// "I write A, then read B; you write B, then read A" needs a full fence on both sides. Where one side is hot and the
/// other rare, membarrier(2) lets the rare side pay for both (docs/adr/0004-asymmetric-fences.md).
class Fence {
public:
    /// Registers the process with the kernel, once. False: this process must use real fences on its hot side.
    static bool available() noexcept;

    /// For the rare side: a full fence here, and in every thread of every registered process.
    static void heavy() noexcept;

    /// The same within this process. False: it cannot be had.
    static bool heavy_in_process() noexcept;

    /// For the hot side. `asymmetric`: the other side's heavy() reaches this process.
    static void light(bool asymmetric) noexcept {
        if (asymmetric)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        else
            std::atomic_thread_fence(std::memory_order_seq_cst);
    }
};

}  // namespace viaduct
