// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host's network interfaces, and the routes of the system.
#include <net/if.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <initializer_list>

#include "backends/support/interfaces.hpp"
#include "core/base/host_names.hpp"

using namespace viaduct;
using viaduct::support::find_network_addresses;
using viaduct::support::NetworkAddress;
using viaduct::support::source_for;

namespace {

HostAddress host_with(std::initializer_list<std::uint8_t> bytes) {
    return HostAddress(std::span(bytes.begin(), bytes.size()));
}

bool is_listed(const HostAddress& host) {
    return std::ranges::any_of(find_network_addresses(), [&](const NetworkAddress& own) { return own.host == host; });
}

bool is_link_local(const HostAddress& host) {
    return host.size() == 16 && host.span()[0] == 0xfe && (host.span()[1] & 0xc0) == 0x80;
}

}  // namespace

TEST_CASE("interfaces: every address belongs to this host and to the named interface") {
    for (const NetworkAddress& own : find_network_addresses()) {
        CAPTURE(own.interface, own.index);
        CHECK((own.host.size() == 4 || own.host.size() == 16));
        CHECK(is_this_host({own.host}));
        CHECK_FALSE(is_link_local(own.host));
        std::array<char, IF_NAMESIZE> name{};
        REQUIRE(if_indextoname(own.index, name.data()) != nullptr);
        CHECK(own.interface.starts_with(name.data()));
    }
}

TEST_CASE("interfaces: the loopback interface is marked") {
    for (const NetworkAddress& own : find_network_addresses()) {
        CAPTURE(own.interface);
        if (own.host == host_with({127, 0, 0, 1})) CHECK(own.loopback);
        if (own.interface == "eth0") CHECK_FALSE(own.loopback);
    }
}

TEST_CASE("interfaces: this host is reached from the address itself") {
    for (const NetworkAddress& own : find_network_addresses()) {
        CAPTURE(own.interface);
        const auto source = source_for(own.host);
        REQUIRE(source.ok());
        CHECK(source.value() == own.host);
    }
    if (!is_listed(host_with({127, 0, 0, 1}))) return;
    const auto unlisted = source_for(host_with({127, 0, 0, 77}));
    REQUIRE(unlisted.ok());
    CHECK(is_this_host({unlisted.value()}));
}

TEST_CASE("interfaces: other hosts are reached from an address of this host, or not at all") {
    const auto source = source_for(host_with({192, 0, 2, 1}));
    if (source.ok()) CHECK(is_listed(source.value()));
    if (!source.ok()) CHECK(source.status().code() == Code::Unreachable);
}

TEST_CASE("interfaces: what is not the address of a host has no route") {
    CHECK(source_for({}).status().code() == Code::Unreachable);
    CHECK(source_for(host_with({127, 0})).status().code() == Code::Unreachable);
    CHECK(source_for(host_with({0, 0, 0, 0})).status().code() == Code::Unreachable);
    CHECK(source_for(host_with({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})).status().code() == Code::Unreachable);
    CHECK(source_for(host_with({255, 255, 255, 255})).status().code() == Code::Unreachable);
}
