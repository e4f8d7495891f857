// SPDX-License-Identifier: BSD-3-Clause
// Asymmetric memory fences.
#pragma once

#include <atomic>

namespace viaduct {

/// If one thread writes A and reads B, and another one writes B and reads A, both need a full fence between the two. If
/// one of them runs often and the other one rarely, membarrier(2) lets the rare one execute the fence for both
/// (docs/adr/0004-asymmetric-fences.md).
class Fence {
public:
    /// Registers the process with the kernel, once. False: the frequent side must use real fences.
    static bool available() noexcept;

    /// For the rare side: a full fence in this thread and in every thread of every registered process.
    static void heavy() noexcept;

    /// The same for the threads of this process. False: not supported by the kernel.
    static bool heavy_in_process() noexcept;

    /// For the frequent side. `asymmetric`: the heavy() of the other side reaches this process.
    [[gnu::always_inline]] static void light(bool asymmetric) noexcept {
        if (asymmetric)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        else
            std::atomic_thread_fence(std::memory_order_seq_cst);
    }
};

}  // namespace viaduct
