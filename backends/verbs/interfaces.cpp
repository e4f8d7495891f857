// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/interfaces.hpp"

#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "backends/support/guarded.hpp"
#include "backends/support/interfaces.hpp"
#include "backends/verbs/rdma_core.hpp"

namespace viaduct::verbs {
namespace {

namespace fs = std::filesystem;

/// Returns nothing if the directory does not exist. Does not use fs::directory_iterator, because the one of libstdc++
/// terminates the process if memory runs out.
std::vector<fs::path> entries_of(const fs::path& directory) {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(directory.c_str()), closedir);
    if (stream == nullptr) support::check_exhausted("opendir");
    std::vector<fs::path> found;
    while (const dirent* entry = stream == nullptr ? nullptr : readdir(stream.get()))
        if (entry->d_name[0] != '.') found.push_back(directory / entry->d_name);
    std::ranges::sort(found);
    return found;
}

std::string word_in(const fs::path& file) {
    std::string word;
    std::ifstream(file) >> word;
    return word;
}

/// iWARP has another handshake, which is not supported.
bool is_iwarp(const fs::path& device) { return word_in(device / "node_type") == "4:"; }

/// Maps network interfaces to RDMA devices. For Converged Ethernet, the address tables name the interface; for
/// InfiniBand, the parent of the network interface is the device.
std::map<std::string, std::string> rdma_devices() {
    std::map<std::string, std::string> devices;
    for (const fs::path& device : entries_of("/sys/class/infiniband"))
        if (!is_iwarp(device))
            for (const std::string& name : interfaces_of(device)) devices.emplace(name, device.filename());
    for (const fs::path& net_device : entries_of("/sys/class/net"))
        for (const fs::path& device : entries_of(net_device / "device" / "infiniband"))
            if (!is_iwarp(device)) devices.emplace(net_device.filename(), device.filename());
    return devices;
}

}  // namespace

/// Reads the address tables. An entry that is not used cannot be read; those of removed addresses are between others.
std::vector<std::string> interfaces_of(const fs::path& device) {
    std::vector<std::string> found;
    if (auto parent = word_in(device / "parent"); !parent.empty()) return {std::move(parent)};  // Soft-RoCE
    for (const fs::path& port : entries_of(device / "ports"))
        for (const fs::path& entry : entries_of(port / "gid_attrs" / "ndevs"))
            if (auto name = word_in(entry); !name.empty()) found.push_back(std::move(name));
    return found;
}

std::vector<Interface> find_interfaces() {
    std::vector<Interface> found;
    const auto devices = rdma_devices();
    if (devices.empty() || !load_rdma_core()) return found;
    for (auto& own : support::find_network_addresses())
        if (const auto device = devices.find(own.interface); device != devices.end())
            found.push_back({device->second, std::move(own.interface), own.host});
    std::ranges::stable_sort(found, {}, [](const Interface& interface) {
        return std::pair(interface.host.size(), std::string_view(interface.rdma_device));
    });
    return found;
}

}  // namespace viaduct::verbs
