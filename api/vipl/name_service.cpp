// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/name_service.hpp"

#include <arpa/inet.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>
#include <system_error>

#include "api/vipl/nic.hpp"
#include "api/vipl/translate.hpp"
#include "core/base/host_names.hpp"
#include "core/explain.hpp"

namespace viaduct::vipl {
namespace {

bool same_name(const std::string& a, const std::string& b) noexcept { return strcasecmp(a.c_str(), b.c_str()) == 0; }

bool contains(const std::vector<HostAddress>& addresses, const HostAddress& address) noexcept {
    return std::ranges::find(addresses, address) != addresses.end();
}

class SystemNames final : public NameService {
public:
    SystemNames(const DeviceId& nic, const DeviceAttributes& attributes)
        : nic_(nic), bytes_(attributes.host.size()), nics_(attributes.local_hosts) {}

    std::vector<HostAddress> addresses_of(const std::string& name) const override {
        auto addresses = all_addresses_of(name);
        std::erase_if(addresses, [this](const HostAddress& address) { return address.size() != bytes_; });
        return addresses;
    }

    std::optional<std::string> name_of(const HostAddress& address) const override {
        if (!contains(nics_, address)) return std::nullopt;
        return own_host_name();
    }

private:
    std::vector<HostAddress> all_addresses_of(const std::string& name) const {
        std::string upper(name);
        std::ranges::transform(upper, upper.begin(),
                               [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        if (upper.starts_with(VINICBASENAME)) {
            const auto device = device_with_name(upper);
            if (device.status().code() == Code::NoResources) throw std::bad_alloc();
            if (device.ok() && device.value().provider == nic_.provider && device.value().number < nics_.size())
                return {nics_[device.value().number]};
        }
        if (same_name(name, own_host_name())) return nics_;
        auto addresses = resolve_host(name);
        return is_this_host(addresses) ? nics_ : addresses;
    }

    const DeviceId nic_;
    const std::size_t bytes_;              // of its address; it reaches no hosts of the other family
    const std::vector<HostAddress> nics_;  // all of its backend
};

class HostsFile final : public NameService {
public:
    HostsFile(std::istream& file, const DeviceAttributes& attributes) : bytes_(attributes.host.size()) {
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

    /// Ignores lines without an address of the NIC's family; hosts files contain others, too.
    void read(const std::string& text) {
        std::istringstream words(text);
        std::string word;
        std::array<std::uint8_t, sizeof(in6_addr)> address{};
        const int family = bytes_ == sizeof(in_addr) ? AF_INET : AF_INET6;
        if (!(words >> word) || inet_pton(family, word.c_str(), address.data()) != 1) return;
        Line line{.address = HostAddress({address.data(), bytes_})};
        while (words >> word) line.names.push_back(word);
        if (!line.names.empty()) lines_.push_back(std::move(line));
    }

    const std::size_t bytes_;  // of the NIC's address
    std::vector<Line> lines_;
};

constexpr const char* not_initialized = "VipNSInit was not called";

}  // namespace

std::shared_ptr<const NameService> NameService::of_system(const DeviceId& nic, const DeviceAttributes& attributes) {
    return std::make_shared<SystemNames>(nic, attributes);
}

std::shared_ptr<const NameService> NameService::of_file(const std::string& path, const DeviceAttributes& attributes) {
    errno = ENOMEM;
    std::ifstream file(path);
    const int error = errno;
    if (!file && access(path.c_str(), R_OK) == 0)  // the file is readable, so resources ran out
        throw std::system_error(error, std::generic_category(), path);
    if (!file) return nullptr;
    file.exceptions(std::ios::badbit);  // distinguishes lack of memory from a file that cannot be read
    try {
        return std::make_shared<HostsFile>(file, attributes);
    } catch (const std::ios::failure&) {
        return nullptr;
    }
}

}  // namespace viaduct::vipl

using namespace viaduct;
using namespace viaduct::vipl;

VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo) {
    return Entry::on<Nic>(NicHandle, {}, [&](Nic& nic) {
        if (nic.name_service.get() != nullptr) return failed(VIP_ERROR_NAMESERVICE, "VipNSInit was called before");
        const auto* path = static_cast<const char*>(NSInitInfo);
        auto service = path == nullptr ? NameService::of_system(nic.id(), nic.attributes())
                                       : NameService::of_file(path, nic.attributes());
        if (service == nullptr) return failed(VIP_INVALID_PARAMETER, explain("the file \"%s\" cannot be read", path));
        return nic.name_service.fill(std::move(service)) ? VIP_SUCCESS
                                                         : failed(VIP_ERROR_NAMESERVICE, "VipNSInit was called before");
    });
}

VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR* Name, VIP_NET_ADDRESS* Address, VIP_ULONG NameIndex) {
    return Entry::on<Nic>(
        NicHandle, {{Name != nullptr, "Name is NULL"}, {Address != nullptr, "Address is NULL"}}, [&](const Nic& nic) {
            // An extension to the guide: old programs leave the length 0 and provide enough room.
            const VIP_UINT16 room = Address->HostAddressLen;
            if (room != 0 && room < nic.attributes().host.size())
                return failed(VIP_INVALID_PARAMETER, explain("HostAddressLen is %u, addresses have %zu bytes", room,
                                                             nic.attributes().host.size()));
            const auto service = nic.name_service.get();
            if (service == nullptr) return failed(VIP_ERROR_NAMESERVICE, not_initialized);
            const auto addresses = service->addresses_of(Name);
            if (NameIndex >= addresses.size())
                return failed(VIP_ERROR_NAMESERVICE,
                              explain("\"%s\" has %zu addresses of the family of this NIC, number %lu asked for", Name,
                                      addresses.size(), NameIndex));
            const auto host = addresses[NameIndex].span();
            Address->HostAddressLen = static_cast<VIP_UINT16>(host.size());
            std::memcpy(static_cast<VIP_UINT8*>(Address->HostAddress), host.data(), host.size());
            return VIP_SUCCESS;
        });
}

VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* Address, VIP_CHAR* Name, VIP_ULONG* NameLen) {
    return Entry::on<Nic>(
        NicHandle,
        {{Address != nullptr, "Address is NULL"},
         {Name != nullptr, "Name is NULL"},
         {NameLen != nullptr, "NameLen is NULL"}},
        [&](const Nic& nic) {
            if (!failure::require({{Address->HostAddressLen == nic.attributes().host.size(),
                                    "HostAddressLen is not that of the addresses of this NIC"}}))
                return VIP_INVALID_PARAMETER;
            const auto service = nic.name_service.get();
            if (service == nullptr) return failed(VIP_ERROR_NAMESERVICE, not_initialized);
            const VIP_UINT8* host = Address->HostAddress;
            const auto name = service->name_of(HostAddress({host, Address->HostAddressLen}));
            if (!name) return failed(VIP_ERROR_NAMESERVICE, "the address has no name");
            const bool fits = name->size() < *NameLen;
            *NameLen = fits ? name->size() : name->size() + 1;
            if (fits) std::memcpy(Name, name->c_str(), name->size() + 1);
            return fits ? VIP_SUCCESS : failed(VIP_INVALID_PARAMETER, explain("the name needs %lu bytes", *NameLen));
        });
}

VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle) {
    return Entry::on<Nic>(NicHandle, {}, [&](Nic& nic) {
        return nic.name_service.clear() ? VIP_SUCCESS : failed(VIP_ERROR_NAMESERVICE, not_initialized);
    });
}
