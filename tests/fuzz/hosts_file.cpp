// SPDX-License-Identifier: BSD-3-Clause
// The hosts file of VipNSInit.
#include <sys/mman.h>
#include <unistd.h>
#include <vipl.h>

#include <string>

#include "tests/fuzz/target.hpp"

using namespace viaduct::fuzz;

namespace {

VIP_NIC_HANDLE open_nic() {
    setenv("VIADUCT_BACKEND", "loopback", 1);
    VIP_NIC_HANDLE nic = nullptr;
    expect(VipOpenNic("VINIC", &nic) == VIP_SUCCESS);
    return nic;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const VIP_NIC_HANDLE nic = open_nic();
    static const int file = memfd_create("hosts", 0);
    static std::string path = "/proc/self/fd/" + std::to_string(file);
    Input input(data, size);
    const auto part = input.take(input.take<std::uint8_t>() % 32);
    std::string name(reinterpret_cast<const char*>(part.data()), part.size());
    expect(ftruncate(file, 0) == 0);
    expect(pwrite(file, input.rest().data(), input.rest().size(), 0) == static_cast<ssize_t>(input.rest().size()));
    expect(VipNSInit(nic, path.data()) == VIP_SUCCESS);
    alignas(VIP_NET_ADDRESS) char room[sizeof(VIP_NET_ADDRESS) + 64]{};
    auto* const address = reinterpret_cast<VIP_NET_ADDRESS*>(room);
    address->HostAddressLen = 16;
    if (VipNSGetHostByName(nic, name.data(), address, 0) == VIP_SUCCESS) {
        expect(address->HostAddressLen == 4);
        char found[16];
        VIP_ULONG length = sizeof found;
        const VIP_RETURN result = VipNSGetHostByAddr(nic, address, found, &length);
        expect(result == VIP_SUCCESS ? std::memchr(found, 0, sizeof found) != nullptr : length >= sizeof found);
    }
    expect(VipNSShutdown(nic) == VIP_SUCCESS);
    return 0;
}
