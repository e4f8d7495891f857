// SPDX-License-Identifier: BSD-3-Clause
#include "backends/check/report.hpp"

#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

namespace viaduct::check {
namespace {

constexpr std::size_t most_frames = 16;

struct Frame {
    std::uintptr_t place = 0;    // a return address
    std::uintptr_t address = 0;  // where it is on the stack, if known
};

struct Trace {
    std::array<Frame, most_frames> frames;
    std::size_t count = 0;
};

/// The way from one call of find_place() to a place in the program. The layout of a frame depends only on the place in
/// its function, so that the same return addresses at the same distances mean the same way.
struct Way {
    std::array<std::uintptr_t, most_frames> places{};
    std::array<std::uintptr_t, most_frames> distances{};  // from the frame of find_place()
    std::size_t count = 0;                                // the last one is that of the program
};

struct KnownWays {
    std::array<Way, 16> known{};
    std::size_t next = 0;
};

const char* base_name(const char* path) noexcept {
    const char* const slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

/// Those of Viaduct, and those that only pass on what the program does.
bool is_library(std::uintptr_t place) noexcept {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(place), &info) == 0 || info.dli_fname == nullptr) return false;
    const std::string_view name = base_name(info.dli_fname);
    constexpr std::string_view own[] = {"libviaduct",      "libvipl.", "libdat.", "libdat2.",
                                        "libdaplviaduct.", "librpma.", "libc.",   "libstdc++."};
    return std::ranges::any_of(own, [name](std::string_view prefix) { return name.starts_with(prefix); });
}

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) noexcept {
    auto& trace = *static_cast<Trace*>(argument);
    const std::uintptr_t place = _Unwind_GetIP(context);
    Frame frame{.place = place};
#ifdef __x86_64__
    // The stack pointer of the caller; the return address is below.
    const std::uintptr_t address = _Unwind_GetCFA(context) - sizeof place;
    if (*reinterpret_cast<const std::uintptr_t*>(address) == place) frame.address = address;
#endif
    if (place != 0) trace.frames[trace.count++] = frame;
    return place == 0 || trace.count == most_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

bool leads_here(const Way& way, std::uintptr_t base) noexcept {
    for (std::size_t i = 0; i < way.count; ++i)
        if (*reinterpret_cast<const std::uintptr_t*>(base + way.distances[i]) != way.places[i]) return false;
    return way.count != 0;
}

}  // namespace

const void* find_place() noexcept {
    thread_local std::unique_ptr<KnownWays> ways;  // not the ways themselves: such memory is scarce
    if (ways == nullptr) ways.reset(new (std::nothrow) KnownWays);
    if (ways == nullptr) return nullptr;
    const auto base = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    const auto returns_to = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
    for (const Way& way : ways->known)
        if (way.places[0] == returns_to && leads_here(way, base))
            return reinterpret_cast<const void*>(way.places[way.count - 1]);
    Trace trace;
    _Unwind_Backtrace(add_frame, &trace);
    Way way;
    bool is_known = true;
    for (std::size_t i = 1; i < trace.count; ++i) {  // the first one is this function
        const Frame& frame = trace.frames[i];
        way.places[way.count] = frame.place;
        way.distances[way.count++] = frame.address - base;
        is_known = is_known && frame.address != 0;
        if (is_library(frame.place - 1)) continue;
        if (is_known && way.count > 1) ways->known[ways->next++ % ways->known.size()] = way;
        return reinterpret_cast<const void*>(frame.place);
    }
    return nullptr;
}

std::array<char, 160> describe_place(const void* place) noexcept {
    std::array<char, 160> text{};
    Dl_info info{};
    const auto address = reinterpret_cast<std::uintptr_t>(place) - 1;  // in the call, not behind it
    if (place == nullptr) {
        std::snprintf(text.data(), text.size(), "a thread of the library");
    } else if (dladdr(reinterpret_cast<const void*>(address), &info) == 0) {
        std::snprintf(text.data(), text.size(), "%p", place);
    } else {
        const bool named = info.dli_sname != nullptr;
        std::snprintf(text.data(), text.size(), "%s+0x%zx%s%s%s", base_name(info.dli_fname),
                      static_cast<std::size_t>(address - reinterpret_cast<std::uintptr_t>(info.dli_fbase)),
                      named ? " (" : "", named ? info.dli_sname : "", named ? ")" : "");
    }
    return text;
}

}  // namespace viaduct::check
