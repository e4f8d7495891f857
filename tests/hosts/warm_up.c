/* SPDX-License-Identifier: BSD-3-Clause
 * Preloaded into programs that run each of their tests in a process of its own: initializes libfabric, which takes
 * 0.3 s, before they fork.
 */
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Getinfo)(uint32_t version, const char* node, const char* service, uint64_t flags,
                       const struct fi_info* hints, struct fi_info** found);

__attribute__((constructor)) static void warm_up(void) {
    struct fi_info* found = NULL;
    Getinfo getinfo;
    unsetenv("LD_PRELOAD"); /* not for programs that this one starts */
    /* The settings of backends/ofi/library.cpp, which libfabric reads now. */
    setenv("IPATH_NO_BACKTRACE", "1", 0);
    setenv("HFI_NO_BACKTRACE", "1", 0);
    setenv("FI_OFI_RXM_CM_PROGRESS_INTERVAL", "100", 0);
    setenv("FI_OFI_RXM_MSG_RX_SIZE", "512", 0);
    void* library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    void* function = library == NULL ? NULL : dlsym(library, "fi_getinfo");
    if (function == NULL) return;
    memcpy(&getinfo, &function, sizeof getinfo);
    (void)getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &found); /* the result lives as long as the process */
}
