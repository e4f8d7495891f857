// SPDX-License-Identifier: BSD-3-Clause
// Access to the memory of requests, which the program may have unmapped or made read-only since it registered it. RDMA
// devices pin such memory; here an access to it fails instead of ending the process
// (docs/adr/0029-memory-that-goes-away.md).
#pragma once

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "viaduct/detail/export.hpp"

namespace viaduct {

/// False where faults end the process after all: the thread sanitizer does not let a handler continue elsewhere.
#ifdef __SANITIZE_THREAD__
inline constexpr bool catches_faults = false;
#else
inline constexpr bool catches_faults = true;
#endif

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VIADUCT_GUARDED_COPIES 1
#endif

/// An instruction that may fault, and where to continue then, each relative to its field.
struct Guarded {
    std::int32_t instruction;
    std::int32_t continuation;
};

/// The instructions of one library.
struct FaultTable {
    const Guarded* begin = nullptr;
    const Guarded* end = nullptr;
    const FaultTable* next = nullptr;  ///< set by catch_faults()
    bool known = false;                ///< likewise
};

#ifdef VIADUCT_GUARDED_COPIES
// The linker defines these names for a section of this name.
extern "C" {
[[gnu::visibility("hidden")]] extern const Guarded __start_viaduct_faults[];  // NOLINT(bugprone-reserved-identifier)
[[gnu::visibility("hidden")]] extern const Guarded __stop_viaduct_faults[];   // NOLINT(bugprone-reserved-identifier)
}
[[gnu::visibility("hidden")]] inline constinit FaultTable own_faults{__start_viaduct_faults, __stop_viaduct_faults};
#else
[[gnu::visibility("hidden")]] inline constinit FaultTable own_faults;
#endif

/// Makes the functions below, in the library that calls this, return false where they would end the process. Installs a
/// handler for SIGSEGV and SIGBUS; a fault elsewhere gets the handler that the program had installed before. If the
/// program replaces the handler later, all faults are the program's until the next call. Thread-safe.
VIADUCT_EXPORT void catch_faults(FaultTable& table = own_faults) noexcept;

/// What the handler asks first if SIGSEGV is the fault of a thread, unless it is null: true if the instruction can be
/// repeated.
extern std::atomic<bool (*)(const siginfo_t& fault, void* context) noexcept> first_look;

/// Where the handler continues if this thread faults. Of all libraries.
VIADUCT_EXPORT extern thread_local constinit std::jmp_buf* recovery [[gnu::tls_model("initial-exec")]];

/// Runs `access`, which does nothing but access memory, and can end at any instruction. Returns false if it faulted.
[[gnu::noinline]] bool survives(const auto& access) noexcept {
    std::jmp_buf place;
    if (_setjmp(place) != 0) return false;  // without the signal mask: the handler blocks no signals
    recovery = &place;
    asm volatile("" ::: "memory");
    access();
    asm volatile("" ::: "memory");
    recovery = nullptr;
    return true;
}

/// Copies any length but 0. Returns null if memory is not there or cannot be written.
#ifndef VIADUCT_GUARDED_COPIES
VIADUCT_EXPORT
#endif
std::byte* copy_long(std::byte* target, const std::byte* source, std::uint64_t length) noexcept;

#ifdef VIADUCT_GUARDED_COPIES

/// An entry of the table, in the section group of the function that it belongs to.
#define VIADUCT_MAY_FAULT(INSTRUCTION, CONTINUATION)                                                 \
    ".pushsection viaduct_faults, \"a?\"\n.balign 4\n.long " INSTRUCTION " - .\n.long " CONTINUATION \
    " - .\n"                                                                                         \
    ".popsection\n"

/// Copies 1, 2, 4, 8 or 16 bytes with one load and one store.
template <std::size_t bytes>
bool copy_unit(std::byte* target, const std::byte* source) noexcept;

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are a name and parts of strings
#define VIADUCT_COPY_UNIT(BYTES, MOVE, REGISTER)                                                                 \
    template <>                                                                                                  \
    [[gnu::always_inline]] inline bool copy_unit<BYTES>(std::byte * target, const std::byte* source) noexcept {  \
        struct [[gnu::may_alias]] Unit {                                                                         \
            std::byte bytes[BYTES];                                                                              \
        };                                                                                                       \
        asm volatile goto("1: " MOVE " %1, %%" REGISTER "\n2: " MOVE " %%" REGISTER                              \
                          ", %0\n" VIADUCT_MAY_FAULT("1b", "%l[faulted]") VIADUCT_MAY_FAULT("2b", "%l[faulted]") \
                          : "=m"(*reinterpret_cast<Unit*>(target))                                               \
                          : "m"(*reinterpret_cast<const Unit*>(source))                                          \
                          : REGISTER                                                                             \
                          : faulted);                                                                            \
        return true;                                                                                             \
    faulted:                                                                                                     \
        return false;                                                                                            \
    }
VIADUCT_COPY_UNIT(1, "movb", "al")
VIADUCT_COPY_UNIT(2, "movw", "ax")
VIADUCT_COPY_UNIT(4, "movl", "eax")
VIADUCT_COPY_UNIT(8, "movq", "rax")
VIADUCT_COPY_UNIT(16, "movups", "xmm0")
#undef VIADUCT_COPY_UNIT

/// Stores a value. Returns false if memory is not there or cannot be written.
[[gnu::always_inline]] inline bool store_guarded(std::uint32_t& target, std::uint32_t value) noexcept {
    asm volatile goto("1: movl %1, %0\n" VIADUCT_MAY_FAULT("1b", "%l[faulted]")
                      : "=m"(target)
                      : "r"(value)
                      :
                      : faulted);
    return true;
faulted:
    return false;
}
// NOLINTEND(bugprone-macro-parentheses)

#else
template <std::size_t bytes>
bool copy_unit(std::byte* target, const std::byte* source) noexcept {
    return copy_long(target, source, bytes) != nullptr;
}

inline bool store_guarded(std::uint32_t& target, std::uint32_t value) noexcept {
    return copy_unit<sizeof value>(reinterpret_cast<std::byte*>(&target), reinterpret_cast<const std::byte*>(&value));
}
#endif

/// Copies `length` bytes, at least the unit and at most two of them. Writes the last byte once.
template <std::size_t unit>
[[gnu::always_inline]] inline bool copy_ends(std::byte* target, const std::byte* source,
                                             std::uint64_t length) noexcept {
    return copy_unit<unit>(target, source) &&
           (length == unit || copy_unit<unit>(target + length - unit, source + length - unit));
}

/// Copies up to so many bytes, without a call.
inline constexpr std::uint32_t most_copied_short = 64;
[[gnu::always_inline]] inline bool copy_short(std::byte* target, const std::byte* source,
                                              std::uint64_t length) noexcept {
    if (length > 16) {
        if (length <= 32) [[unlikely]]
            return copy_ends<16>(target, source, length);
        return copy_ends<16>(target, source, 32) && copy_ends<16>(target + length - 32, source + length - 32, 32);
    }
    if (length >= 8) return copy_ends<8>(target, source, length);
    if (length >= 4) return copy_ends<4>(target, source, length);
    if (length >= 2) return copy_ends<2>(target, source, length);
    return length == 0 || copy_unit<1>(target, source);
}

/// Returns false if memory is not there or cannot be written; a part may have been copied. Without bytes, the addresses
/// may be any.
[[gnu::always_inline]] inline bool copy_guarded(std::byte* target, const std::byte* source,
                                                std::uint64_t length) noexcept {
    return length > most_copied_short ? copy_long(target, source, length) != nullptr
                                      : copy_short(target, source, length);
}

/// The same with non-temporal stores, where there are any: what is copied is in memory then. The target has to be
/// aligned.
inline constexpr std::size_t streaming_alignment = 16;
#ifdef VIADUCT_GUARDED_COPIES
bool copy_streaming(std::byte* target, const std::byte* source, std::uint64_t length) noexcept;
#else
inline bool copy_streaming(std::byte* target, const std::byte* source, std::uint64_t length) noexcept {
    return copy_guarded(target, source, length);
}
#endif

}  // namespace viaduct
