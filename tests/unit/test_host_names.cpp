// SPDX-License-Identifier: BSD-3-Clause
// Names and addresses of hosts. Uses no name server, only numeric addresses and names that every host has.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <initializer_list>
#include <new>
#include <string>
#include <vector>

#include "core/base/host_names.hpp"
#include "tests/support/descriptors.hpp"

using viaduct::HostAddress;
using viaduct::is_this_host;
using viaduct::own_host_name;
using viaduct::resolve_host;

namespace {

HostAddress address(std::initializer_list<std::uint8_t> bytes) {
    return HostAddress(std::span(bytes.begin(), bytes.size()));
}

const HostAddress ipv6_loopback = address({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
const HostAddress documentation = address({203, 0, 113, 1});

}  // namespace

TEST_CASE("host names: numeric addresses resolve to themselves") {
    CHECK(resolve_host("127.0.0.1") == std::vector{address({127, 0, 0, 1})});
    CHECK(resolve_host("127.0.0.8") == std::vector{address({127, 0, 0, 8})});
    CHECK(resolve_host("203.0.113.1") == std::vector{documentation});
    CHECK(resolve_host("0.0.0.0") == std::vector{address({0, 0, 0, 0})});
    CHECK(resolve_host("::1") == std::vector{ipv6_loopback});
}

TEST_CASE("host names: unknown names have no addresses") {
    // "invalid" is reserved for names that never resolve (RFC 6761).
    for (const std::string name : {"no-such-host.invalid", "300.300.300.300", "1.2.3.4.5", "a b", "::1::"}) {
        CAPTURE(name);
        CHECK(resolve_host(name).empty());
    }
}

TEST_CASE("host names: localhost is this host") {
    const auto addresses = resolve_host("localhost");
    REQUIRE_FALSE(addresses.empty());
    CHECK(std::ranges::all_of(addresses, [](const HostAddress& one) { return one.size() == 4 || one.size() == 16; }));
    CHECK(is_this_host(addresses));
}

TEST_CASE("host names: the loopback network is this host, other addresses are not") {
    CHECK(is_this_host({address({127, 0, 0, 1})}));
    CHECK(is_this_host({address({127, 255, 3, 7})}));
    CHECK(is_this_host({ipv6_loopback}));
    CHECK_FALSE(is_this_host({}));
    CHECK_FALSE(is_this_host({HostAddress()}));
    CHECK_FALSE(is_this_host({documentation}));
    CHECK_FALSE(is_this_host({address({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2})}));
    CHECK(is_this_host({documentation, address({127, 0, 0, 1})}));

    const bool can_tell = viaduct::testing::without_descriptors([] {
        try {
            return is_this_host({documentation}), true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    });
    CHECK_FALSE(can_tell);
}

TEST_CASE("host names: this host has the name that the system gives it") {
    std::array<char, 256> name{};
    REQUIRE(gethostname(name.data(), name.size() - 1) == 0);
    CHECK(own_host_name() == name.data());
}
