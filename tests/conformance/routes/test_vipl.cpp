// SPDX-License-Identifier: BSD-3-Clause
// VIPL chooses the device by name.
#include <vipl.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/conformance/routes/second_backend.hpp"

namespace {

class Nic {
public:
    explicit Nic(const std::string &name) {
        REQUIRE(VipOpenNic(name.c_str(), &nic_) == VIP_SUCCESS);
        REQUIRE(VipQueryNic(nic_, &attributes_) == VIP_SUCCESS);
    }
    ~Nic() { CHECK(VipCloseNic(nic_) == VIP_SUCCESS); }

    std::string name() const { return attributes_.Name; }
    std::string address() const { return text_of(attributes_.LocalNicAddress); }

    /// The address of a name, or "" if it is unknown.
    std::string address_of(const char *name) {
        alignas(VIP_NET_ADDRESS) std::array<VIP_UINT8, sizeof(VIP_NET_ADDRESS) + 64> bytes{};
        auto &address = reinterpret_cast<VIP_NET_ADDRESS &>(bytes);
        address.HostAddressLen = attributes_.NicAddressLen;
        CHECK(VipNSInit(nic_, nullptr) == VIP_SUCCESS);
        const VIP_RETURN result = VipNSGetHostByName(nic_, const_cast<VIP_CHAR *>(name), &address, 0);
        CHECK(VipNSShutdown(nic_) == VIP_SUCCESS);
        return result == VIP_SUCCESS ? text_of(address.HostAddress) : "";
    }

private:
    static std::string text_of(const VIP_UINT8 *bytes) {
        return std::to_string(bytes[0]) + "." + std::to_string(bytes[1]) + "." + std::to_string(bytes[2]) + "." +
               std::to_string(bytes[3]);
    }

    VIP_NIC_HANDLE nic_ = nullptr;
    VIP_NIC_ATTRIBUTES attributes_{};
};

}  // namespace

TEST_CASE("routes: VIPL opens devices of several backends by name") {
    const viaduct::testing::TwoBackends backends;
    const Nic first("VINIC0");
    const Nic second("viaduct-memory2");
    const Nic third("viaduct-lo1");
    CHECK(first.address() == "127.0.0.1");
    CHECK(second.address() == "198.51.100.3");
    CHECK(third.address() == "127.0.0.2");
    for (const Nic *nic : {&first, &second, &third}) CHECK(Nic(nic->name()).address() == nic->address());
    VIP_NIC_HANDLE none = nullptr;
    CHECK(VipOpenNic("viaduct-memory8", &none) == VIP_INVALID_PARAMETER);
    CHECK(VipOpenNic("VINIC8", &none) == VIP_INVALID_PARAMETER);
}

TEST_CASE("routes: the variables choose the devices that VIPL numbers") {
    const viaduct::testing::TwoBackends backends;
    setenv("VIADUCT_BACKEND", "second", 1);
    CHECK(Nic("VINIC").address() == "198.51.100.1");
    CHECK(Nic("VINIC3").address() == "198.51.100.4");
    CHECK(Nic("viaduct-memory3").name() == "VINIC3");
    unsetenv("VIADUCT_BACKEND");
    setenv("VIADUCT_DEVICE", "viaduct-memory5", 1);
    CHECK(Nic("VINIC0").address() == "198.51.100.6");
    CHECK(Nic("VINIC1").address() == "198.51.100.2");
    unsetenv("VIADUCT_DEVICE");
}

TEST_CASE("routes: the name service of VIPL knows the NICs of its backend") {
    const viaduct::testing::TwoBackends backends;
    Nic near("VINIC0");
    Nic far("viaduct-memory2");
    CHECK(near.address_of("VINIC1") == "127.0.0.2");
    CHECK(near.address_of("localhost") == "127.0.0.1");
    CHECK(far.address_of("VINIC1").empty());
    CHECK(far.address_of("localhost") == "198.51.100.1");
    setenv("VIADUCT_BACKEND", "second", 1);
    CHECK(far.address_of("VINIC1") == "198.51.100.2");
    unsetenv("VIADUCT_BACKEND");
}
