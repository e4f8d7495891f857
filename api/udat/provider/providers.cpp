// SPDX-License-Identifier: BSD-3-Clause
// The functions that a registry calls to load the provider.
#include "api/udat/provider/providers.hpp"

#include <map>
#include <memory>

#include "api/udat/provider/table.hpp"
#include "core/base/fork.hpp"
#include "viaduct/detail/export.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {
namespace {

struct Entries {
    ProcessMutex lock;
    std::map<std::string, std::unique_ptr<NamedProvider>> by_name VIADUCT_GUARDED_BY(lock);
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

NamedProvider& make_entry(const DAT_PROVIDER_INFO& info, const char* parameters) {
    const LockGuard lock(entries().lock);
    auto& entry = entries().by_name[info.ia_name];
    if (entry == nullptr) {
        entry = std::make_unique<NamedProvider>(NamedProvider{.ia_name = info.ia_name});
        entry->tables = make_tables(entry->ia_name.c_str());
    }
    entry->thread_safe = info.is_thread_safe == DAT_TRUE;
    entry->device = device_of(parameters);
    return *entry;
}

}  // namespace

const NamedProvider* find_named_provider(const std::string& ia_name) {
    const LockGuard lock(entries().lock);
    const auto found = entries().by_name.find(ia_name);
    return found == entries().by_name.end() ? nullptr : found->second.get();
}

}  // namespace viaduct::dat

using namespace viaduct::dat;

extern "C" {

VIADUCT_EXPORT void dat_provider_init(const DAT_PROVIDER_INFO* info, const char* parameters) try {
    NamedProvider& entry = make_entry(*info, parameters);
    (void)dat_registry_add_provider(&entry.tables.checking, info);
} catch (const std::exception&) {
    // The registry will not find the provider and logs that.
}

VIADUCT_EXPORT void dat_provider_fini(const DAT_PROVIDER_INFO* info) try {
    if (const NamedProvider* entry = find_named_provider(info->ia_name))
        (void)dat_registry_remove_provider(&entry->tables.checking, info);
} catch (const std::exception&) {
    // If the name cannot be looked up, nothing was registered.
}

VIADUCT_EXPORT DAT_RETURN dapl_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments) {
    return calls::extended_op(handle, operation, arguments);
}

}  // extern "C"
