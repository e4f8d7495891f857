// SPDX-License-Identifier: BSD-3-Clause
// The adapters that exist without a line in dat.conf.
#include <algorithm>
#include <new>

#include "api/udat/registry/conf.hpp"
#include "core/provider.hpp"

namespace viaduct::dat {
namespace {

constexpr std::string_view prefix = "viaduct-";
constexpr std::string_view loopback = "viaduct-lo";

/// Equivalent to the line: viaduct-NAME u2.0 threadsafe default libdaplviaduct.so.2 viaduct.2.0 "NAME 0" ""
Entry entry_of(std::string_view ia_name) {
    Entry entry;
    entry.offer = {std::string(ia_name), DAT_VERSION_MAJOR, DAT_VERSION_MINOR, true};
    entry.library = "libdaplviaduct.so.2";
    entry.ia_params = std::string(ia_name.substr(prefix.size())) + " 0";
    return entry;
}

/// Devices of one network interface have the same name, which stands for the first of them.
void add_adapter(const std::string& device, std::vector<Entry>& entries) {
    if (!device.starts_with(prefix) || device == loopback) return;
    const auto has_name = [&](const Entry& entry) { return entry.offer.ia_name == device; };
    if (std::ranges::none_of(entries, has_name)) entries.push_back(entry_of(device));
}

}  // namespace

std::vector<Entry> built_in_entries(const std::string& ia_name) {
    if (!ia_name.starts_with(prefix) || ia_name.size() >= DAT_NAME_MAX_LENGTH) return {};
    if (ia_name == loopback) return {entry_of(ia_name)};
    const Status found = find_provider_of(ia_name).status();
    if (found.code() == Code::NoResources) throw std::bad_alloc();
    return found.ok() ? std::vector{entry_of(ia_name)} : std::vector<Entry>();
}

std::vector<Entry> built_in_entries() {
    const auto by_default = find_provider_of(loopback);
    std::vector<Entry> entries{entry_of(loopback)};
    for (backend::Provider* provider : providers()) {
        if (by_default.ok() && provider == by_default.value()) continue;  // its first device stands for the others
        const auto devices = provider->devices();
        if (devices.status().code() == Code::NoResources) throw std::bad_alloc();
        if (!devices.ok()) continue;
        for (const backend::DeviceSummary& device : devices.value()) add_adapter(device.name, entries);
    }
    return entries;
}

}  // namespace viaduct::dat
