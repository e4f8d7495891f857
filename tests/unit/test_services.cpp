// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <catch2/catch.hpp>
#include <string_view>

#include "backends/support/services.hpp"

using namespace viaduct;
using namespace viaduct::support;

namespace {

Service service(std::string_view text) {
    return Service({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

}  // namespace

TEST_CASE("services: fingerprints are 64-bit FNV-1a") {
    CHECK(fingerprint(service("")) == 0xcbf29ce484222325u);
    CHECK(fingerprint(service("a")) == 0xaf63dc4c8601ec8cu);
    CHECK(fingerprint(service("foobar")) == 0x85944171f73967e8u);
    CHECK(fingerprint(service("bar").span(), fingerprint(service("foo"))) == fingerprint(service("foobar")));
}

TEST_CASE("services: ports are encoded as two bytes, big-endian") {
    CHECK(service_of(0x1234) == service("\x12\x34"));
    CHECK(port_of(service("\x12\x34")) == 0x1234);
    CHECK(port_of(service_of(0xFFFE)) == 0xFFFE);
    CHECK(port_of(service("1")) == 0);
    CHECK(port_of(service("123")) == 0);
    CHECK(port_of(service("")) == 0);
}

TEST_CASE("services: each is mapped to a port") {
    CHECK(port_for(service_of(80)) == 80);
    CHECK(port_for(service_of(65535)) == 65535);
    for (const auto& other : {service_of(0), service(""), service("a"), service("foobar")}) {
        CHECK(port_for(other) == hashed_port(fingerprint(other)));
        CHECK(port_for(other) >= 16384);
        CHECK(port_for(other) <= 32767);
    }
    // The values that other processes compute, including those of other versions.
    CHECK(port_for(service("foobar")) == (0x4000 | ((0x85944171f73967e8u ^ 0x85944171f73967e8u >> 29) & 0x3FFF)));
}

TEST_CASE("services: two hosts compute the same port") {
    const std::array<std::uint8_t, 4> low{10, 0, 0, 1};
    const std::array<std::uint8_t, 4> high{10, 0, 0, 2};
    const HostAddress one(low);
    const HostAddress other(high);
    CHECK(is_lower(one, other));
    CHECK_FALSE(is_lower(other, one));
    CHECK_FALSE(is_lower(one, one));
    CHECK(peer_to_peer_port(one, other, service("s")) == peer_to_peer_port(other, one, service("s")));
    CHECK(peer_to_peer_port(one, other, service("s")) != peer_to_peer_port(one, other, service("t")));
    // The hash of the lower host, the higher host and the service, in this order.
    CHECK(peer_to_peer_port(other, one, service("s")) ==
          hashed_port(fingerprint(service(std::string_view("\x0a\x00\x00\x01\x0a\x00\x00\x02s", 9)))));
}
