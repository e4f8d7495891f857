// SPDX-License-Identifier: BSD-3-Clause
// Discovery of reachable NICs (guide, section 3.7.6).
#include <algorithm>
#include <cstring>

#include "api/vipl/nic.hpp"
#include "api/vipl/translate.hpp"
#include "core/explain.hpp"

using namespace viaduct;
using namespace viaduct::vipl;

namespace {

/// A NIC has a link to each other NIC of the host with an address of its family, but not to itself.
std::vector<HostAddress> discover(const Nic& nic, VIP_ULONG hops) {
    if (hops == 0) return {nic.attributes().host};
    auto hosts = nic.attributes().local_hosts;
    std::erase_if(hosts, [&](const HostAddress& host) { return host.size() != nic.attributes().host.size(); });
    return hosts;
}

/// Writes either all addresses or none.
VIP_RETURN write_addresses(const std::vector<HostAddress>& addresses, VIP_NET_ADDRESS* const* entries) noexcept {
    if (entries == nullptr) return failed(VIP_INVALID_PARAMETER, "ADAddrArray is NULL");
    const auto has_room = [](const HostAddress& address, const VIP_NET_ADDRESS* entry) {
        return entry != nullptr && entry->HostAddressLen >= address.size();
    };
    if (!std::equal(addresses.begin(), addresses.end(), entries, has_room))
        return failed(VIP_INVALID_PARAMETER, "an entry of ADAddrArray is NULL or too short");
    for (const HostAddress& address : addresses) {
        VIP_NET_ADDRESS& entry = **entries++;
        entry.HostAddressLen = static_cast<VIP_UINT16>(address.size());
        std::memcpy(static_cast<VIP_UINT8*>(entry.HostAddress), address.span().data(), address.size());
    }
    return VIP_SUCCESS;
}

}  // namespace

VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType, VIP_PVOID SysManInfo) {
    return Entry::on<Nic>(NicHandle, {{SysManInfo != nullptr, "SysManInfo is NULL"}}, [&](const Nic& nic) {
        if (InfoType != VIP_SMI_AUTODISCOVERY)
            return failed(VIP_ERROR_NOT_SUPPORTED, "InfoType is not VIP_SMI_AUTODISCOVERY");
        auto& list = *static_cast<VIP_AUTODISCOVERY_LIST*>(SysManInfo);
        const auto found = discover(nic, list.NumberOfHops);
        const VIP_ULONG room = list.NumAdAddrs;
        const bool fit = room >= found.size();
        const VIP_RETURN written = fit ? write_addresses(found, list.ADAddrArray) : VIP_SUCCESS;
        if (written != VIP_SUCCESS) return written;
        list.NumAdAddrs = found.size();
        if (fit) return VIP_SUCCESS;
        return failed(VIP_ERROR_RESOURCE, explain("NumAdAddrs is %lu, there are %zu addresses", room, found.size()));
    });
}
