// SPDX-License-Identifier: BSD-3-Clause
// The library that vi-run --check preloads: tells libviaduct which memory the program frees or unmaps.
#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

extern "C" {
/// Set by libviaduct, if the program loads it.
[[gnu::visibility("default")]] std::atomic<void (*)(const void*, std::size_t, const char*) noexcept> viaduct_on_release{
    nullptr};
}

namespace {

void tell(const void* memory, std::size_t length, const char* how) noexcept {
    if (auto* const told = viaduct_on_release.load(std::memory_order_acquire)) told(memory, length, how);
}

template <class Function>
Function* next(std::atomic<Function*>& known, const char* name) noexcept {
    Function* function = known.load(std::memory_order_relaxed);
    if (function != nullptr) return function;
    function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    known.store(function, std::memory_order_relaxed);
    return function;
}

std::atomic<void (*)(void*)> next_free{nullptr};
std::atomic<void* (*)(void*, std::size_t)> next_realloc{nullptr};

}  // namespace

extern "C" [[gnu::visibility("default")]] void free(void* memory) {
    if (memory != nullptr) tell(memory, malloc_usable_size(memory), "freed");
    next(next_free, "free")(memory);
}

extern "C" [[gnu::visibility("default")]] void* realloc(void* memory, std::size_t length) {
    const std::size_t before = memory == nullptr ? 0 : malloc_usable_size(memory);
    void* const moved = next(next_realloc, "realloc")(memory, length);
    if (before != 0 && moved != nullptr && moved != memory) tell(memory, before, "freed");
    return moved;
}

extern "C" [[gnu::visibility("default")]] int munmap(void* memory, std::size_t length) {
    tell(memory, length, "unmapped");
    return static_cast<int>(syscall(SYS_munmap, memory, length));
}
