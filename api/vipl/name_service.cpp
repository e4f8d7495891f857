// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/name_service.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>

#include "api/vipl/nic.hpp"
#include "api/vipl/translate.hpp"

namespace viaduct::vipl {
namespace {

using HostAddress = NameService::HostAddress;

bool same_name(const std::string& a, const std::string& b) noexcept { return strcasecmp(a.c_str(), b.c_str()) == 0; }

HostAddress to_host(const in_addr& address) noexcept {
    return HostAddress({reinterpret_cast<const std::uint8_t*>(&address), sizeof address});
}

/// The bytes of a socket address, without port and scope; empty for families other than IPv4 and IPv6.
HostAddress to_host(const sockaddr* address) noexcept {
    if (address != nullptr && address->sa_family == AF_INET)
        return to_host(reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
    if (address != nullptr && address->sa_family == AF_INET6) {
        const auto& bytes = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr.s6_addr;
        return HostAddress({bytes, sizeof bytes});
    }
    return {};
}

std::string own_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

/// What the system's resolver knows of a name; nothing where it fails. Throws std::bad_alloc.
std::vector<HostAddress> resolve_name(const std::string& name) {
    const addrinfo hints{.ai_flags = 0,
                         .ai_family = AF_UNSPEC,
                         .ai_socktype = SOCK_STREAM,  // one answer for each address
                         .ai_protocol = 0,
                         .ai_addrlen = 0,
                         .ai_addr = nullptr,
                         .ai_canonname = nullptr,
                         .ai_next = nullptr};
    addrinfo* answers = nullptr;
    const int error = getaddrinfo(name.c_str(), nullptr, &hints, &answers);
    if (error == EAI_MEMORY) throw std::bad_alloc();
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(error == 0 ? answers : nullptr, freeaddrinfo);
    std::vector<HostAddress> addresses;
    for (const addrinfo* answer = owner.get(); answer != nullptr; answer = answer->ai_next)
        addresses.push_back(to_host(answer->ai_addr));
    return addresses;
}

/// The addresses of this host's network interfaces.
std::vector<HostAddress> interface_addresses() {
    ifaddrs* interfaces = nullptr;
    if (getifaddrs(&interfaces) != 0) interfaces = nullptr;
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(interfaces, freeifaddrs);
    std::vector<HostAddress> addresses;
    for (const ifaddrs* entry = owner.get(); entry != nullptr; entry = entry->ifa_next)
        addresses.push_back(to_host(entry->ifa_addr));
    return addresses;
}

bool is_loopback(const HostAddress& address) noexcept {
    const auto bytes = address.span();
    if (bytes.size() == sizeof(in_addr)) return bytes[0] == IN_LOOPBACKNET;
    return std::ranges::equal(bytes, in6addr_loopback.s6_addr);
}

bool contains(const std::vector<HostAddress>& addresses, const HostAddress& address) noexcept {
    return std::ranges::find(addresses, address) != addresses.end();
}

class SystemNames final : public NameService {
public:
    explicit SystemNames(std::vector<HostAddress> nics) : nics_(std::move(nics)) {}

    std::vector<HostAddress> addresses_of(const std::string& name) const override {
        std::string upper(name);
        std::ranges::transform(upper, upper.begin(),
                               [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        if (const auto number = device_number(upper); number && *number < nics_.size()) return {nics_[*number]};
        if (same_name(name, own_name())) return nics_;
        auto addresses = resolve_name(name);
        const auto interfaces = interface_addresses();
        const auto is_ours = [&](const HostAddress& address) {
            return !address.empty() && (is_loopback(address) || contains(interfaces, address));
        };
        if (std::ranges::any_of(addresses, is_ours)) return nics_;
        std::erase_if(addresses, [this](const HostAddress& address) { return address.size() != nics_.front().size(); });
        return addresses;
    }

    std::optional<std::string> name_of(const HostAddress& address) const override {
        if (!contains(nics_, address)) return std::nullopt;
        return own_name();
    }

private:
    const std::vector<HostAddress> nics_;
};

class HostsFile final : public NameService {
public:
    explicit HostsFile(std::istream& file) {
        for (std::string line; std::getline(file, line);) read(line.substr(0, line.find('#')));
    }

    std::vector<HostAddress> addresses_of(const std::string& name) const override {
        std::vector<HostAddress> addresses;
        for (const Line& line : lines_)
            if (std::ranges::any_of(line.names, [&](const std::string& known) { return same_name(known, name); }))
                addresses.push_back(line.address);
        return addresses;
    }

    std::optional<std::string> name_of(const HostAddress& address) const override {
        const auto found = std::ranges::find(lines_, address, &Line::address);
        if (found == lines_.end()) return std::nullopt;
        return found->names.front();
    }

private:
    struct Line {
        HostAddress address;
        std::vector<std::string> names;
    };

    /// Lines that are not about an IPv4 address are left out: hosts files have others too.
    void read(const std::string& text) {
        std::istringstream words(text);
        std::string word;
        in_addr address;
        if (!(words >> word) || inet_pton(AF_INET, word.c_str(), &address) != 1) return;
        Line line{.address = to_host(address), .names = {}};
        while (words >> word) line.names.push_back(word);
        if (!line.names.empty()) lines_.push_back(std::move(line));
    }

    std::vector<Line> lines_;
};

}  // namespace

std::shared_ptr<const NameService> NameService::of_system(const DeviceAttributes& device) {
    return std::make_shared<SystemNames>(device.local_hosts);
}

std::shared_ptr<const NameService> NameService::of_file(const std::string& path) {
    std::ifstream file(path);
    if (!file && access(path.c_str(), R_OK) == 0) throw std::bad_alloc();  // readable, but for want of memory
    if (!file) return nullptr;
    file.exceptions(std::ios::badbit);  // so that want of memory is told from a file that cannot be read
    try {
        return std::make_shared<HostsFile>(file);
    } catch (const std::ios::failure&) {
        return nullptr;
    }
}

}  // namespace viaduct::vipl

using namespace viaduct;
using namespace viaduct::vipl;

VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo) {
    return guarded([&] {
        Nic* nic = resolve<Nic>(NicHandle);
        if (nic == nullptr) return VIP_INVALID_PARAMETER;
        if (nic->name_service.get() != nullptr) return VIP_ERROR_NAMESERVICE;
        const auto* path = static_cast<const char*>(NSInitInfo);
        auto service = path == nullptr ? NameService::of_system(nic->attributes()) : NameService::of_file(path);
        if (service == nullptr) return VIP_INVALID_PARAMETER;
        return nic->name_service.fill(std::move(service)) ? VIP_SUCCESS : VIP_ERROR_NAMESERVICE;
    });
}

VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR* Name, VIP_NET_ADDRESS* Address, VIP_ULONG NameIndex) {
    return guarded([&] {
        const Nic* nic = resolve<Nic>(NicHandle);
        if (nic == nullptr || Name == nullptr || Address == nullptr ||
            Address->HostAddressLen < nic->attributes().host.size())
            return VIP_INVALID_PARAMETER;
        const auto service = nic->name_service.get();
        if (service == nullptr) return VIP_ERROR_NAMESERVICE;
        const auto addresses = service->addresses_of(Name);
        if (NameIndex >= addresses.size()) return VIP_ERROR_NAMESERVICE;
        const auto host = addresses[NameIndex].span();
        Address->HostAddressLen = static_cast<VIP_UINT16>(host.size());
        std::memcpy(static_cast<VIP_UINT8*>(Address->HostAddress), host.data(), host.size());
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* Address, VIP_CHAR* Name, VIP_ULONG* NameLen) {
    return guarded([&] {
        const Nic* nic = resolve<Nic>(NicHandle);
        if (nic == nullptr || Address == nullptr || Name == nullptr || NameLen == nullptr ||
            Address->HostAddressLen != nic->attributes().host.size())
            return VIP_INVALID_PARAMETER;
        const auto service = nic->name_service.get();
        if (service == nullptr) return VIP_ERROR_NAMESERVICE;
        const VIP_UINT8* host = Address->HostAddress;
        const auto name = service->name_of(HostAddress({host, Address->HostAddressLen}));
        if (!name) return VIP_ERROR_NAMESERVICE;
        const bool fits = name->size() < *NameLen;
        *NameLen = fits ? name->size() : name->size() + 1;
        if (fits) std::memcpy(Name, name->c_str(), name->size() + 1);
        return fits ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
    });
}

VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle) {
    Nic* nic = resolve<Nic>(NicHandle);
    if (nic == nullptr) return VIP_INVALID_PARAMETER;
    return nic->name_service.clear() ? VIP_SUCCESS : VIP_ERROR_NAMESERVICE;
}
