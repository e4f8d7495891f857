// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/rdma_core.hpp"

#include "backends/support/shared_library.hpp"
#include "core/log.hpp"

namespace viaduct::verbs {

#define VIADUCT_POINTER(NAME) constinit decltype(&::NAME) NAME = nullptr;  // NOLINT(bugprone-macro-parentheses)
VIADUCT_LIBIBVERBS(VIADUCT_POINTER)
VIADUCT_LIBRDMACM(VIADUCT_POINTER)
#undef VIADUCT_POINTER

bool load_rdma_core() noexcept {
    static const bool loaded = [] {
#define VIADUCT_FIND(NAME) library.find(NAME, #NAME);
        support::SharedLibrary library("libibverbs.so.1");
        VIADUCT_LIBIBVERBS(VIADUCT_FIND)
        const char* error = library.error();
        if (error == nullptr) {
            library = support::SharedLibrary("librdmacm.so.1");
            VIADUCT_LIBRDMACM(VIADUCT_FIND)
            error = library.error();
        }
#undef VIADUCT_FIND
        if (error != nullptr) log(LogLevel::Error, "verbs: the RDMA devices cannot be used: %s", error);
        return error == nullptr;
    }();
    return loaded;
}

}  // namespace viaduct::verbs
