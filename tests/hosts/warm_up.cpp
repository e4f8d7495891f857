// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into programs that run each of their tests in a process of its own: initializes libfabric, which takes
// 0.3 s, before they fork.
#include <dlfcn.h>
#include <rdma/fabric.h>

#include <cstdlib>

#include "backends/ofi/environment.hpp"

__attribute__((constructor)) static void warm_up() {
    unsetenv("LD_PRELOAD");               // not for programs that this one starts
    viaduct::ofi::prepare_environment();  // libfabric reads it now
    void* library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    void* getinfo = library == nullptr ? nullptr : dlsym(library, "fi_getinfo");
    if (getinfo == nullptr) return;
    fi_info* found = nullptr;  // lives as long as the process
    reinterpret_cast<decltype(&fi_getinfo)>(getinfo)(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &found);
}
