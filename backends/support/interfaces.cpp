// SPDX-License-Identifier: BSD-3-Clause
#include "backends/support/interfaces.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "backends/support/guarded.hpp"
#include "core/base/socket_address.hpp"
#include "core/base/unique_fd.hpp"

namespace viaduct::support {
namespace {

bool is_usable(const ifaddrs& entry) noexcept {
    if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return false;
    if (entry.ifa_addr->sa_family == AF_INET) return true;
    if (entry.ifa_addr->sa_family != AF_INET6) return false;
    return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr);
}

/// The system takes the wildcard address for an address of this host.
bool is_wildcard(const HostAddress& host) noexcept {
    return std::ranges::all_of(host.span(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

std::vector<NetworkAddress> find_network_addresses() {
    std::vector<NetworkAddress> found;
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) {
        check_exhausted("getifaddrs");
        return found;
    }
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        if (!is_usable(*entry)) continue;
        const std::string_view name = entry->ifa_name;  // or the label of an address, which goes on with a colon
        found.push_back({.interface = std::string(name.substr(0, name.find(':'))),
                         .host = host_of(entry->ifa_addr),
                         .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0});
    }
    std::ranges::stable_sort(found, {},
                             [](const NetworkAddress& own) { return std::pair(own.loopback, own.host.size()); });
    return found;
}

Result<HostAddress> source_for(const HostAddress& host) noexcept {
    constexpr std::uint16_t any_port = 9;  // nothing is sent to it
    SocketAddress to(host, any_port);
    if (!to.valid() || is_wildcard(host)) return Status(Code::Unreachable, "not the IPv4 or IPv6 address of a host");
    const UniqueFd socket(::socket(to.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) {
        if (errno == EAFNOSUPPORT) return Status(Code::Unreachable, "no such address family", errno);
        return Status::from_errno(errno, "socket");
    }
    socklen_t length = sizeof to.storage;
    if (connect(socket.get(), to.get(), length) != 0) return Status(Code::Unreachable, "no route to the host", errno);
    if (getsockname(socket.get(), to.get(), &length) != 0) return Status::from_errno(errno, "getsockname");
    return host_of(to.get());
}

}  // namespace viaduct::support
