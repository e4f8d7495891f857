// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/registry/library.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "core/log.hpp"

namespace viaduct::dat {
namespace {

template <class Function>
Function function_of(void* library, const char* name) noexcept {
    return reinterpret_cast<Function>(dlsym(library, name));
}

/// A library without a directory in its name is first searched in the directory of this library, whatever the program's
/// search path.
void* open_library(const std::string& name) {
    Dl_info own{};
    if (name.find('/') == std::string::npos && dladdr(reinterpret_cast<void*>(&open_library), &own) != 0) {
        const auto beside = std::filesystem::path(own.dli_fname).parent_path() / name;
        if (std::error_code error; std::filesystem::exists(beside, error)) return dlopen(beside.c_str(), RTLD_NOW);
    }
    return dlopen(name.c_str(), RTLD_NOW);
}

}  // namespace

std::unique_ptr<Library> Library::load(const Entry& entry) {
    void* const library = open_library(entry.library);
    if (library == nullptr) {
        log(LogLevel::Warning, "cannot load the provider of %s: %s", entry.offer.ia_name.c_str(), dlerror());
        return nullptr;
    }
    const auto init = function_of<DAT_PROVIDER_INIT_FUNC>(library, DAT_PROVIDER_INIT_FUNC_STR);
    if (init == nullptr) {
        log(LogLevel::Warning, "%s, the provider of %s, does not define " DAT_PROVIDER_INIT_FUNC_STR,
            entry.library.c_str(), entry.offer.ia_name.c_str());
        dlclose(library);
        return nullptr;
    }
    std::unique_ptr<Library> loaded(new Library(entry, library));
    log(LogLevel::Info, "loaded %s for %s", entry.library.c_str(), entry.offer.ia_name.c_str());
    init(&loaded->info_, loaded->entry_.ia_params.c_str());
    return loaded;
}

Library::Library(const Entry& entry, void* library) : entry_(entry), info_(info_of(entry.offer)), library_(library) {}

Library::~Library() {
    const auto fini = function_of<DAT_PROVIDER_FINI_FUNC>(library_, DAT_PROVIDER_FINI_FUNC_STR);
    if (fini != nullptr) fini(&info_);
    dlclose(library_);
    log(LogLevel::Info, "unloaded %s for %s", entry_.library.c_str(), entry_.offer.ia_name.c_str());
}

}  // namespace viaduct::dat
