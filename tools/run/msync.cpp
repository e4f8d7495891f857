// SPDX-License-Identifier: BSD-3-Clause
// The library that vi-run --power-cut preloads: tells libviaduct what the program itself makes persistent.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

extern "C" [[gnu::visibility("default")]] int msync(void* address, std::size_t length, int flags) {
    const auto result = static_cast<int>(syscall(SYS_msync, address, length, flags));
    if (result != 0 || (flags & MS_SYNC) == 0) return result;
    // Programs that have not loaded libviaduct have no regions. It never goes away again.
    void* const library = dlopen(VIADUCT_CORE_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    using Synced = void(const void*, std::size_t);
    if (library != nullptr)
        if (auto* const synced = reinterpret_cast<Synced*>(dlsym(library, "viaduct_synced"))) synced(address, length);
    return result;
}
