// SPDX-License-Identifier: BSD-3-Clause
// Libraries that are loaded when they are first needed, so that programs that do not need them start without them, and
// on systems that lack them.
#pragma once

#include <dlfcn.h>

namespace viaduct::support {

/// Stays loaded for as long as the process lives, because other threads may be in its functions.
class SharedLibrary {
public:
    explicit SharedLibrary(const char* name) noexcept : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
        if (handle_ == nullptr) error_ = dlerror();
    }

    /// Sets a pointer to a function of the library, or to null if there is none.
    template <class Function>
    void find(Function*& function, const char* name) noexcept {
        if (handle_ == nullptr) return;
        function = reinterpret_cast<Function*>(dlsym(handle_, name));
        if (function == nullptr && error_ == nullptr) error_ = dlerror();
    }

    /// Null if the library has been loaded and all functions were found, or else the reason, in words that are valid
    /// until this thread next loads a library or looks for a function.
    const char* error() const noexcept { return error_; }

private:
    void* handle_;
    const char* error_ = nullptr;
};

}  // namespace viaduct::support
