// SPDX-License-Identifier: BSD-3-Clause
// The copy that is a call. Each library that makes it has one, whose instructions are in its table of faults.
#include "core/base/guarded_memory.hpp"

namespace viaduct {

#ifdef VIADUCT_GUARDED_COPIES
/// A call of memcpy(3), which pushes nothing on this processor and returns the target. If it faults, the handler
/// returns from it to the continuation, which returns null.
[[gnu::naked]] std::byte* copy_long(std::byte*, const std::byte*, std::uint64_t) noexcept {
    asm("subq $8, %rsp\n.cfi_adjust_cfa_offset 8\n"
        "call memcpy@PLT\n"
        "1: addq $8, %rsp\n.cfi_adjust_cfa_offset -8\n"
        "ret\n"
        "2: .cfi_adjust_cfa_offset 8\n"
        "xorl %eax, %eax\n"
        "addq $8, %rsp\n.cfi_adjust_cfa_offset -8\n"
        "ret\n" VIADUCT_MAY_FAULT("1b", "2b"));
}
#else
std::byte* copy_long(std::byte* target, const std::byte* source, std::uint64_t length) noexcept {
    return survives([&] { std::memcpy(target, source, length); }) ? target : nullptr;
}
#endif

}  // namespace viaduct
