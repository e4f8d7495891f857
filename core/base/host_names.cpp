// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/host_names.hpp"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <new>

#include "core/base/socket_address.hpp"
#include "viaduct/status.hpp"

namespace viaduct {
namespace {

std::vector<HostAddress> interface_addresses() {
    ifaddrs* interfaces = nullptr;
    if (getifaddrs(&interfaces) != 0) {
        if (Status::from_errno(errno, "getifaddrs").code() == Code::NoResources) throw std::bad_alloc();
        interfaces = nullptr;
    }
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(interfaces, freeifaddrs);
    std::vector<HostAddress> addresses;
    for (const ifaddrs* entry = owner.get(); entry != nullptr; entry = entry->ifa_next)
        addresses.push_back(host_of(entry->ifa_addr));
    return addresses;
}

}  // namespace

bool is_loopback(const HostAddress& address) noexcept {
    const auto bytes = address.span();
    if (bytes.size() == sizeof(in_addr)) return bytes[0] == IN_LOOPBACKNET;
    return std::ranges::equal(bytes, in6addr_loopback.s6_addr);
}

std::string own_host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

std::vector<HostAddress> resolve_host(const std::string& name) {
    const addrinfo hints{.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};  // one type: one answer for each address
    addrinfo* answers = nullptr;
    const int error = getaddrinfo(name.c_str(), nullptr, &hints, &answers);
    if (error == EAI_MEMORY) throw std::bad_alloc();
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(error == 0 ? answers : nullptr, freeaddrinfo);
    std::vector<HostAddress> addresses;
    for (const addrinfo* answer = owner.get(); answer != nullptr; answer = answer->ai_next)
        addresses.push_back(host_of(answer->ai_addr));
    return addresses;
}

bool is_this_host(const std::vector<HostAddress>& addresses) {
    if (std::ranges::any_of(addresses, is_loopback)) return true;
    const auto own = interface_addresses();
    return std::ranges::any_of(addresses, [&](const HostAddress& address) {
        return !address.empty() && std::ranges::find(own, address) != own.end();
    });
}

}  // namespace viaduct
