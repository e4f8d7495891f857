// SPDX-License-Identifier: BSD-3-Clause
// The adapters that exist without a line in dat.conf.
#include <new>

#include "api/udat/registry/conf.hpp"
#include "core/device.hpp"
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

class NoObserver final : public DeviceObserver {
    void on_async_event(const AsyncEvent&) noexcept override {}
};

}  // namespace

std::vector<Entry> built_in_entries(const std::string& ia_name) {
    if (!ia_name.starts_with(prefix) || ia_name.size() >= DAT_NAME_MAX_LENGTH) return {};
    if (ia_name == loopback) return {entry_of(ia_name)};
    const Status found = find_provider_of(ia_name).status();
    if (found.code() == Code::NoResources) throw std::bad_alloc();
    return found.ok() ? std::vector{entry_of(ia_name)} : std::vector<Entry>();
}

std::vector<Entry> built_in_entries() {
    std::vector<Entry> entries;
    const auto verbs = find_provider("verbs");
    const auto count = verbs.ok() ? verbs.value()->device_count() : std::uint32_t{0};
    if (!count.ok()) throw std::bad_alloc();
    NoObserver observer;
    for (std::uint32_t i = 0; i < count.value(); ++i) {
        auto device = open_device(*verbs.value(), i, observer);
        if (device.ok()) entries.push_back(entry_of((*device)->attributes().name));
    }
    entries.push_back(entry_of(loopback));
    return entries;
}

}  // namespace viaduct::dat
