// SPDX-License-Identifier: BSD-3-Clause
// The copies that are calls. Each library that makes them has its own, whose instructions are in its table of faults.
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

bool copy_streaming(std::byte* target, const std::byte* source, std::uint64_t length) noexcept {
    constexpr std::uint64_t unit = streaming_alignment;
    for (; length >= unit; target += unit, source += unit, length -= unit)
        asm volatile goto("1: movups (%1), %%xmm0\n2: movntps %%xmm0, (%0)\n" VIADUCT_MAY_FAULT("1b", "%l[faulted]")
                              VIADUCT_MAY_FAULT("2b", "%l[faulted]")
                          :
                          : "r"(target), "r"(source)
                          : "xmm0", "memory"
                          : faulted);
    asm volatile("sfence" ::: "memory");  // before what the caller stores next
    return copy_short(target, source, length);
faulted:
    return false;
}
#else
std::byte* copy_long(std::byte* target, const std::byte* source, std::uint64_t length) noexcept {
    return survives([&] { std::memcpy(target, source, length); }) ? target : nullptr;
}
#endif

}  // namespace viaduct
