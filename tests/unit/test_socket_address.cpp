// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <catch2/catch.hpp>

#include "core/base/socket_address.hpp"

using namespace viaduct;

TEST_CASE("socket address: IPv4") {
    const std::array<std::uint8_t, 4> bytes{192, 0, 2, 7};
    SocketAddress address(HostAddress(bytes), 0x1234);
    CHECK(address.valid());
    const auto& in = reinterpret_cast<const sockaddr_in&>(address.storage);
    CHECK(in.sin_family == AF_INET);
    CHECK(in.sin_port == htons(0x1234));
    CHECK(in.sin_addr.s_addr == inet_addr("192.0.2.7"));
    CHECK(host_of(address.get()) == HostAddress(bytes));
    CHECK(port_of(address.get()) == 0x1234);
}

TEST_CASE("socket address: IPv6") {
    in6_addr expected{};
    REQUIRE(inet_pton(AF_INET6, "2001:db8::9", &expected) == 1);
    const HostAddress host({expected.s6_addr, sizeof expected.s6_addr});
    SocketAddress address(host, 443);
    CHECK(address.valid());
    const auto& in = reinterpret_cast<const sockaddr_in6&>(address.storage);
    CHECK(in.sin6_family == AF_INET6);
    CHECK(in.sin6_port == htons(443));
    CHECK(IN6_ARE_ADDR_EQUAL(&in.sin6_addr, &expected));
    CHECK(host_of(address.get()) == host);
    CHECK(port_of(address.get()) == 443);
}

TEST_CASE("socket address: other families") {
    const std::array<std::uint8_t, 5> bytes{1, 2, 3, 4, 5};
    SocketAddress address(HostAddress(bytes), 80);
    CHECK_FALSE(address.valid());
    CHECK(host_of(address.get()).empty());
    CHECK(port_of(address.get()) == 0);
    CHECK(host_of(nullptr).empty());
}
