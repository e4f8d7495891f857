// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host's network interfaces, and the routes of the system.
#include <net/if.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <initializer_list>

#include "backends/support/interfaces.hpp"
#include "core/base/host_names.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using viaduct::support::find_network_addresses;
using viaduct::support::NetworkAddress;
using viaduct::support::source_for;
using viaduct::testing::must;

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
        CAPTURE(own.interface);
        CHECK((own.host.size() == 4 || own.host.size() == 16));
        CHECK(is_this_host({own.host}));
        CHECK_FALSE(is_link_local(own.host));
        CHECK(if_nametoindex(own.interface.c_str()) != 0);
    }
}

TEST_CASE("interfaces: the loopback interface is marked") {
    for (const NetworkAddress& own : find_network_addresses()) {
        CAPTURE(own.interface);
        if (own.host == host_with({127, 0, 0, 1})) CHECK(own.loopback);
        if (own.interface == "eth0") CHECK_FALSE(own.loopback);
    }
}

TEST_CASE("interfaces: those that reach other hosts come first, with IPv4 before IPv6") {
    const auto all = find_network_addresses();
    CHECK(std::ranges::is_sorted(all, {}, &NetworkAddress::loopback));
    const auto first_loopback = std::ranges::find(all, true, &NetworkAddress::loopback);
    const auto size = [](const NetworkAddress& own) { return own.host.size(); };
    CHECK(std::ranges::is_sorted(all.begin(), first_loopback, {}, size));
    CHECK(std::ranges::is_sorted(first_loopback, all.end(), {}, size));
}

TEST_CASE("interfaces: hosts are reached from an address of this host, or not at all") {
    for (const HostAddress& host :
         {host_with({127, 0, 0, 77}), host_with({192, 0, 2, 1}), host_with({198, 51, 100, 1})}) {
        const auto source = source_for(host);
        if (source.ok()) CHECK(is_listed(source.value()));
        if (!source.ok()) CHECK(source.status().code() == Code::Unreachable);
    }
}

TEST_CASE("interfaces: the loopback address is its own source") {
    const HostAddress loopback = host_with({127, 0, 0, 1});
    if (is_listed(loopback)) CHECK(must(source_for(loopback)) == loopback);
}

TEST_CASE("interfaces: what is not the address of a host has no route") {
    CHECK(source_for({}).status().code() == Code::Unreachable);
    CHECK(source_for(host_with({127, 0})).status().code() == Code::Unreachable);
    CHECK(source_for(host_with({0, 0, 0, 0})).status().code() == Code::Unreachable);
    CHECK(source_for(host_with({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})).status().code() == Code::Unreachable);
    CHECK(source_for(host_with({255, 255, 255, 255})).status().code() == Code::Unreachable);
}
