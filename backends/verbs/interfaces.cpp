// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/interfaces.hpp"

#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/socket_address.hpp"
#include "core/status.hpp"

namespace viaduct::verbs {
namespace {

namespace fs = std::filesystem;

/// Failures are ignored unless memory or descriptors run out; the entry then counts as nonexistent.
void check_exhausted(const char* call) {
    if (Status::from_errno(errno, call).code() == Code::NoResources)
        throw std::system_error(errno, std::generic_category(), call);
}

/// Returns nothing if the directory does not exist. Does not use fs::directory_iterator, because the one of libstdc++
/// terminates the process if memory runs out.
std::vector<fs::path> entries_of(const fs::path& directory) {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(directory.c_str()), closedir);
    if (stream == nullptr) check_exhausted("opendir");
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

/// Returns the network interfaces in the address tables of a device. The tables may have a thousand entries; the used
/// ones come first.
std::vector<std::string> interfaces_of(const fs::path& device) {
    std::vector<std::string> found;
    if (auto parent = word_in(device / "parent"); !parent.empty()) return {std::move(parent)};  // Soft-RoCE
    for (const fs::path& port : entries_of(device / "ports"))
        for (int i = 0;; ++i) {
            auto name = word_in(port / "gid_attrs" / "ndevs" / std::to_string(i));
            if (name.empty()) break;
            found.push_back(std::move(name));
        }
    return found;
}

/// Maps network interfaces to RDMA devices. For Converged Ethernet and iWARP, the address tables name the interface;
/// for InfiniBand, the parent of the network interface is the device.
std::map<std::string, std::string> rdma_devices() {
    std::map<std::string, std::string> devices;
    for (const fs::path& device : entries_of("/sys/class/infiniband"))
        for (const std::string& name : interfaces_of(device)) devices.emplace(name, device.filename());
    for (const fs::path& net_device : entries_of("/sys/class/net"))
        for (const fs::path& device : entries_of(net_device / "device" / "infiniband"))
            devices.emplace(net_device.filename(), device.filename());
    return devices;
}

bool is_usable(const ifaddrs& entry) noexcept {
    if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return false;
    if (entry.ifa_addr->sa_family == AF_INET) return true;
    if (entry.ifa_addr->sa_family != AF_INET6) return false;
    return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr);
}

}  // namespace

std::vector<Interface> find_interfaces() {
    std::vector<Interface> found;
    const auto devices = rdma_devices();
    if (devices.empty()) return found;
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) {
        check_exhausted("getifaddrs");
        return found;
    }
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        if (!is_usable(*entry)) continue;
        if (const auto device = devices.find(entry->ifa_name); device != devices.end())
            found.push_back({device->second, entry->ifa_name, host_of(entry->ifa_addr)});
    }
    std::ranges::stable_sort(found, {}, [](const Interface& interface) {
        return std::pair(interface.host.size(), std::string_view(interface.rdma_device));
    });
    return found;
}

}  // namespace viaduct::verbs
