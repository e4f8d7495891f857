// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/sync.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace viaduct::loopback {
namespace {

long membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

bool Fence::available() noexcept {
    static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
    return registered;
}

void Fence::heavy() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (available()) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace viaduct::loopback
