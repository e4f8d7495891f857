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

/// Whether the process is registered for a kind of barrier; a child of fork(2) is, too. Registering takes milliseconds.
/// Threads that do it at the same time do not wait for each other, because a child would wait forever.
template <int command>
bool is_registered() noexcept {
    enum Answer { Unknown, No, Yes };
    static constinit std::atomic<Answer> known{Unknown};
    Answer answer = known.load(std::memory_order_acquire);
    if (answer == Unknown) known.store(answer = membarrier(command) == 0 ? Yes : No, std::memory_order_release);
    return answer == Yes;
}

}  // namespace

bool Fence::available() noexcept { return is_registered<MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED>(); }

void Fence::heavy() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (available()) issue(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Fence::heavy_in_process() noexcept {
    return is_registered<MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED>() && issue(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace viaduct
