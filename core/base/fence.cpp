// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace viaduct {
namespace {

long membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0); }

/// A command that the process has registered. The system may lack memory for a set of processors; the barrier for all
/// of them needs none, but takes milliseconds.
bool issue(int command) noexcept { return membarrier(command) == 0 || membarrier(MEMBARRIER_CMD_GLOBAL) == 0; }

}  // namespace

bool Fence::available() noexcept {
    static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
    return registered;
}

void Fence::heavy() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (available()) issue(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Fence::heavy_in_process() noexcept {
    static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    return registered && issue(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace viaduct
