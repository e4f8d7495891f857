// SPDX-License-Identifier: BSD-3-Clause
// DAT chooses the device by the name of the adapter.
#include <dat2/udat.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/conformance/routes/second_backend.hpp"

namespace {

class Adapter {
public:
    explicit Adapter(const std::string &name) {
        DAT_EVD_HANDLE events = DAT_HANDLE_NULL;
        DAT_IA_ATTR attributes{};
        REQUIRE(dat_ia_openv(const_cast<DAT_NAME_PTR>(name.c_str()), 8, &events, &ia_, DAT_VERSION_MAJOR,
                             DAT_VERSION_MINOR, DAT_TRUE) == DAT_SUCCESS);
        REQUIRE(dat_ia_query(ia_, &events, DAT_IA_FIELD_ALL, &attributes, 0, nullptr) == DAT_SUCCESS);
        address = ntohl(reinterpret_cast<const sockaddr_in *>(attributes.ia_address_ptr)->sin_addr.s_addr);
    }
    ~Adapter() { CHECK(dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS); }

    std::uint32_t address = 0;

private:
    DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
};

constexpr std::uint32_t loopback = INADDR_LOOPBACK;
constexpr std::uint32_t second = 0xc6336401;  // 198.51.100.1

std::vector<std::string> adapters() {
    std::array<DAT_PROVIDER_INFO, 128> infos{};
    std::array<DAT_PROVIDER_INFO *, infos.size()> pointers{};
    for (std::size_t i = 0; i < infos.size(); ++i) pointers[i] = &infos[i];
    DAT_COUNT count = 0;
    REQUIRE(dat_registry_list_providers(infos.size(), &count, pointers.data()) == DAT_SUCCESS);
    std::vector<std::string> names;
    for (DAT_COUNT i = 0; i < count; ++i) names.emplace_back(infos[static_cast<std::size_t>(i)].ia_name);
    return names;
}

}  // namespace

TEST_CASE("routes: DAT opens adapters of several backends by name") {
    const viaduct::testing::TwoBackends backends;
    const Adapter near("viaduct-lo");
    const Adapter far("viaduct-memory2");
    const Adapter other("viaduct-lo1");
    CHECK(near.address == loopback);
    CHECK(far.address == second + 2);
    CHECK(other.address == loopback + 1);
}

TEST_CASE("routes: DAT lists the adapters of all backends") {
    const viaduct::testing::TwoBackends backends;
    const auto names = adapters();
    for (const char *name : {"viaduct-lo", "viaduct-memory0", "viaduct-memory7"})
        CHECK(std::ranges::count(names, name) == 1);
    for (const char *name : {"viaduct-lo0", "viaduct-lo1", "viaduct-memory8"})
        CHECK(std::ranges::count(names, name) == 0);
}

TEST_CASE("routes: the variables replace the default adapter of DAT") {
    const viaduct::testing::TwoBackends backends;
    setenv("VIADUCT_BACKEND", "second", 1);
    CHECK(Adapter("viaduct-lo").address == second);
    CHECK(Adapter("viaduct-memory4").address == second + 4);
    CHECK(Adapter("viaduct-lo1").address == second);
    unsetenv("VIADUCT_BACKEND");
    setenv("VIADUCT_DEVICE", "viaduct-memory5", 1);
    CHECK(Adapter("viaduct-lo").address == second + 5);
    unsetenv("VIADUCT_DEVICE");
}
