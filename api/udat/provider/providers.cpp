// SPDX-License-Identifier: BSD-3-Clause
// The functions that a registry calls to load the provider.
#include "api/udat/provider/providers.hpp"

#include <map>
#include <memory>
#include <utility>

#include "core/base/fork.hpp"
#include "core/log.hpp"
#include "viaduct/detail/export.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {
namespace {

struct Entries {
    ProcessMutex lock;
    std::map<std::pair<std::string, bool>, std::unique_ptr<NamedProvider>> all VIADUCT_GUARDED_BY(lock);

    /// Null: there is none.
    NamedProvider* find(const std::string& ia_name, bool thread_safe) VIADUCT_REQUIRES(lock) {
        const auto found = all.find({ia_name, thread_safe});
        return found == all.end() ? nullptr : found->second.get();
    }
};

Entries& entries() {
    static auto& all = *new Entries;  // never destroyed: handles may be used while the process exits
    return all;
}

/// Returns the first word of the parameters of a dat.conf entry, which is the device.
std::string device_of(const char* parameters) {
    const std::string text = parameters == nullptr ? "" : parameters;
    const auto first = text.find_first_not_of(' ');
    if (first == std::string::npos) return {};
    return text.substr(first, text.find(' ', first) - first);
}

bool is_thread_safe(const DAT_PROVIDER_INFO& info) noexcept { return info.is_thread_safe != DAT_FALSE; }

/// Null: another line, whose provider is loaded, has the same name for another device.
const NamedProvider* load_entry(const DAT_PROVIDER_INFO& info, const char* parameters) {
    const bool thread_safe = is_thread_safe(info);
    const std::string device = device_of(parameters);
    const LockGuard lock(entries().lock);
    auto& entry = entries().all[{info.ia_name, thread_safe}];
    if (entry == nullptr) {
        entry = std::make_unique<NamedProvider>(NamedProvider{.ia_name = info.ia_name, .thread_safe = thread_safe});
        entry->tables = make_tables(entry->ia_name.c_str(), thread_safe);
    }
    ++entry->loaded;
    if (entry->loaded == 1) entry->device = device;
    if (entry->device == device) return entry.get();
    log(LogLevel::Warning,
        "dat.conf: %s %u.%u is not available as %s: a line for another minor version, which is in use, "
        "says %s",
        info.ia_name, info.dapl_version_major, info.dapl_version_minor, device.c_str(), entry->device.c_str());
    return nullptr;
}

NamedProvider* unload_entry(const DAT_PROVIDER_INFO& info) {
    const LockGuard lock(entries().lock);
    NamedProvider* const entry = entries().find(info.ia_name, is_thread_safe(info));
    if (entry != nullptr && entry->loaded != 0) --entry->loaded;
    return entry;
}

}  // namespace

const NamedProvider* find_named_provider(const std::string& ia_name, bool thread_safe) {
    const LockGuard lock(entries().lock);
    const NamedProvider* const found = entries().find(ia_name, thread_safe);
    return found == nullptr || found->loaded == 0 ? nullptr : found;
}

}  // namespace viaduct::dat

using namespace viaduct::dat;

extern "C" {

VIADUCT_EXPORT void dat_provider_init(const DAT_PROVIDER_INFO* info, const char* parameters) try {
    if (const NamedProvider* entry = load_entry(*info, parameters))
        (void)dat_registry_add_provider(&entry->tables.checking, info);
} catch (const std::exception&) {
    // The registry will not find the provider and logs that.
}

VIADUCT_EXPORT void dat_provider_fini(const DAT_PROVIDER_INFO* info) try {
    if (const NamedProvider* entry = unload_entry(*info))
        (void)dat_registry_remove_provider(&entry->tables.checking, info);
} catch (const std::exception&) {
    // If the name cannot be looked up, nothing was registered.
}

VIADUCT_EXPORT DAT_RETURN dapl_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments) {
    return calls::extended_op(handle, operation, arguments);
}

}  // extern "C"
